"""Masked models: typed queries and pseudo-log-likelihood, many facts in a batch.

Typed query (Kassner, Dufter & Schütze 2021, section 3): a candidate of k pieces is scored in the template with k masks, as
the mean of the natural-log probabilities of its pieces, all masks unfilled at once. Pseudo-log-likelihood (Salazar et al.
2020): the sum over tokens of log p(token | all others), each masked in a copy of its own; ``within_word`` also masks the
tokens of the same word to its right (Kauf & Ivanova 2023), or the rest of a word gives its beginning away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fluent_mlama.console import UserError, note
from fluent_mlama.scoring.checking import seen_gaps
from fluent_mlama.scoring.contract import ScorerDescription, Tokenisation
from fluent_mlama.scoring.masked_check import choose_batches
from fluent_mlama.scoring.masked_contract import Ids, PieceScore, TypedQuery, TypedResult
from fluent_mlama.scoring.masked_network import Copy, MaskedNetwork
from fluent_mlama.scoring.models import LoadedModel, load_model, versions
from fluent_mlama.scoring.tokens import (
    Context,
    Filling,
    SlotTokeniser,
    SlotTokens,
    prefix_name,
    readable,
    tokenizer_identity,
    tokens_in,
)

TOKEN_BUDGET = 2048
_ANY_WORDS = ("Paris", "one", "the", "music")
"""Words that show how the text around a slot is tokenised when something fills it."""


class MaskedScorer:
    """Scores with a masked model, in batches that are right for it (``masked_check.py``).

    token_budget: padded tokens a forward may have; memory is bounded by it. packed: put the weights in oneDNN's order where
    that is possible and right; a model that is still to be trained must not be packed.
    """

    def __init__(
        self, loaded: LoadedModel, *, token_budget: int = TOKEN_BUDGET, packed: bool = False
    ) -> None:
        self.loaded = loaded
        tokenizer = loaded.tokenizer
        if tokenizer.mask_token_id is None:
            raise UserError(
                f"tokenizer of model {loaded.name} has no mask token; choose a masked language model"
            )
        self.mask: int = tokenizer.mask_token_id
        self.tokeniser = SlotTokeniser(tokenizer)
        self.before, self.after = self.tokeniser.text.front, self.tokeniser.text.back
        self.tokenizer_identity = tokenizer_identity(tokenizer)
        self.network = MaskedNetwork(loaded, token_budget)
        self.choice = choose_batches(
            self.network, (self.before, self.after), self.mask, packed=packed
        )

    def describe(self, tokenisation: Tokenisation = "separate") -> ScorerDescription:
        """What this scorer is; tokenisation: as the caller's texts are cut."""
        return ScorerDescription(
            model=self.loaded.name,
            revision=self.loaded.revision,
            dtype=self.loaded.dtype,
            device=str(self.loaded.device),
            path=self.network.batching,
            path_reason=self.choice.reason,
            bos=prefix_name(self.loaded.tokenizer, self.before),
            self_check=self.choice.record,
            versions=versions(),
            tokenizer=self.tokenizer_identity,
        )

    def pieces(self, texts: Sequence[str]) -> list[Ids]:
        """Token ids of each text, without special tokens."""
        return self.tokeniser.text.alone(texts)

    def typed(
        self, queries: Sequence[TypedQuery], *, on_batch: Callable[[int, int], None] | None = None
    ) -> list[TypedResult]:
        """Score every candidate of every query, each tokenised in its sentence (``tokens.SlotTokeniser``)."""
        found: list[dict[int, tuple[float, ...]]] = [{} for _ in queries]
        untyped: list[dict[int, PieceScore]] = [{} for _ in queries]
        copies = []
        pieces = []
        wanted: dict[
            tuple[Filling, Context], Tensor
        ] = {}  # [candidates, pieces]; facts of a relation share theirs
        for number, (query, slot) in enumerate(zip(queries, self._slots(queries), strict=True)):
            filling = slot.filling
            pieces.append(filling.pieces)
            for context, candidates in self._contexts(query, filling).items():
                if (filling, context) not in wanted:
                    ids = [filling.pieces[candidate] for candidate in candidates]
                    wanted[filling, context] = torch.tensor(ids, dtype=torch.long).reshape(
                        -1, context[1]
                    )
                answer = untyped[number] if context == filling.usual(context[1]) else {}
                take = self._typed_reader(
                    found[number], answer, candidates, wanted[filling, context]
                )
                copies.append(self._masked_copy(slot, context, query.layouts.get(context[1]), take))
        self.network.run(copies, on_batch)
        return [
            TypedResult(
                tuple(self._piece_score(ids, scores.get(n, ())) for n, ids in enumerate(its)),
                answers,
            )
            for its, scores, answers in zip(pieces, found, untyped, strict=True)
        ]

    def _slots(self, queries: Sequence[TypedQuery]) -> list[SlotTokens]:
        """Candidates in their sentences; alone where a query has layouts of its own."""
        usual = [query for query in queries if not query.layouts]
        slots = iter(
            self.tokeniser.tokenise(
                [(query.left, query.right, query.candidates) for query in usual]
            )
        )
        alone: dict[tuple[str, ...], SlotTokens] = {}
        for query in queries:
            if query.layouts and query.candidates not in alone:
                alone[query.candidates] = SlotTokens(
                    (), (), self.tokeniser.fill("", "", query.candidates)
                )
        return [alone[query.candidates] if query.layouts else next(slots) for query in queries]

    def _contexts(self, query: TypedQuery, filling: Filling) -> dict[Context, tuple[int, ...]]:
        """The forwards that a query needs: each context with its candidates, and one for every untyped number of masks."""
        most = query.max_masks
        contexts = {
            c: numbers for c, numbers in filling.contexts.items() if most is None or c[1] <= most
        }
        if query.untyped:
            unknown = self.loaded.tokenizer.unk_token_id
            known = [
                c
                for c, numbers in contexts.items()
                if any(unknown not in filling.pieces[n] for n in numbers)
            ]
            longest = max((masks for _, masks, _ in known), default=0)
            contexts = {filling.usual(masks): () for masks in range(1, longest + 1)} | contexts
        return contexts

    def _masked_copy(
        self,
        slot: SlotTokens,
        context: Context,
        layout: tuple[Ids, Sequence[int]] | None,
        take: Callable[[Tensor], None],
    ) -> Copy:
        """The sequence to feed. layout: token ids and mask positions instead of masks between left and right."""
        left, masks, right = context
        if layout is None:
            left = slot.left + left
            sequence = (*left, *[self.mask] * masks, *right, *slot.right)
            layout = sequence, range(len(left), len(left) + masks)
        sequence, places = layout
        return Copy(
            [*self.before, *sequence, *self.after],
            [len(self.before) + place for place in places],
            take,
        )

    def pseudo_log_likelihood(
        self,
        texts: Sequence[str],
        *,
        within_word: bool = False,
        spans: Sequence[tuple[int, int]] | None = None,
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
            wanted = (
                range(len(ids)) if spans is None else range(*tokens_in(where[text], *spans[number]))
            )
            scored.append([ids[i] for i in wanted])
            values.append([float("nan")] * len(wanted))
            for place, i in enumerate(wanted):
                masked = [
                    self.mask if j == i or (j > i and words[j] == words[i] is not None) else token
                    for j, token in enumerate(ids)
                ]
                sequence = [*self.before, *masked, *self.after]
                copies.append(
                    Copy(
                        sequence,
                        [len(self.before) + i],
                        _token_reader(values[number], place, ids[i]),
                    )
                )
        self.network.run(copies)
        return [
            self._piece_score(tuple(ids), tuple(logprobs))
            for ids, logprobs in zip(scored, values, strict=True)
        ]

    def likeliest(self, texts: Sequence[tuple[str, str]], number: int) -> list[list[str]]:
        """The ``number`` likeliest tokens for one mask between each pair of texts, likeliest first, as the tokenizer spells them."""
        best: list[list[str]] = [[] for _ in texts]
        copies = []
        for place, slot in enumerate(
            self.tokeniser.tokenise([(left, right, _ANY_WORDS) for left, right in texts])
        ):

            def take(rows: Tensor, place: int = place) -> None:
                tokens = rows[0].topk(number).indices.tolist()
                best[place] = [readable(self.loaded.tokenizer, [token]).strip() for token in tokens]

            copies.append(self._masked_copy(slot, slot.filling.usual(1), None, take))
        self.network.run(copies)
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
            values = (
                rows[torch.arange(len(rows), device=rows.device), wanted.to(rows.device)]
                .cpu()
                .double()
            )
            found.update(zip(candidates, map(tuple, values.tolist()), strict=True))
            best, tokens = rows.max(dim=-1)
            untyped[len(rows)] = self._piece_score(
                tuple(tokens.tolist()), tuple(best.cpu().double().tolist())
            )

        return take


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
    loaded = load_model(
        model,
        kind="masked",
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    scorer = MaskedScorer(loaded, token_budget=token_budget, packed=True)
    note(
        f"masked batches: {scorer.network.batching} ({scorer.choice.reason}){seen_gaps(scorer.choice.record)}"
    )
    return scorer
