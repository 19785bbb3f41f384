"""Requests ▶ packs: everything about a file's scoring that needs no model.

Requests with equal prompts form one group, whose candidates share one tree (or several, where there are many); groups
fill packs up to the token budget in the order of their first request. All of it is decided from the whole file before
anything is scored, so that a resumed run computes the same forwards as an undisturbed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fluent_mlama.scoring.contract import Plan, Request, Tokenisation
from fluent_mlama.scoring.tokens import PromptTokeniser, RequestTokens
from fluent_mlama.scoring.trie import Ids, Part, cut

GROUP_LIMIT = 256
"""Requests with an equal prompt that share a group; more of them would make a pack too coarse to resume from."""


@dataclass(frozen=True, slots=True)
class Group:
    """Requests (by number) with the same prompt ids, and the parts of their common candidate set, a tree each."""

    numbers: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Nodes fed for the whole group."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True)
class PlanState:
    """The engine's side of a plan: tokens by request (None if unscorable) and the groups of each pack."""

    tokens: tuple[RequestTokens | None, ...]
    packs: tuple[tuple[Group, ...], ...]


def make_plan(
    requests: Sequence[Request],
    tokenisation: Tokenisation,
    tokeniser: PromptTokeniser,
    *,
    token_budget: int,
    max_length: int | None,
    share_prompts: bool = True,
    rowless: frozenset[int] = frozenset(),
) -> Plan:
    """Tokenise, group and pack ``requests``. ``max_length``: positions the model has, None if unlimited.

    rowless: tokens that the model has no embedding for.
    share_prompts=False scores equal prompts as often as they occur (for measuring what sharing brings).
    """
    unscorable: dict[int, str] = {}
    tokens: list[RequestTokens | None] = []
    members: dict[tuple[Ids, int], list[int]] = {}
    seen: dict[Ids, int] = {}
    for number, found in enumerate(tokeniser.tokenise(requests, tokenisation)):
        reason = _trouble(requests[number], found, tokeniser, max_length) or _rowless(
            found, tokeniser, rowless
        )
        tokens.append(None if reason else found)
        if reason:
            unscorable[number] = reason
            continue
        count = seen[found.prompt] = seen.get(found.prompt, -1) + 1
        members.setdefault(
            (found.prompt, count // GROUP_LIMIT if share_prompts else count), []
        ).append(number)
    groups = [_group(prompt, numbers, tokens) for (prompt, _), numbers in members.items()]
    packs = _fill(groups, token_budget)
    numbers = tuple(
        tuple(sorted(number for group in pack for number in group.numbers)) for pack in packs
    )
    return Plan(tuple(requests), tokenisation, numbers, unscorable, PlanState(tuple(tokens), packs))


def _group(prompt: Ids, numbers: list[int], tokens: Sequence[RequestTokens | None]) -> Group:
    sequences = {
        c.sequence
        for number in numbers
        if (found := tokens[number]) is not None
        for c in found.candidates
    }
    return Group(tuple(numbers), tuple(cut(prompt, sequences)))


def _fill(groups: Sequence[Group], token_budget: int) -> tuple[tuple[Group, ...], ...]:
    """Next fit: order is kept, a group that alone exceeds the budget is a pack of its own."""
    packs: list[list[Group]] = []
    used = 0
    for group in groups:
        if not packs or used + group.size > token_budget:
            packs.append([])
            used = 0
        packs[-1].append(group)
        used += group.size
    return tuple(tuple(pack) for pack in packs)


def _trouble(
    request: Request, found: RequestTokens, tokeniser: PromptTokeniser, max_length: int | None
) -> str | None:
    """Why a request cannot be scored, or None."""
    if not found.prompt:
        return f"prompt {request.prompt!r} has no tokens (tokenizer {tokeniser.tokenizer.name_or_path} puts no BOS in front)"
    longest = len(found.prompt)
    for candidate, tokens in zip(request.candidates, found.candidates, strict=True):
        if tokens.start == len(tokens.sequence) - tokens.tail_tokens:
            return f"candidate {candidate.text!r} has no tokens after prompt {request.prompt!r}"
        if tokens.start == 0:
            return f"candidate {candidate.text!r} merges with the whole prompt {request.prompt!r}, and no token stands before them"
        longest = max(longest, len(tokens.sequence))
    if max_length is not None and longest > max_length:
        return f"prompt {request.prompt[:60]!r} and its longest candidate have {longest} tokens, the model has {max_length} positions"
    return None


def _rowless(
    found: RequestTokens, tokeniser: PromptTokeniser, rowless: frozenset[int]
) -> str | None:
    """Why a request cannot be scored where a text spells out a token that the model does not have, or None."""
    present: set[int] = set()
    for ids in (found.prompt, *(tokens.sequence for tokens in found.candidates)) if rowless else ():
        present |= rowless.intersection(ids)
    names = ", ".join(tokeniser.tokenizer.convert_ids_to_tokens(sorted(present)))
    return f"the model has no embedding for the token {names}" if present else None
