"""From requests to token ids: where the prompt ends, which tokens are scored, which of them belong to the tail.

``separate``: the prompt's ids with the tokenizer's default special tokens, then the candidate's ids tokenised alone
without any (protocol `paper`). ``joint``: one string, cut by character offsets; every token whose span ends after the
prompt's end is scored, also the one that straddles it (protocol `corrected`). BOS stands exactly once in front:
by default ``separate`` does what the tokenizer does, ``joint`` puts it there if the tokenizer has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Encoding, Tokenizer, decoders

from fluent.console import UserError
from fluent.scoring.contract import Request, Tokenisation

Ids = tuple[int, ...]
Pair = tuple[str, str, str]
"""Prompt, candidate text, tail."""


@dataclass(frozen=True, slots=True)
class CandidateTokens:
    """``sequence``: context and candidate; the tokens from ``start`` on are scored, the last ``tail_tokens`` are the tail's."""

    sequence: Ids
    start: int
    tail_tokens: int
    straddles: bool

    @property
    def scored(self) -> Ids:
        """The candidate's own token ids."""
        return self.sequence[self.start :]


@dataclass(frozen=True, slots=True)
class RequestTokens:
    """The prompt alone (with special tokens) and each candidate behind it, in the request's order."""

    prompt: Ids
    candidates: tuple[CandidateTokens, ...]


class PromptTokeniser:
    """Tokenises the requests of a file, each distinct string once and all strings in one batch.

    add_bos: None for the rule above, True or False to put BOS in front, or not, in both tokenisations.
    """

    def __init__(self, tokenizer: Any, add_bos: bool | None = None) -> None:
        self.tokenizer = tokenizer
        self.bos: int | None = tokenizer.bos_token_id
        self.add_bos = add_bos
        self._adds_bos = self.bos is not None and self._defaults([""])[0][:1] == (self.bos,)
        self._offsets = _offset_tokenizer(tokenizer)
        self._cuts_before_blanks = self._offsets is not None and _cuts_before_blanks(self._offsets)
        if add_bos and self.bos is None:
            raise UserError(f"tokenizer of {tokenizer.name_or_path} has no BOS token to put in front; leave the BOS setting at its default")

    def bos_in(self, tokenisation: Tokenisation) -> bool:
        """Whether sequences of this tokenisation begin with BOS."""
        if self.add_bos is not None:
            return self.add_bos
        return self._adds_bos if tokenisation == "separate" else self.bos is not None

    def tokenise(self, requests: Sequence[Request], tokenisation: Tokenisation) -> list[RequestTokens]:
        """Token ids of every request, in order; prompts or candidates may come out empty."""
        prompts = self._prompts((request.prompt for request in requests), tokenisation)
        pairs = dict.fromkeys((r.prompt, c.text, c.tail) for r in requests for c in r.candidates)
        whole = {pair for pair in pairs if tokenisation == "joint" and not self._parts(pair)}
        apart = [pair for pair in pairs if pair not in whole]
        tokens = self._together([pair for pair in pairs if pair in whole]) | self._apart(apart, prompts)
        return [RequestTokens(prompts[r.prompt], tuple(tokens[r.prompt, c.text, c.tail] for c in r.candidates)) for r in requests]

    def _parts(self, pair: Pair) -> bool:
        """Whether prompt and candidate give the same tokens alone and in one string."""
        prompt, text, tail = pair
        return self._cuts_before_blanks and (text + tail)[:1] == " " and not prompt[-1:].isspace() and prompt != ""

    def _apart(self, pairs: Sequence[Pair], prompts: Mapping[str, Ids]) -> dict[Pair, CandidateTokens]:
        """The candidate's ids, tokenised alone, behind the prompt's."""
        texts = list(dict.fromkeys(text for _, text, tail in pairs if not tail))
        alone = dict(zip(texts, self._bare(texts), strict=True))
        tailed = self._with_offsets(text + tail for _, text, tail in pairs if tail)
        result = {}
        for prompt, text, tail in pairs:
            ids, tail_tokens = alone.get(text, ()), 0
            if tail:
                ids, tail_tokens = tuple(tailed[text + tail].ids), _tokens_from(tailed[text + tail], len(text))
            result[prompt, text, tail] = CandidateTokens(prompts[prompt] + ids, len(prompts[prompt]), tail_tokens, False)
        return result

    def _together(self, pairs: Sequence[Pair]) -> dict[Pair, CandidateTokens]:
        """One string each, cut by offsets."""
        whole = self._with_offsets(map("".join, pairs))
        front: Ids = (self.bos,) if self.bos is not None and self.bos_in("joint") else ()
        result = {}
        for prompt, text, tail in pairs:
            encoding = whole[prompt + text + tail]
            ids = tuple(encoding.ids)
            first = _first_ending_after(encoding, len(prompt))
            tail_tokens = min(_tokens_from(encoding, len(prompt) + len(text)), len(ids) - first) if tail else 0
            straddles = first < len(ids) and _start(encoding, first) < len(prompt)
            added = () if ids[:1] == front else front
            result[prompt, text, tail] = CandidateTokens(added + ids, len(added) + first, tail_tokens, straddles)
        return result

    def _prompts(self, texts: Iterable[str], tokenisation: Tokenisation) -> dict[str, Ids]:
        distinct = list(dict.fromkeys(texts))
        if tokenisation == "separate" and self.add_bos in (None, self._adds_bos):
            return dict(zip(distinct, self._defaults(distinct), strict=True))
        front: Ids = (self.bos,) if self.bos is not None and self.bos_in(tokenisation) else ()
        return {text: ids if ids[:1] == front else front + ids for text, ids in zip(distinct, self._bare(distinct), strict=True)}

    def _defaults(self, texts: list[str]) -> list[Ids]:
        return self._call(texts, add_special_tokens=True)

    def _bare(self, texts: list[str]) -> list[Ids]:
        return self._call(texts, add_special_tokens=False)

    def _call(self, texts: list[str], add_special_tokens: bool) -> list[Ids]:
        if not texts:
            return []
        encoded = self.tokenizer(texts, add_special_tokens=add_special_tokens, return_attention_mask=False, return_token_type_ids=False)
        return [tuple(ids) for ids in encoded["input_ids"]]

    def _with_offsets(self, texts: Iterable[str]) -> dict[str, Encoding]:
        """Each distinct text without special tokens, with the character span of every token."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        if self._offsets is None:
            raise UserError(
                f"tokenizer of {self.tokenizer.name_or_path} gives no character offsets, which joint tokenisation and tails need;"
                " use a model with a tokenizer.json, or protocol paper without tails"
            )
        return dict(zip(distinct, self._offsets.encode_batch(distinct, add_special_tokens=False), strict=True))


def _first_ending_after(encoding: Encoding, position: int) -> int:
    """The first token whose span ends after character ``position``; the number of tokens if none does."""
    token = encoding.char_to_token(position)  # much quicker than looking at every span
    if token is None:  # past the end, or a character that the tokenizer drops
        token = next((number for number, (_, end) in enumerate(encoding.offsets) if end > position), len(encoding.ids))
    return token


def _start(encoding: Encoding, token: int) -> int:
    """Where a token's span begins; characters that were dropped before it belong to it."""
    start, _ = encoding.token_to_chars(token) or (0, 0)
    _, before = (encoding.token_to_chars(token - 1) if token else None) or (0, 0)
    return min(start, before)


