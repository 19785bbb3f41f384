"""Text to token ids, as the model saw text in training, for causal and masked models.

A sentence is tokenised as one string and cut by character offsets (``tokens_in``): whatever
overlaps the candidate is the candidate's. White space in front of a candidate belongs to its first
token (``ĠParis``, ``▁Paris``), or is its first token (``▁``), so the caller cuts before it.
Protocol `paper` alone tokenises prompt and candidate apart, as published (``separate``).

The tokenizer's own prefix (``front``: BOS for Llama, ``</s>`` for XGLM, ``[CLS]`` for BERT) stands
in front once. Its end marks (``back``) close the sentence of a masked model and are never put
between a prompt and a candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.contract import Request, Tokenisation
from fluent_mlama.scoring.text_tokens import Ids, Spans, TextTokeniser, is_solid, prefix_name

Pair = tuple[str, str, str]
"""Prompt, candidate text, tail."""


class PromptTokeniser:
    """Tokenises requests to a causal model: each distinct string once, all strings in one batch.

    add_bos: None for the tokenizer's own prefix, and where it has none BOS in ``joint`` only; True
    for BOS there in ``separate`` too; False for nothing in front in either.
    """

    def __init__(self, tokenizer: Any, add_bos: bool | None = None) -> None:
        self.text = TextTokeniser(tokenizer)
        self.tokenizer = tokenizer
        self.bos: int | None = tokenizer.bos_token_id
        self.add_bos = add_bos
        self._warned = False
        if add_bos and self.bos is None:
            raise UserError(
                f"tokenizer of {tokenizer.name_or_path} has no BOS token to put in front; leave the BOS setting at its default"
            )

    def prefix(self, tokenisation: Tokenisation) -> Ids:
        """The special tokens in front of every sequence of this tokenisation."""
        if self.add_bos is False:
            return ()
        if self.text.front or self.bos is None:
            return self.text.front
        return (self.bos,) if tokenisation == "joint" or self.add_bos else ()

    def prefix_name(self, tokenisation: Tokenisation) -> str:
        """For signatures: see ``prefix_name``."""
        return prefix_name(self.tokenizer, self.prefix(tokenisation))

    def tokenise(
        self, requests: Sequence[Request], tokenisation: Tokenisation
    ) -> list[RequestTokens]:
        """Token ids of every request, in order; prompts or candidates may come out empty."""
        prompts = self._prompts((request.prompt for request in requests), tokenisation)
        pairs = dict.fromkeys((r.prompt, c.text, c.tail) for r in requests for c in r.candidates)
        # Prompts and candidates are far fewer than pairs of them: a pair is tokenised if need be only.
        together: list[Pair] = []
        apart: list[Pair] = []
        for pair in pairs:
            alike = tokenisation == "separate" or self._parts(pair)
            (apart if alike else together).append(pair)
        tokens = self._together(together) | self._apart(apart, prompts)
        result = []
        for request in requests:
            candidates = tuple(tokens[request.prompt, c.text, c.tail] for c in request.candidates)
            result.append(RequestTokens(prompts[request.prompt], candidates))
        return result

    def _parts(self, pair: Pair) -> bool:
        """Whether prompt and candidate give the same tokens alone and in one string."""
        prompt, text, tail = pair
        apart = self.text.cuts_before_blanks and not self.text.greedy
        return apart and (text + tail)[:1] == " " and is_solid(prompt[-1:])

    def _apart(
        self, pairs: Sequence[Pair], prompts: Mapping[str, Ids]
    ) -> dict[Pair, CandidateTokens]:
        """The candidate's ids, tokenised alone, behind the prompt's."""
        texts = list(dict.fromkeys(text for _, text, tail in pairs if not tail))
        alone = dict(zip(texts, self.text.alone(texts), strict=True))
        tailed = self.text.spans(text + tail for _, text, tail in pairs if tail)
        result = {}
        for prompt, text, tail in pairs:
            ids, tail_tokens = alone.get(text, ()), 0
            if tail:
                spans = tailed[text + tail]
                ids = tuple(spans.ids)
                tail_tokens = len(ids) - tokens_in(spans, 0, len(text))[1]
            start = len(prompts[prompt])
            tokens = CandidateTokens(prompts[prompt] + ids, start, tail_tokens, straddles=False)
            result[prompt, text, tail] = tokens
        return result

    def _together(self, pairs: Sequence[Pair]) -> dict[Pair, CandidateTokens]:
        """One string each, cut by offsets."""
        whole = self.text.spans(map("".join, pairs))
        result = {}
        for prompt, text, tail in pairs:
            spans = whole[prompt + text + tail]
            end = len(prompt) + len(text) if tail else None
            first, last = tokens_in(spans, len(prompt), end)
            # wor|ld: the first token of the candidate holds the prompt's last characters.
            straddles = first < len(spans.ids) and _start(spans, first) < len(prompt)
            ids = self._in_front("joint", prompt + text, tuple(spans.ids))
            # The ids have grown by the prefix.
            start = first + len(ids) - len(spans.ids)
            result[prompt, text, tail] = CandidateTokens(
                ids, start, len(spans.ids) - last, straddles
            )
        return result

    def _prompts(self, texts: Iterable[str], tokenisation: Tokenisation) -> dict[str, Ids]:
        distinct = list(dict.fromkeys(texts))
        prompts = {
            text: self._in_front(tokenisation, text, ids)
            for text, ids in zip(distinct, self.text.alone(distinct), strict=True)
        }
        self._warn_of_doubled(prompts, self.prefix(tokenisation))
        return prompts

    def _in_front(self, tokenisation: Tokenisation, text: str, ids: Ids) -> Ids:
        """The prefix and the ids, without what the text begins with (a literal BOS)."""
        prefix = self.prefix(tokenisation)
        spelt = self.tokenizer.convert_ids_to_tokens(list(prefix))
        # Look for the longest end of the prefix that the text begins with.
        for n in range(len(prefix), 0, -1):
            # The text must spell it out: some tokenizers use BOS for unknown words.
            if ids[:n] == prefix[-n:] and text.lstrip().startswith(spelt[-n]):
                return prefix[: len(prefix) - n] + ids
        return prefix + ids

    def _warn_of_doubled(self, prompts: Mapping[str, Ids], prefix: Ids) -> None:
        """Once: a prompt that holds the prefix's token again further on, which is seldom meant."""
        names = self.tokenizer.convert_ids_to_tokens(list(prefix))
        for text, ids in prompts.items():
            again = [
                name
                for token, name in zip(prefix, names, strict=True)
                if token in ids[len(prefix) :] and name in text
            ]
            if again and not self._warned:
                self._warned = True
                note(
                    f"the prompt {text[:60]!r} holds {again[0]!r} as text, behind the one that every prompt begins with"
                )


