"""Which path is right for this model: a small fixture, scored plainly and by each path, decides at load.

The logic is checked in float32, where all paths must agree to rounding: on the model itself, or, if it runs in another
number type, on a float32 copy of its first layers. Then the run's own number type is tried; 16 bit moves every score a
little whichever way it is computed, so there the gap is recorded and only a gross one refuses a path.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fluent.console import UserError, note
from fluent.scoring.comparing import TOLERANCE, Comparison, agree, reason_for
from fluent.scoring.contract import Candidate, Request
from fluent.scoring.in_place import write_apart, write_over
from fluent.scoring.network import Network
from fluent.scoring.packed_linear import can_pack, pack, unpack
from fluent.scoring.paths import Edges, PaddedPath, Path
from fluent.scoring.positions import usable_positions
from fluent.scoring.tokens import PromptTokeniser
from fluent.scoring.tree_paths import DenseMaskPath, SharedPrefixPath, TreePath
from fluent.scoring.trie import Ids, Tree, build_tree

PATHS = ("tree", "dense-mask", "shared-prefix", "padded", "plain")
_PROMPTS = ("The capital of France is", "Anna lives in the city of")
_CANDIDATES = (" Paris", " Rome", " the city of Paris", " the city of Rome", " San Francisco", " San José de Costa Rica", " Pa")


@dataclass(frozen=True, slots=True)
class Choice:
    """The path to use, why, and what the check saw (for run.json)."""

    path: Path
    reason: str
    record: dict[str, Any]


def choose_path(network: Network, tokeniser: PromptTokeniser, wanted: str, token_budget: int, *, packed: bool = True) -> Choice:
    """The fastest path that agrees with plain forwards (or ``wanted``, which must), with packed weights where possible.

    Raises UserError for an unknown name and for a wanted path that fails the check.
    """
    if wanted != "auto" and wanted not in PATHS:
        raise UserError(f"scoring path {wanted!r}: choose auto, {', '.join(PATHS)}")
    trees = fixture(tokeniser, network.vocabulary, usable_positions(network.model))
    pad_token = tokeniser.tokenizer.pad_token_id or 0
    single = network.model.dtype == torch.float32
    probe, probed = (network, "the model") if single else _shallow(network)
    reference, probe_reference = _plain(network, trees), None if probe is None else _plain(probe, trees)
    record: dict[str, Any] = {"candidates": sum(len(tree.sequences) - 1 for tree in trees), "float32_checked_on": probed}
    refused: dict[str, str] = {}
    for name in PATHS if wanted == "auto" else (wanted,):
        for by_hand in (True, False) if network.can_apply_head else (False,):

            def make(on: Network, name: str = name, by_hand: bool = by_hand) -> Path:
                on.head_by_hand = by_hand
                return build_path(name, on, token_budget, pad_token)

            seen: dict[str, Comparison] = {}
            if probe is not None and probe_reference is not None:
                seen["float32"] = compare(make, probe, trees, probe_reference, TOLERANCE["float32"])
            if not single and not any(comparison.trouble for comparison in seen.values()):
                seen[str(network.model.dtype).removeprefix("torch.")] = compare(make, network, trees, reference, TOLERANCE["16-bit"])
            trouble = next((comparison.trouble for comparison in seen.values() if comparison.trouble), None)
            label = name if by_hand or not network.can_apply_head else f"{name} (model's own head)"
            if trouble is not None:
                refused[label] = trouble
                continue
            path = make(network)
            record |= {dtype: comparison.record() for dtype, comparison in seen.items()}
            record |= {"head": "by hand" if by_hand else "model's own", "refused": refused}
            record["packed_linear"] = _pack(network, path, trees, reference) if packed else "no: not asked for"
            return Choice(path, reason_for(name, wanted, refused), record)
    raise UserError(f"scoring path {wanted} does not work with this model: {'; '.join(refused.values())}; use path auto")


def build_path(name: str, network: Network, token_budget: int, pad_token: int) -> Path:
    """A path by its name. Raises PathRefused where the model cannot take it."""
    if name == "tree":
        return TreePath(network)
    if name == "dense-mask":
        return DenseMaskPath(network)
    if name == "shared-prefix":
        return SharedPrefixPath(network, token_budget, pad_token)
    return PaddedPath(network, token_budget, pad_token, one_by_one=name == "plain")


def fixture(tokeniser: PromptTokeniser, vocabulary: int, positions: int | None = None) -> list[Tree]:
    """Two prompts with candidates that share beginnings, are of unequal length, and end inside each other.

    Of words where the tokenizer knows them and the model has as many positions, else of arbitrary token ids.
    """
    requests = [Request(prompt, tuple(Candidate(text) for text in _CANDIDATES)) for prompt in _PROMPTS]
    trees = []
    for tokens in tokeniser.tokenise(requests, "separate"):
        sequences = list(dict.fromkeys(candidate.sequence for candidate in tokens.candidates if candidate.scored))
        unknown = len(tokens.prompt) < 2 or len(sequences) < 4 or max(map(max, sequences)) >= vocabulary
        if unknown or (positions is not None and max(map(len, sequences)) > positions):
            return _arbitrary(vocabulary, positions)
        trees.append(build_tree([tokens.prompt, *sequences]))
    return trees


def _arbitrary(vocabulary: int, positions: int | None) -> list[Tree]:
    generator = np.random.default_rng(0)
    trees = []
    for length in (9, 5):
        length = length if positions is None else max(1, min(length, positions // 2))
        prompt = tuple(generator.integers(vocabulary, size=length).tolist())
        a, b, c, d, e, f = generator.integers(vocabulary, size=6).tolist()
        endings: tuple[Ids, ...] = ((a,), (a, b), (a, b, c), (a, b, d), (e,), (f, e, d, c, b, a))
        trees.append(build_tree(list(dict.fromkeys([prompt, *((prompt + ending)[:positions] for ending in endings)]))))
    return trees


def compare(
    make: Callable[[Network], Path], network: Network, trees: Sequence[Tree], reference: Sequence[Edges], tolerance: float
) -> Comparison:
    """Run the path that ``make`` builds and hold its sums and ranks against the reference's edges."""

    def sums(edges: Sequence[Edges]) -> list[Edges]:
        """Of each tree, its prompt's log-probability, then its candidates' (prompt included)."""
        found = [np.array([one[path].sum() for path in tree.paths]) for tree, one in zip(trees, edges, strict=True)]
        return [part for tree_sums in found for part in np.split(tree_sums, [1])]

    def score() -> list[Edges]:
        with torch.inference_mode():
            return sums(make(network).run(trees, "float32"))

    return agree(score, sums(reference), tolerance)


