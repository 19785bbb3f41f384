"""Text to token ids, as the model saw text in training, for causal and masked models.

A sentence is tokenised as one string and cut by character offsets (``tokens_in``): whatever
overlaps the candidate is the candidate's. White space in front of a candidate belongs to its first
token (``ĠParis``, ``▁Paris``), or is its first token (``▁``), so the caller cuts before it.
Protocol `paper` alone tokenises prompt and candidate apart, as published (``separate``).

The tokenizer's own prefix (``front``: BOS for Llama, ``</s>`` for XGLM, ``[CLS]`` for BERT) stands
in front once. Its end marks (``back``) close the sentence of a masked model and are never put
between a prompt and a candidate.

What a tokenizer does with a text: special tokens, spans of tokens, where text may be cut.

``TextTokeniser`` goes from text to ids with character spans; ``spellings`` and ``readable`` go
back, for showing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tokenizers import Tokenizer
from tokenizers.processors import Sequence as Processors

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.contract import Request, Tokenisation

Ids = tuple[int, ...]


class Spans(Protocol):
    """Token ids with their spans: ``tokenizers.Encoding``, or ``_Aligned``."""

    @property
    def ids(self) -> list[int]:
        """Token ids."""

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The span of each."""

    def char_to_token(self, position: int) -> int | None:
        """The first token that holds this character; None where no token does."""

    def token_to_chars(self, token: int) -> tuple[int, int] | None:
        """A token's span."""


class TextTokeniser:
    """A tokenizer, the special tokens it puts around a text, and the characters of each token."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.front, self.back = special_tokens_around(tokenizer)
        self._offsets = _offset_tokenizer(tokenizer)
        self.cuts_before_blanks = self._fuses_bytes = False
        self.greedy: tuple[str, ...] = ()
        if self._offsets is not None:
            settings = json.loads(self._offsets.to_str())
            model = settings["model"]
            self.cuts_before_blanks = _cuts_before_blanks(settings)
            self._fuses_bytes = model["type"] == "Unigram" and model["byte_fallback"]
            # Added tokens that swallow neighbouring blanks (RoBERTa's <mask>): a text that holds one
            # is tokenised whole.
            self.greedy = tuple(t["content"] for t in settings["added_tokens"] if _is_greedy(t))

    def alone(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text without special tokens."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        return [tuple(ids) for ids in encoded["input_ids"]]

    def spans(self, texts: Iterable[str]) -> dict[str, Spans]:
        """Each distinct text without special tokens, with the character span of every token."""
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return {}
        if self._offsets is not None:
            encoded: list[Any] = self._offsets.encode_batch(distinct, add_special_tokens=False)
            if self._fuses_bytes:
                encoded = [_bytes_by_character(one) for one in encoded]
            return dict(zip(distinct, encoded, strict=True))
        return {
            text: _align(self.tokenizer, text, ids)
            for text, ids in zip(distinct, self.alone(distinct), strict=True)
        }


def special_tokens_around(tokenizer: Any) -> tuple[Ids, Ids]:
    """What the tokenizer puts before and behind a text by default."""
    texts = ("a", "1", ".", tokenizer.decode([len(tokenizer) // 2]))
    for text in texts:
        with_special, bare = (
            tuple(tokenizer(text, add_special_tokens=add)["input_ids"]) for add in (True, False)
        )
        starts = [
            n
            for n in range(len(with_special) - len(bare) + 1)
            if bare and with_special[n : n + len(bare)] == bare
        ]
        # Two where an unknown word is the prefix's token again: try the next text.
        if len(starts) == 1:
            return with_special[: starts[0]], with_special[starts[0] + len(bare) :]
    raise UserError(
        f"tokenizer of {tokenizer.name_or_path} gives {', '.join(map(repr, texts))} other tokens with special tokens than"
        " without, so its prefix cannot be told; check its files"
    )


def prefix_name(tokenizer: Any, prefix: Sequence[int]) -> str:
    """For signatures: "0" for no prefix, "1" for BOS, else the text (``</s>``, ``[CLS]``)."""
    if tuple(prefix) == (tokenizer.bos_token_id,):
        return "1"
    return "".join(map(str, tokenizer.convert_ids_to_tokens(list(prefix)))) or "0"


def tokenizer_identity(tokenizer: Any) -> str:
    """Equal where token ids mean the same: tokens, 16 hex digits of the vocabulary's sha256."""
    meanings = sorted((number, token) for token, number in tokenizer.get_vocab().items())
    return f"{len(meanings)}-{hashlib.sha256(json.dumps(meanings).encode()).hexdigest()[:16]}"