def _tokens_from(encoding: Encoding, position: int) -> int:
    """How many of the last tokens begin at or after character ``position``."""
    first = _first_ending_after(encoding, position)
    crosses = first < len(encoding.ids) and _start(encoding, first) < position
    return len(encoding.ids) - first - crosses


def _offset_tokenizer(tokenizer: Any) -> Tokenizer | None:
    """A copy of the fast tokenizer without its post-processor.

    The post-processor of byte-level tokenizers trims white space from the spans (`` Paris`` would begin at its P), so
    that a token across the prompt's trailing blank could not be seen.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        return None
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    try:
        copy.post_processor = None
    except (TypeError, AttributeError):
        from tokenizers.processors import Sequence as Processors

        copy.post_processor = Processors([])
    return copy


def _cuts_before_blanks(tokenizer: Tokenizer) -> bool:
    """Whether text is always cut in front of a blank that follows something else, whatever stands around.

    So it is with GPT-2's pattern: no alternative of it has white space behind anything else, and none looks back. Added
    tokens are cut out before, hence none may hold a blank or reach for its neighbours.
    """
    settings = json.loads(tokenizer.to_str())
    cutter, model = settings["pre_tokenizer"] or {}, settings["model"]
    return (
        settings["normalizer"] is None
        and cutter.get("type") == "ByteLevel"
        and cutter["use_regex"]
        and not cutter["add_prefix_space"]
        and model["type"] == "BPE"
        and not model["dropout"]
        and not any(" " in t["content"] or t["lstrip"] or t["rstrip"] or t["single_word"] for t in settings["added_tokens"])
    )


def spellings(tokenizer: Any, token_ids: Sequence[int]) -> list[str]:
    """Tokens for showing to a person: those of byte-level vocabularies as the text they stand for, where it is whole characters."""
    spelled = [str(token) for token in tokenizer.convert_ids_to_tokens(list(token_ids))]
    decoder = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    if not isinstance(decoder, decoders.ByteLevel):
        return spelled
    return [token if "\ufffd" in (text := decoder.decode([token])) else text for token in spelled]