def _plain(network: Network, trees: Sequence[Tree]) -> list[Edges]:
    by_hand, network.head_by_hand = network.head_by_hand, False
    with torch.inference_mode():
        edges = PaddedPath(network, 1, 0, one_by_one=True).run(trees, "float32")
    network.head_by_hand = by_hand
    if any(np.isnan(values).any() for values in edges):
        raise UserError("the model gives NaN for a plain sentence; its files may be damaged, or try --dtype float32")
    return edges


def _shallow(network: Network, layers: int = 2) -> tuple[Network | None, str]:
    """A float32 copy of the model's first layers: the same code at a price that fits beside the model."""
    model = network.model
    try:
        config = copy.deepcopy(model.config)
        text = config.get_text_config()
        text.num_hidden_layers = min(layers, text.num_hidden_layers)
        if getattr(text, "layer_types", None):
            text.layer_types = text.layer_types[: text.num_hidden_layers]
        config.dtype = torch.float32
        small = type(model)(config).float().eval().requires_grad_(False)
        own = model.state_dict()
        small.load_state_dict({name: own[name].float() for name in small.state_dict() if name in own}, strict=False)
        return Network(small.to(network.device)), f"its first {text.num_hidden_layers} layers"
    except Exception as error:
        note(f"self-check in float32 left out: {type(error).__name__} while copying the first layers")
        return None, f"nothing: {type(error).__name__}"


def _pack(network: Network, path: Path, trees: Sequence[Tree], reference: Sequence[Edges]) -> str:
    """Pack the linear layers, let modules work in place, and check again; what fails the check comes back as it was."""
    reason = can_pack(network.model)
    if reason is not None:
        return f"no: {reason}"
    count = pack(network.model, network.head if network.head_by_hand else None)
    in_place = write_over(network.model)
    seen = compare(lambda _: path, network, trees, reference, TOLERANCE["float32"])
    if seen.trouble is not None and in_place:
        write_apart(network.model)
        in_place = 0
        seen = compare(lambda _: path, network, trees, reference, TOLERANCE["float32"])
    if seen.trouble is not None:
        unpack(network.model)
        return f"no: {seen.trouble}"
    return f"{count} layers, {in_place} modules in place, largest gap {seen.gap:.1e}, {seen.rank_changes} ranks changed"
