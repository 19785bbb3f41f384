"""Greedy writing with any causal model of ours, a batch of prompts at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fluent_mlama.console import UserError
from fluent_mlama.cpopqa.ask import STOPS
from fluent_mlama.scoring.contract import Request
from fluent_mlama.scoring.models import LoadedModel
from fluent_mlama.scoring.network import usable_positions
from fluent_mlama.scoring.tokens import PromptTokeniser


class Writer:
    """Prompts in, continuations out. BOS stands in front as in scoring (``fluent_mlama.scoring.tokens``, joint)."""

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.tokeniser = PromptTokeniser(loaded.tokenizer)
        self.window = usable_positions(loaded.model)

    def write(self, prompts: Sequence[str], most: int) -> list[str]:
        """The continuation of each prompt, at most ``most`` tokens, up to a blank line or the next question."""
        rows = [
            list(tokens.prompt)
            for tokens in self.tokeniser.tokenise(
                [Request(prompt, ()) for prompt in prompts], "joint"
            )
        ]
        width = max(map(len, rows))
        if self.window is not None and width + most > self.window:
            raise UserError(
                f"{self.loaded.name} has {self.window} positions, a prompt and its answer need {width + most}: build with fewer --shots"
            )
        pad = self._padding()
        ids = torch.tensor(
            [[pad] * (width - len(row)) + row for row in rows], device=self.loaded.device
        )
        mask = torch.tensor(
            [[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self.loaded.device
        )
        with torch.inference_mode():
            made = self.loaded.model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                num_beams=1,
                max_new_tokens=most,
                pad_token_id=pad,
                stop_strings=list(STOPS),
                tokenizer=self.loaded.tokenizer,
                temperature=None,
                top_p=None,
                top_k=None,
                repetition_penalty=None,
            )
        return [
            cut(text)
            for text in self.loaded.tokenizer.batch_decode(
                made[:, width:].tolist(), skip_special_tokens=True
            )
        ]

    def _padding(self) -> int:
        for name in ("pad_token_id", "eos_token_id", "bos_token_id"):
            found = getattr(self.loaded.tokenizer, name, None)
            if isinstance(found, int):
                return found
        return 0  # masked, so any token will do


def cut(text: str) -> str:
    """The text before the first stop, without white space in front (which is no blank line)."""
    text = text.lstrip()
    for stop in STOPS:
        text = text.split(stop, maxsplit=1)[0]
    return text
