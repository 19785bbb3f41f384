"""Tokenizers made from the training corpus: a token a character, a token a word, or byte-level BPE.

Words are found by longest match in a word list, so that text without spaces has words too; where no list is given, words
are what stands between spaces, which will not do for such text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from fluent_mlama.console import UserError

UNKNOWN, BOS, EOS, PAD = "<unk>", "<s>", "</s>", "<pad>"
SPECIAL = (UNKNOWN, BOS, EOS, PAD)
KINDS = ("char", "word", "bpe")
_LONG_WORD = 12


def make_tokenizer(
    kind: str, lines: Sequence[str], vocabulary_size: int, words: Iterable[str] = ()
) -> PreTrainedTokenizerFast:
    """A tokenizer over ``lines`` with at most ``vocabulary_size`` tokens (the most frequent ones), special tokens included.

    words: the word list for ``word``. It adds no BOS or EOS by itself.
    """
    if kind == "bpe":
        made = _bpe(lines, vocabulary_size)
    elif kind == "char":
        made = _characters(lines, vocabulary_size)
    else:
        made = _words(lines, vocabulary_size, set(words))
    return PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token=UNKNOWN, bos_token=BOS, eos_token=EOS, pad_token=PAD
    )


def _numbered(counts: Counter[str], vocabulary_size: int) -> dict[str, int]:
    """Token -> id: special tokens first, then by frequency, ties in code point order."""
    ranked = sorted(counts, key=lambda token: (-counts[token], token))[
        : max(0, vocabulary_size - len(SPECIAL))
    ]
    return {token: number for number, token in enumerate([*SPECIAL, *ranked])}


def _characters(lines: Sequence[str], vocabulary_size: int) -> Tokenizer:
    counts = Counter(character for line in lines for character in line)
    made = Tokenizer(models.WordLevel(_numbered(counts, vocabulary_size), unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    return made


def _words(lines: Sequence[str], vocabulary_size: int, listed: set[str]) -> Tokenizer:
    spaced = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
    )
    counts: Counter[str] = Counter()
    for line in lines:
        for piece, _ in spaced.pre_tokenize_str(line):
            counts.update(_longest_match(piece, listed) if listed else [piece])
    longest = max(map(len, counts), default=0)
    if not listed and longest > 4 * _LONG_WORD:
        raise UserError(
            f"--tokenizer word: the corpus has 'words' of {longest} characters, so it has no spaces; give a word list with --words"
        )
    counts.update({character: 0 for word in counts for character in word} if listed else {})
    vocabulary = _numbered(counts, vocabulary_size)
    if not listed:
        made = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
        made.pre_tokenizer = spaced
        return made
    made = Tokenizer(
        models.WordPiece(
            vocabulary,
            unk_token=UNKNOWN,
            continuing_subword_prefix="",
            max_input_chars_per_word=10_000,
        )
    )
    known = "".join(re.escape(token) for token in vocabulary if len(token) == 1)
    strange = pre_tokenizers.Split(
        Regex(f"[^{known}]"), "isolated"
    )  # a strange character alone is unknown, not its sentence
    made.pre_tokenizer = pre_tokenizers.Sequence([spaced, strange])
    return made


def _longest_match(text: str, listed: set[str]) -> list[str]:
    """Left to right, the longest listed word at each place, else one character (what WordPiece does with the same list)."""
    found, start = [], 0
    reach = max(map(len, listed))
    while start < len(text):
        end = next(
            (
                end
                for end in range(min(len(text), start + reach), start + 1, -1)
                if text[start:end] in listed
            ),
            start + 1,
        )
        found.append(text[start:end])
        start = end
    return found


def _bpe(lines: Sequence[str], vocabulary_size: int) -> Tokenizer:
    made = Tokenizer(models.BPE(unk_token=None))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    if vocabulary_size < len(SPECIAL) + len(alphabet):
        raise UserError(
            f"--vocabulary-size {vocabulary_size}: byte-level BPE needs at least {len(SPECIAL) + len(alphabet)}"
        )
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    return made
