"""Masked models: typed queries and pseudo-log-likelihood, many facts in a batch.

Typed query (Kassner, Dufter & Schütze 2021, section 3): a candidate of k pieces is scored in the template with k masks, as
the mean of the natural-log probabilities of its pieces, all masks unfilled at once. Pseudo-log-likelihood (Salazar et al.
2020): the sum over tokens of log p(token | all others), each masked in a copy of its own; ``within_word`` also masks the
tokens of the same word to its right (Kauf & Ivanova 2023), or the rest of a word gives its beginning away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fluent.console import UserError, note
from fluent.scoring.masked_contract import Ids, PieceScore, TypedQuery, TypedResult
from fluent.scoring.models import LoadedModel, load_model
from fluent.scoring.packed_linear import can_pack, pack
from fluent.scoring.positions import usable_positions

TOKEN_BUDGET = 2048
LOGITS_BYTES = 1 << 28
ENOUGH_TOKENS = 1024
"""A batch of so many tokens keeps the machine busy: it takes no sequence that is shorter than ``FULL`` of its longest."""
FULL = 0.9
_GAP = 1e-3


@dataclass(slots=True)
class _Copy:
    """One sequence to feed: ids with masks, the positions to read, and what to do with their ``[positions, vocabulary]`` rows."""

    ids: list[int]
    positions: list[int]
    take: Callable[[Tensor], None] = field(repr=False)


class MaskedScorer:
    """Scores with a masked model. token_budget: padded tokens a forward may have; memory is bounded by it.

    packed: put the weights in oneDNN's order where that is possible and, tried on one layer, right; a model that is still to
    be trained must not be packed.
    """

    def __init__(self, loaded: LoadedModel, *, token_budget: int = TOKEN_BUDGET, packed: bool = False) -> None:
        self.loaded = loaded
        self.token_budget = token_budget
        tokenizer = loaded.tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(f"tokenizer of model {loaded.name} has no mask token; choose a masked language model")
        self.mask: int = tokenizer.mask_token_id
        around = tokenizer("")["input_ids"]
        opening = 1 if around and around[0] in (tokenizer.cls_token_id, tokenizer.bos_token_id) else 0
        self.before, self.after = list(around[:opening]), list(around[opening:])
        self.max_length = usable_positions(loaded.model)
        self.rows_first = self._head_takes_rows()
        if packed and can_pack(loaded.model) is None:
            pack(loaded.model)

    def pieces(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, without special tokens."""
        return pieces_of(self.loaded.tokenizer, texts)

    def typed(self, queries: Sequence[TypedQuery], *, on_batch: Callable[[int, int], None] | None = None) -> list[TypedResult]:
        """Score every candidate of every query. Left and right text are tokenised apart, mask ids stand between."""
        texts = {text: () for query in queries for text in (query.left, query.right, *query.candidates)}
        ids = dict(zip(texts, self.pieces(list(texts)), strict=True))
        found: list[dict[Ids, tuple[float, ...]]] = [{} for _ in queries]
        untyped: list[dict[int, PieceScore]] = [{} for _ in queries]
        copies = []
        grouped: dict[tuple[str, ...], dict[int, tuple[list[Ids], Tensor]]] = {}  # facts of a relation share their candidates
        for number, query in enumerate(queries):
            by_length = grouped.get(query.candidates)
            if by_length is None:
                by_length = grouped[query.candidates] = _by_length(ids[text] for text in query.candidates)
            for k in {**dict.fromkeys(query.masks), **by_length}:
                if k == 0:
                    continue
                usual = (*ids[query.left], *[self.mask] * k, *ids[query.right])
                sequence, places = query.layouts.get(k, (usual, range(len(ids[query.left]), len(ids[query.left]) + k)))
                take = self._typed_reader(found[number], untyped[number], *by_length.get(k, ([], torch.empty((0, k), dtype=torch.long))))
                copies.append(_Copy([*self.before, *sequence, *self.after], [len(self.before) + place for place in places], take))
        self._run(copies, on_batch)
        return [
            TypedResult(tuple(self._piece_score(ids[text], found[number].get(ids[text], ())) for text in query.candidates), untyped[number])
            for number, query in enumerate(queries)
        ]

    def pseudo_log_likelihood(
        self, texts: Sequence[str], *, within_word: bool = False, spans: Sequence[tuple[int, int]] | None = None
    ) -> list[PieceScore]:
        """Each text's tokens, every one predicted from the others. spans: only tokens that overlap characters [start, end)."""
        if not texts:
            return []
        encoded = self.loaded.tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=spans is not None)
        scored: list[list[int]] = []
        values: list[list[float]] = []
        copies = []
        for number in range(len(texts)):
            ids = list(encoded["input_ids"][number])
            words = encoded.word_ids(number) if within_word else list(range(len(ids)))
            wanted = list(range(len(ids)))
            if spans is not None:
                start, end = spans[number]
                wanted = [i for i, (first, last) in enumerate(encoded["offset_mapping"][number]) if first < end and last > start]
            scored.append([ids[i] for i in wanted])
            values.append([float("nan")] * len(wanted))
            for place, i in enumerate(wanted):
                masked = [self.mask if j == i or (j > i and words[j] == words[i] is not None) else token for j, token in enumerate(ids)]
                sequence = [*self.before, *masked, *self.after]
                copies.append(_Copy(sequence, [len(self.before) + i], _token_reader(values[number], place, ids[i])))
        self._run(copies, None)
        return [self._piece_score(tuple(ids), tuple(logprobs)) for ids, logprobs in zip(scored, values, strict=True)]

    def likeliest(self, texts: Sequence[tuple[str, str]], number: int) -> list[list[str]]:
        """The ``number`` likeliest tokens for one mask between each pair of texts, likeliest first, as the tokenizer spells them."""
        best: list[list[str]] = [[] for _ in texts]
        lefts, rights = (self.pieces([pair[side] for pair in texts]) for side in (0, 1))
        copies = []
        for place, (left, right) in enumerate(zip(lefts, rights, strict=True)):

            def take(rows: Tensor, place: int = place) -> None:
                tokens = rows[0].topk(number).indices.tolist()
                best[place] = [self.loaded.tokenizer.decode([token]).strip() for token in tokens]

            copies.append(_Copy([*self.before, *left, self.mask, *right, *self.after], [len(self.before) + len(left)], take))
        self._run(copies, None)
        return best

    def _piece_score(self, ids: Ids, logprobs: tuple[float, ...]) -> PieceScore:
        unknown = self.loaded.tokenizer.unk_token_id
        return PieceScore(ids, logprobs, unknown is not None and unknown in ids)

    def _typed_reader(
        self, found: dict[Ids, tuple[float, ...]], untyped: dict[int, PieceScore], candidates: list[Ids], wanted: Tensor
    ) -> Callable[[Tensor], None]:
        def take(rows: Tensor) -> None:
            values = rows[torch.arange(len(rows), device=rows.device), wanted.to(rows.device)].cpu().double()
            found.update(zip(candidates, map(tuple, values.tolist()), strict=True))
            best, tokens = rows.max(dim=-1)
            untyped[len(rows)] = self._piece_score(tuple(tokens.tolist()), tuple(best.cpu().double().tolist()))

        return take

    def _run(self, copies: Sequence[_Copy], on_batch: Callable[[int, int], None] | None) -> None:
        """Feed all copies, longest first, in right-padded batches, and hand each its rows of log-probabilities."""
        longest = max((len(copy.ids) for copy in copies), default=0)
        if self.max_length is not None and longest > self.max_length:
            raise UserError(f"a sentence of {longest} tokens is longer than the {self.max_length} positions of model {self.loaded.name}")
        done = 0
        for batch in self._batches(sorted(copies, key=lambda copy: -len(copy.ids))):
            rows = self._rows(batch)
            if torch.isnan(rows).any():
                text = self.loaded.tokenizer.decode(batch[0].ids)
                raise UserError(f"model {self.loaded.name} gives NaN in a batch that begins with {text!r}; try --dtype float32")
            start = 0
            for copy in batch:
                copy.take(rows[start : start + len(copy.positions)])
                start += len(copy.positions)
            done += len(batch)
            if on_batch is not None:
                on_batch(done, len(copies))

    def _batches(self, copies: Sequence[_Copy]) -> Iterator[list[_Copy]]:
        vocabulary = self.loaded.model.config.vocab_size
        most_rows = max(1, LOGITS_BYTES // (4 * vocabulary))
        batch: list[_Copy] = []
        rows = 0
        for copy in copies:
            more = len(copy.positions) if self.rows_first else len(copy.ids)
            padded = len(batch) * len(batch[0].ids) if batch else 0
            mostly_padding = padded >= ENOUGH_TOKENS and len(copy.ids) < FULL * len(batch[0].ids)
            if batch and (mostly_padding or padded + len(batch[0].ids) > self.token_budget or rows + more > most_rows):
                yield batch
                batch, rows = [], 0
            batch.append(copy)
            rows += more
        if batch:
            yield batch

    def _rows(self, batch: Sequence[_Copy]) -> Tensor:
        """fp32 log-probabilities ``[positions of the whole batch, vocabulary]``."""
        width = max(len(copy.ids) for copy in batch)
        ids = torch.full((len(batch), width), self.loaded.tokenizer.pad_token_id or 0)
        attention = torch.zeros((len(batch), width), dtype=torch.long)
        for row, copy in enumerate(batch):
            ids[row, : len(copy.ids)] = torch.tensor(copy.ids)
            attention[row, : len(copy.ids)] = 1
        where = torch.tensor([row for row, copy in enumerate(batch) for _ in copy.positions])
        positions = torch.tensor([position for copy in batch for position in copy.positions])
        device = self.loaded.device
        inputs = {"input_ids": ids.to(device), "attention_mask": attention.to(device)}
        return torch.log_softmax(self._logits(inputs, where.to(device), positions.to(device), self.rows_first), dim=-1, dtype=torch.float32)

    @torch.inference_mode()
    def _logits(self, inputs: dict[str, Tensor], where: Tensor, positions: Tensor, rows_first: bool) -> Tensor:
        """Logits of the wanted rows; rows_first: cut the body's output before the head, which is half of the work, sees it."""
        model = self.loaded.model
        if not rows_first:
            return model(**inputs).logits[where, positions]

        def keep_rows(_module: Any, _inputs: Any, output: Any) -> Any:
            output["last_hidden_state"] = output["last_hidden_state"][where, positions][None]
            return output

        hook = model.base_model.register_forward_hook(keep_rows)
        try:
            return model(**inputs).logits[0]
        finally:
            hook.remove()

    def _head_takes_rows(self) -> bool:
        """Whether cutting rows before the head gives the same logits; told where not."""
        sequence = [*self.before, *[self.mask] * 3, *self.after]
        inputs = {"input_ids": torch.tensor([sequence, sequence], device=self.loaded.device)}
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        where, positions = (torch.tensor(values, device=self.loaded.device) for values in ([0, 1, 1], [1, 0, 2]))
        whole = self._logits(inputs, where, positions, False).float()
        try:
            gap = float((self._logits(inputs, where, positions, True).float() - whole).abs().max())
        except Exception as error:  # a model whose body or head works otherwise: the plain way is right
            note(f"masked model: every position goes through the head ({type(error).__name__} when only wanted rows did)")
            return False
        return gap <= (_GAP if self.loaded.dtype == "float32" else 1.0)


def pieces_of(tokenizer: Any, texts: Sequence[str]) -> list[Ids]:
    """Token ids of each text, without special tokens."""
    return [tuple(ids) for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]] if texts else []


def _by_length(candidates: Iterable[Ids]) -> dict[int, tuple[list[Ids], Tensor]]:
    """Number of pieces -> the candidates that have so many, each once, also as a tensor ``[candidates, pieces]``."""
    groups: dict[int, list[Ids]] = {}
    for candidate in dict.fromkeys(candidates):
        groups.setdefault(len(candidate), []).append(candidate)
    return {k: (same_length, torch.tensor(same_length, dtype=torch.long)) for k, same_length in groups.items()}


def _token_reader(values: list[float], place: int, token: int) -> Callable[[Tensor], None]:
    def take(rows: Tensor) -> None:
        values[place] = float(rows[0, token])

    return take


def load_masked_scorer(
    model: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    trust_remote_code: bool = False,
    token_budget: int = TOKEN_BUDGET,
) -> MaskedScorer:
    """Load a masked model (see ``models.load_model``) as a scorer."""
    loaded = load_model(model, kind="masked", device=device, dtype=dtype, revision=revision, trust_remote_code=trust_remote_code)
    return MaskedScorer(loaded, token_budget=token_budget, packed=True)
