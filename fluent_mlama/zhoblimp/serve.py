"""``serve``: the web page on which paradigms are written, for this machine alone (127.0.0.1)."""

from __future__ import annotations

import argparse
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fluent_mlama.console import UserError, whole_number
from fluent_mlama.zhoblimp.data import PairRow
from fluent_mlama.zhoblimp.measures import Result, make_result
from fluent_mlama.zhoblimp.models import Target, load
from fluent_mlama.zhoblimp.scores import frame_of, requests_of

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``serve``."""
    parser.add_argument(
        "--projects",
        type=Path,
        default=Path("zhoblimp_projects"),
        help="folder of projects (default zhoblimp_projects)",
    )
    parser.add_argument(
        "--port", type=whole_number(1, 65535), default=8484, help="port on 127.0.0.1 (default 8484)"
    )
    parser.add_argument(
        "--model",
        default="smollm2",
        help="what scores pairs on the page (default: the embedded model)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", arguments.port))
        except OSError:
            raise UserError(
                f"port {arguments.port} of 127.0.0.1 is in use; choose another with --port"
            ) from None
    try:
        from fluent_mlama.zhoblimp.page.app import serve
    except ModuleNotFoundError as missing:
        raise UserError(
            f"the page needs the package {missing.name}; run: pip install -r requirements.txt"
        ) from None
    serve(arguments.projects, arguments.port, ModelOnDemand(arguments.model))
    return 0


class ModelOnDemand:
    """Scores pairs with a model that is loaded when it is first needed; one request at a time."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.scorer: CausalScorer | None = None
        self.lock = threading.Lock()

    def __call__(self, rows: Sequence[PairRow]) -> Result:
        """Every pair's evidence, for any linking function."""
        with self.lock:
            self.scorer = self.scorer or load(
                Target(self.model, self.model, None), device="auto", dtype="auto"
            )
            scores = self.scorer.score(requests_of(rows), tokenisation="joint")
        return make_result(self.model, frame_of(rows, dict(enumerate(scores))))