@dataclass(frozen=True, slots=True)
class CandidateTokens:
    """Context and candidate; tokens from ``start`` are scored, the last ``tail_tokens`` are tail."""

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
    """The prompt alone (with special tokens), and each candidate after it, in order."""

    prompt: Ids
    candidates: tuple[CandidateTokens, ...]


Context = tuple[Ids, int, Ids]
"""Ids left of the slot, number of masks, ids right of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """Candidates in a slot: the pieces of each, and which (by number) share a context."""

    pieces: tuple[Ids, ...]
    contexts: Mapping[Context, tuple[int, ...]]
    usual_of: Mapping[int, Context]

    def usual(self, masks: int) -> Context:
        """The commonest context of candidates with so many pieces, else of all candidates."""
        if masks in self.usual_of:
            return self.usual_of[masks]
        left, _, right = max(
            self.usual_of.values(), key=lambda c: (len(self.contexts[c]), c), default=((), 0, ())
        )
        return left, masks, right


@dataclass(frozen=True, slots=True)
class SlotTokens:
    """A sentence with a slot: ``left`` and ``right`` stand outside the filling's own contexts."""

    left: Ids
    right: Ids
    filling: Filling


class SlotTokeniser:
    """Tokenises sentences with a slot for a masked model: each candidate is filled in and cut out.

    In training the model saw whole sentences, of which some tokens were then masked. So the pieces
    of a candidate are those that overlap it, or the white space before it, in the filled sentence,
    and no others.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.text = TextTokeniser(tokenizer)

    def tokenise(self, slots: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[SlotTokens]:
        """slots: left text, right text and the candidates for what is between them."""
        fillings: dict[tuple[str, str, tuple[str, ...]], Filling] = {}
        far: dict[str, Ids] = {}
        cuts = []
        for left, right, candidates in slots:
            before, behind = self._near(left, right, candidates)
            cuts.append(
                (left[:before], right[behind:], (left[before:], right[:behind], candidates))
            )
            far |= dict.fromkeys((left[:before], right[behind:]), ())
        far = dict(zip(far, self.text.alone(list(far)), strict=True))
        for _, _, near in cuts:
            if near not in fillings:
                fillings[near] = self.fill(*near)
        return [SlotTokens(far[left], far[right], fillings[near]) for left, right, near in cuts]

    def _near(self, left: str, right: str, candidates: tuple[str, ...]) -> tuple[int, int]:
        """Where to cut left and right text so that the middle alone gives the same tokens.

        Facts of a relation then share the middle part, and its tokens: a template is the same
        around its slot.
        """
        held = any(
            token in text for token in self.text.greedy for text in (left, right, *candidates)
        )
        if held or not self.text.cuts_before_blanks:
            return 0, len(right)
        before = next(
            (i for i in range(len(left) - 1, 0, -1) if left[i] == " " and is_solid(left[i - 1])), 0
        )
        behind = next(
            (i for i in range(1, len(right)) if right[i] == " " and is_solid(right[i - 1])),
            len(right),
        )
        return before, behind

    def fill(self, left: str, right: str, candidates: tuple[str, ...]) -> Filling:
        """Candidates in one sentence."""
        spans = self.text.spans(left + candidate + right for candidate in candidates)
        start = len(left.rstrip())
        pieces: list[Ids] = []
        contexts: dict[Context, list[int]] = {}
        for number, candidate in enumerate(candidates):
            filled = spans[left + candidate + right]
            ids, end = tuple(filled.ids), len(left) + len(candidate)
            first, last = tokens_in(filled, start, end)
            # No token is the candidate's own where none ends after the left text.
            if not candidate or _first_ending_after(filled, len(left)) >= last:
                first = last
            pieces.append(ids[first:last])
            if first < last:
                contexts.setdefault((ids[:first], last - first, ids[last:]), []).append(number)
        # Of contexts with equally many masks the last one stays: that of most candidates.
        usual = {c[1]: c for c in sorted(contexts, key=lambda c: (len(contexts[c]), c))}
        return Filling(
            tuple(pieces), {context: tuple(numbers) for context, numbers in contexts.items()}, usual
        )


def tokens_in(spans: Spans, start: int, end: int | None) -> tuple[int, int]:
    """The tokens ``[first, last)`` that overlap the characters ``[start, end)``.

    end: None for the end of the text.

    prompt  P P P │ c c c c │ t t      tokens that cross either bar are the candidate's
           [0  ][1   ][2   ][3   ]     first = 1, last = 3
    """
    first, count = _first_ending_after(spans, start), len(spans.ids)
    if end is None:
        return first, count
    last = _first_ending_after(spans, end)
    # Several tokens cross the end where they are bytes of one character.
    while last < count and _span(spans, last)[0] < end:
        last += 1
    return first, max(first, last)


def _first_ending_after(spans: Spans, position: int) -> int:
    """The first token whose span ends after ``position``; the number of tokens if none does."""
    # Much quicker than a search of the spans; None past the end, or at a dropped character.
    token = spans.char_to_token(position)
    if token is None:
        token = next(
            (number for number, (_, end) in enumerate(spans.offsets) if end > position),
            len(spans.ids),
        )
    return token


def _start(spans: Spans, token: int) -> int:
    """Where a token's span begins; characters that were dropped before it belong to it."""
    before = _span(spans, token - 1)[1] if token else 0
    return min(_span(spans, token)[0], before)


def _span(spans: Spans, token: int) -> tuple[int, int]:
    return spans.token_to_chars(token) or (0, 0)
