"""Tokens for showing to a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer

BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")


def spellings(tokenizer: Any, token_ids: Sequence[int]) -> list[str]:
    """Tokens for showing to a person, as the text that each stands for; SentencePiece's ▁ is a blank.

    A byte that is not a whole character is written as ``<0xE6>``, and the token that completes the character names
    it: ``<0xE6>``, ``<0x8B>``, ``<0xBF>(拿)``.
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
    """The text of several tokens; with bytes that make no character as ``spellings`` writes them."""
    text = str(tokenizer.decode(list(token_ids)))
    return "".join(spellings(tokenizer, token_ids)) if "\ufffd" in text else text


def _spelling_of(tokenizer: Any) -> str:
    """How the vocabulary writes text: as ``bytes`` (GPT-2's characters for bytes), as ``pieces`` (▁, <0x0A>) or ``plain``."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        return "pieces" if hasattr(tokenizer, "sp_model") else "plain"
    decoder = b"" if backend.decoder is None else backend.decoder.__getstate__()
    if b'"ByteLevel"' in decoder:
        return "bytes"
    return "pieces" if "▁".encode() in decoder or b'"ByteFallback"' in decoder else "plain"


def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable bytes of Latin-1 stand for themselves, the others for the characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(0x100 + n): byte for n, byte in enumerate(others)
    }


_BYTES = _byte_of_character()


def _token_bytes(token: str, kind: str) -> bytes | None:
    """The UTF-8 bytes that a token stands for; None for one that is not written in its vocabulary's way."""
    if kind == "bytes":
        return (
            bytes(_BYTES[character] for character in token) if set(token) <= _BYTES.keys() else None
        )
    if kind == "pieces":
        byte = BYTE_TOKEN.fullmatch(token)
        return bytes.fromhex(byte[1]) if byte else token.replace("▁", " ").encode()
    return token.encode()


def _readable(raw: bytes, unfinished: bytes) -> tuple[str, bytes]:
    """A token's bytes as text, and those at its end that begin a character; unfinished: the same of the tokens before."""
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
    """Go on with a character: what to show, how many bytes of ``raw`` it took, and what is unfinished still."""
    for taken in range(1, len(raw) + 1):
        try:
            return f"{_hex(raw[:taken])}({(unfinished + raw[:taken]).decode()})", taken, b""
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                return "", 0, b""
    return _hex(raw), len(raw), unfinished + raw


def _hex(raw: bytes) -> str:
    return "".join(f"<0x{byte:02X}>" for byte in raw)
