"""The paper's constrained translation by a chat model: few-shot examples, and the translated subject and object given.

Any OpenAI-compatible server will do (``OPENAI_BASE_URL``). Unlike the published run the query is a user's turn with the keys
of the examples, temperature is 0 and a seed is sent; ``published_role`` restores the published turn for reproduction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fluent_mlama.languages import language
from fluent_mlama.patience import Patience
from fluent_mlama.records.few_shot import FewShot, format_few_shot
from fluent_mlama.translating.backend import Answer, Item, text_hash
from fluent_mlama.translating.chat_client import ChatClient, Messages

DEFAULT_MODEL = "gpt-4o-mini"
MAX_TOKENS = 256

FewShotSource = Callable[[str, str], FewShot | None]
"""Gives the few-shot text for a (target language, relation), or None."""


def instruction(target: str) -> str:
    """What the model is told before any example; five short lines, as the published text has."""
    name = language(target).name
    return "\n".join((
        f"You translate English sentences into {name}, as a professional would.",
        f"Beside each sentence you are given its subject and its object in {name}: use these translations.",
        "Inflect them, and make the words around them agree, as the grammar demands.",
        f"Answer with the {name} sentence alone, in one line, without quotes.",
        "Follow the examples, if there are any:",
    ))  # fmt: skip


class OpenAITranslator:
    """A chat model behind the OpenAI interface.

    few_shot: gives the examples; seed: sent with each request; workers: requests under way at a time.
    """

    name = "openai"
    costly = True

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        few_shot: FewShotSource | None = None,
        base_url: str | None = None,
        seed: int = 0,
        published_role: bool = False,
        workers: int = 4,
        patience: Patience | None = None,
    ) -> None:
        self.model = model
        self._few_shot = few_shot or (lambda target, relation: None)
        self._seed = seed
        self._published_role = published_role
        self._client = ChatClient(
            model, base_url=base_url, seed=seed, workers=workers, patience=patience
        )

    def check(self, source: str, target: str, relation: str) -> None:
        self._client.check()
        for code in (source, target):
            language(code)

    def prompt_hash(self, source: str, target: str, relation: str) -> str:
        role = "published" if self._published_role else "user"
        return text_hash(
            self._system(target, relation), role, str(self._seed), "temperature 0", str(MAX_TOKENS)
        )

    def query(self, item: Item) -> str:
        if self._published_role:
            keys = ("Source sentence", "Subject", "Object", "Sentence")
        else:
            keys = ("Source sentence", "Subject translation", "Object translation", "Translation")
        values = (item.sentence, item.sub_label, item.obj_label, "")
        return "\n".join(
            f"{key}: {value}".rstrip() for key, value in zip(keys, values, strict=True)
        )

    def translate(self, items: Sequence[Item]) -> Iterator[tuple[Item, Answer]]:
        return self._client.converse(items, self._messages, lambda item: MAX_TOKENS)

    def _messages(self, item: Item) -> Messages:
        return [
            {"role": "system", "content": self._system(item.target, item.relation)},
            {"role": "assistant" if self._published_role else "user", "content": self.query(item)},
        ]

    def _system(self, target: str, relation: str) -> str:
        few_shot = self._few_shot(target, relation)
        return format_few_shot(few_shot) if few_shot else instruction(target)
