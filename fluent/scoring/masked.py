"""Masked models: typed queries and pseudo-log-likelihood, many facts in a batch.

Typed query (Kassner, Dufter & Schütze 2021, section 3): a candidate of k pieces is scored in the template with k masks, as
the mean of the natural-log probabilities of its pieces, all masks unfilled at once. Pseudo-log-likelihood (Salazar et al.
2020): the sum over tokens of log p(token | all others), each masked in a copy of its own; ``within_word`` also masks the
tokens of the same word to its right (Kauf & Ivanova 2023), or the rest of a word gives its beginning away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fluent.console import UserError, note
from fluent.scoring.masked_contract import Ids, PieceScore, TypedQuery, TypedResult
from fluent.scoring.models import LoadedModel, load_model
from fluent.scoring.packed_linear import can_pack, pack
from fluent.scoring.positions import usable_positions
from fluent.scoring.spelling import readable
from fluent.scoring.tokens import Context, Filling, SlotTokeniser, SlotTokens, tokens_in

TOKEN_BUDGET = 2048
LOGITS_BYTES = 1 << 28
ENOUGH_TOKENS = 1024
"""A batch of so many tokens keeps the machine busy: it takes no sequence that is shorter than ``FULL`` of its longest."""
FULL = 0.9
_GAP = 1e-3
_ANY_WORDS = ("Paris", "one", "the", "music")
"""Words that show how the text around a slot is tokenised when something fills it."""


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
        self.tokeniser = SlotTokeniser(tokenizer)
        self.before, self.after = self.tokeniser.text.front, self.tokeniser.text.back
        self.max_length = usable_positions(loaded.model)
        self.rows_first = self._head_takes_rows()
        if packed and can_pack(loaded.model) is None:
            pack(loaded.model)

    def pieces(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, without special tokens."""
        return self.tokeniser.text.alone(texts)

    def typed(self, queries: Sequence[TypedQuery], *, on_batch: Callable[[int, int], None] | None = None) -> list[TypedResult]:
        """Score every candidate of every query, each tokenised in its sentence (``tokens.SlotTokeniser``)."""
        found: list[dict[int, tuple[float, ...]]] = [{} for _ in queries]
        untyped: list[dict[int, PieceScore]] = [{} for _ in queries]
        copies = []
        pieces = []
        wanted: dict[tuple[Filling, Context], Tensor] = {}  # [candidates, pieces]; facts of a relation share theirs
        for number, (query, slot) in enumerate(zip(queries, self._slots(queries), strict=True)):
            filling = slot.filling
            pieces.append(filling.pieces)
            for context, candidates in self._contexts(query, filling).items():
                if (filling, context) not in wanted:
                    ids = [filling.pieces[candidate] for candidate in candidates]
                    wanted[filling, context] = torch.tensor(ids, dtype=torch.long).reshape(-1, context[1])
                answer = untyped[number] if context == filling.usual(context[1]) else {}
                take = self._typed_reader(found[number], answer, candidates, wanted[filling, context])
                copies.append(self._masked_copy(slot, context, query.layouts.get(context[1]), take))
        self._run(copies, on_batch)
        return [
            TypedResult(tuple(self._piece_score(ids, scores.get(n, ())) for n, ids in enumerate(its)), answers)
            for its, scores, answers in zip(pieces, found, untyped, strict=True)
        ]

    def _slots(self, queries: Sequence[TypedQuery]) -> list[SlotTokens]:
        """Candidates in their sentences; alone where a query has layouts of its own."""
        usual = [query for query in queries if not query.layouts]
        slots = iter(self.tokeniser.tokenise([(query.left, query.right, query.candidates) for query in usual]))
        alone: dict[tuple[str, ...], SlotTokens] = {}
        for query in queries:
            if query.layouts and query.candidates not in alone:
                alone[query.candidates] = SlotTokens((), (), self.tokeniser.fill("", "", query.candidates))
        return [alone[query.candidates] if query.layouts else next(slots) for query in queries]

    def _contexts(self, query: TypedQuery, filling: Filling) -> dict[Context, tuple[int, ...]]:
        """The forwards that a query needs: each context with its candidates, and one for every untyped number of masks."""
        most = query.max_masks
        contexts = {c: numbers for c, numbers in filling.contexts.items() if most is None or c[1] <= most}
        if query.untyped:
            unknown = self.loaded.tokenizer.unk_token_id
            known = [c for c, numbers in contexts.items() if any(unknown not in filling.pieces[n] for n in numbers)]
            longest = max((masks for _, masks, _ in known), default=0)
            contexts = {filling.usual(masks): () for masks in range(1, longest + 1)} | contexts
        return contexts

    def _masked_copy(
        self, slot: SlotTokens, context: Context, layout: tuple[Ids, Sequence[int]] | None, take: Callable[[Tensor], None]
    ) -> _Copy:
        """The sequence to feed. layout: token ids and mask positions instead of masks between left and right."""
        left, masks, right = context
        if layout is None:
            left = slot.left + left
            sequence = (*left, *[self.mask] * masks, *right, *slot.right)
            layout = sequence, range(len(left), len(left) + masks)
        sequence, places = layout
        return _Copy([*self.before, *sequence, *self.after], [len(self.before) + place for place in places], take)

    def pseudo_log_likelihood(
        self, texts: Sequence[str], *, within_word: bool = False, spans: Sequence[tuple[int, int]] | None = None
    ) -> list[PieceScore]:
        """Each text's tokens, every one predicted from the others. spans: only tokens that overlap characters [start, end)."""
        if not texts:
            return []
        encoded = self.loaded.tokenizer(list(texts), add_special_tokens=False)
        where = self.tokeniser.text.spans(texts) if spans is not None else {}
        scored: list[list[int]] = []
        values: list[list[float]] = []
        copies = []
        for number, text in enumerate(texts):
            ids = list(encoded["input_ids"][number])
            words = encoded.word_ids(number) if within_word else list(range(len(ids)))
            wanted = range(len(ids)) if spans is None else range(*tokens_in(where[text], *spans[number]))
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
        copies = []
        for place, slot in enumerate(self.tokeniser.tokenise([(left, right, _ANY_WORDS) for left, right in texts])):

            def take(rows: Tensor, place: int = place) -> None:
                tokens = rows[0].topk(number).indices.tolist()
                best[place] = [readable(self.loaded.tokenizer, [token]).strip() for token in tokens]

            copies.append(self._masked_copy(slot, slot.filling.usual(1), None, take))
        self._run(copies, None)
        return best

    def _piece_score(self, ids: Ids, logprobs: tuple[float, ...]) -> PieceScore:
        unknown = self.loaded.tokenizer.unk_token_id
        return PieceScore(ids, logprobs, unknown is not None and unknown in ids)

    def _typed_reader(
        self,
        found: dict[int, tuple[float, ...]],
        untyped: dict[int, PieceScore],
        candidates: tuple[int, ...],
        wanted: Tensor,
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