def _offset_tokenizer(tokenizer: Any) -> Tokenizer | None:
    """A copy of the fast tokenizer without its post-processor.

    The post-processor of byte-level tokenizers trims white space from the spans (`` Paris`` would
    begin at its P), so that a token across the prompt's trailing blank could not be seen.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        return None
    # A copy: the tokenizer itself may be used by others, with its own settings.
    copy = Tokenizer.from_str(backend.to_str())
    copy.no_truncation()
    copy.no_padding()
    copy.encode_special_tokens = getattr(tokenizer, "split_special_tokens", False)
    copy.post_processor = Processors([])
    return copy


# Normalizers that change characters in place: a text's parts are normalised as in the text.
_LOCAL = {
    "BertNormalizer", "Precompiled", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip",
}  # fmt: skip


def _cuts_before_blanks(settings: Mapping[str, Any]) -> bool:
    """Whether text is always cut before a blank that follows a letter, digit or mark.

    So it is with GPT-2's pattern: no alternative of it has white space behind anything else, and
    none looks back. So it is where white space is dropped first and the words between are tokenised
    alone (BERT, XLM-R, T5), and where blanks become ▁ that begin a word, also the first (ALBERT,
    XGLM).
    """
    model, first, *others = settings["model"], *_steps(settings["pre_tokenizer"], "pretokenizers")
    kind = first.get("type")
    # BPE dropout draws other pieces each time: no text is tokenised as part of another.
    if model.get("dropout"):
        return False
    if kind == "ByteLevel":
        return settings["normalizer"] is None and first["use_regex"] and not others
    words = kind in {"BertPreTokenizer", "WhitespaceSplit", "Whitespace"} and all(
        # Both only cut further. A ▁ in front of the first word alone would change where text is cut.
        step["type"] in {"Punctuation", "Digits"}
        or (step["type"] == "Metaspace" and step["prepend_scheme"] != "first")
        for step in others
    )
    pieces = (
        kind == "Metaspace"
        and first["split"]
        and first["prepend_scheme"] == "always"
        and not others
    )
    return (words or pieces) and all(map(_is_local, _steps(settings["normalizer"], "normalizers")))


def _steps(settings: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    """A ``Sequence``'s parts, or the one part itself; one without a type where there is none."""
    if settings is not None and settings["type"] == "Sequence":
        return list(settings[name]) or [{}]
    return [settings or {}]


def _is_local(normalizer: Mapping[str, Any]) -> bool:
    if normalizer.get("type") != "Replace":
        return not normalizer or normalizer["type"] in _LOCAL
    # A pattern of plain characters without blanks cannot match across a cut before a blank.
    (pattern,) = normalizer["pattern"].values()
    return pattern == " {2,}" or (
        pattern.isprintable() and " " not in pattern and not set(pattern) & set("\\[](){}*+?^$|.")
    )


def _is_greedy(added_token: Mapping[str, Any]) -> bool:
    """Whether an added token holds a blank or reaches for its neighbours."""
    reaches = added_token["lstrip"] or added_token["rstrip"] or added_token["single_word"]
    return reaches or " " in added_token["content"]


def is_solid(character: str) -> bool:
    """A character after which a blank stays one: not white space, a mark, or normalised away."""
    return character.isalnum() or (character != "" and character in string.punctuation)


@dataclass(frozen=True, slots=True)
class _Aligned:
    """Spans found by looking for each piece in the text, for tokenizers that give none."""

    ids: list[int]
    offsets: list[tuple[int, int]]

    def char_to_token(self, position: int) -> int | None:
        """The first token that holds this character; None where no token does."""
        return next(
            (n for n, (start, end) in enumerate(self.offsets) if start <= position < end), None
        )

    def token_to_chars(self, token: int) -> tuple[int, int] | None:
        """A token's span."""
        return self.offsets[token]


def _bytes_by_character(encoded: Any) -> _Aligned:
    """One span per character: Unigram gives all bytes of a run of unknown characters one span."""
    ids, offsets, tokens = list(encoded.ids), list(encoded.offsets), encoded.tokens
    first = 0
    for (start, end), run in itertools.groupby(list(offsets)):
        last = first + len(list(run))
        raw = [BYTE_TOKEN.fullmatch(token) for token in tokens[first:last]]
        text = bytes.fromhex("".join(b[1] for b in raw if b)).decode(errors="replace")
        characters = [len(character.encode()) for character in text]
        # Not where characters were normalised away: then bytes and span do not belong together.
        if all(raw) and len(characters) == end - start and sum(characters) == last - first:
            offsets[first:last] = [
                (start + n, start + n + 1) for n, size in enumerate(characters) for _ in range(size)
            ]
        first = last
    return _Aligned(ids, offsets)


def _align(tokenizer: Any, text: str, ids: Ids) -> _Aligned:
    """Find each piece in the text, in order; ``UserError`` where hardly any piece is found.

    A piece's span begins where the one before ends, so that it has the white space before it.
    Pieces that are not in the text as they are (unknown or normalised) share what lies between
    those around them.
    """
    offsets: list[tuple[int, int]] = []
    place = waiting = missing = 0
    for piece in tokenizer.convert_ids_to_tokens(list(ids)):
        bare = piece.removeprefix("##").removesuffix("@@").removesuffix("</w>")
        surface = bare.replace("▁", " ").strip()
        # A lone ▁ behind unknown pieces is the next blank.
        wanted = re.escape(surface or " " * bool(waiting))
        found = re.compile(wanted, re.IGNORECASE).search(text, place)
        begin = found.start() if found else -1
        if piece == tokenizer.unk_token or begin < 0 or (not waiting and text[place:begin].strip()):
            waiting += 1
            missing += piece != tokenizer.unk_token
            continue
        if waiting:
            offsets += [(place, begin)] * waiting
            place, waiting = begin, 0
        blank = not surface and text[place : place + 1].isspace()
        end = begin + max(len(surface), blank)
        offsets.append((place, end))
        place = end
    if missing > len(ids) / 2:
        raise UserError(
            f"tokenizer of {tokenizer.name_or_path} gives no character offsets, and its pieces of {text[:60]!r} are not in that"
            " text; use a model with a tokenizer.json, or protocol paper without tails"
        )
    return _Aligned(list(ids), offsets + [(place, len(text))] * waiting)


BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")


def spellings(tokenizer: Any, token_ids: Sequence[int]) -> list[str]:
    """Tokens as text, for showing to a person; SentencePiece's ▁ is a blank.

    A byte that is not a whole character is written as ``<0xE6>``, and the token that completes the
    character names it: ``<0xE6>``, ``<0x8B>``, ``<0xBF>(拿)``.
    """
    shown = []
    unfinished = b""
    added = {token.content for token in tokenizer.added_tokens_decoder.values()}
    kind = _spelling_of(tokenizer)
    for token in map(str, tokenizer.convert_ids_to_tokens(list(token_ids))):
        raw = (
            None
            if token in added and not BYTE_TOKEN.fullmatch(token)
            else _token_bytes(token, kind)
        )
        text, unfinished = (token, b"") if raw is None else _readable(raw, unfinished)
        shown.append(text)
    return shown


def readable(tokenizer: Any, token_ids: Sequence[int]) -> str:
    """The text of several tokens; incomplete characters as ``spellings`` writes them."""
    text = str(tokenizer.decode(list(token_ids)))
    return "".join(spellings(tokenizer, token_ids)) if "\ufffd" in text else text


def _spelling_of(tokenizer: Any) -> str:
    """How tokens are written: ``bytes`` (GPT-2's table), ``pieces`` (▁, <0x0A>) or ``plain``."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        return "pieces" if hasattr(tokenizer, "sp_model") else "plain"
    decoder = b"" if backend.decoder is None else backend.decoder.__getstate__()
    if b'"ByteLevel"' in decoder:
        return "bytes"
    return "pieces" if "▁".encode() in decoder or b'"ByteFallback"' in decoder else "plain"


def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable bytes of Latin-1 as they are, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + n): byte for n, byte in enumerate(others)
    }


_BYTES = _byte_of_character()


def _token_bytes(token: str, kind: str) -> bytes | None:
    """A token's UTF-8 bytes; None where it is not written in its vocabulary's way."""
    if kind == "bytes":
        return (
            bytes(_BYTES[character] for character in token) if set(token) <= _BYTES.keys() else None
        )
    if kind == "pieces":
        byte = BYTE_TOKEN.fullmatch(token)
        return bytes.fromhex(byte[1]) if byte else token.replace("▁", " ").encode()
    return token.encode()


def _readable(raw: bytes, unfinished: bytes) -> tuple[str, bytes]:
    """A token's bytes as text, and those left over, as ``unfinished`` from the tokens before."""
    shown = ""
    if unfinished:
        text, taken, unfinished = _finish(unfinished, raw)
        shown += text
        raw = raw[taken:]
    while raw:
        try:
            return shown + raw.decode(), unfinished
        except UnicodeDecodeError as error:
            shown += raw[: error.start].decode() + _hex(raw[error.start : error.end])
            if error.reason == "unexpected end of data":
                return shown, raw[error.start :]
            raw = raw[error.end :]
    return shown, unfinished


def _finish(unfinished: bytes, raw: bytes) -> tuple[str, int, bytes]:
    """Continue a character: what to show, bytes of ``raw`` taken, what is unfinished."""
    for taken in range(1, len(raw) + 1):
        try:
            return f"{_hex(raw[:taken])}({(unfinished + raw[:taken]).decode()})", taken, b""
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                return "", 0, b""
    return _hex(raw), len(raw), unfinished + raw


def _hex(raw: bytes) -> str:
    return "".join(f"<0x{byte:02X}>" for byte in raw)


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
