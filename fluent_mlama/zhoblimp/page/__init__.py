"""``serve``: the web page on which paradigms are written, for this machine alone (127.0.0.1)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fluent_mlama.console import UserError
from fluent_mlama.options import File, Name, whole_number

if TYPE_CHECKING:
    from fluent_mlama.scoring.causal import CausalScorer
    from fluent_mlama.zhoblimp.data import PairRow
    from fluent_mlama.zhoblimp.measures import Result


def serve(
    *,
    projects: File = Path("zhoblimp_projects"),
    port: Annotated[int, Parameter(converter=whole_number(1, 65535), n_tokens=1)] = 8484,
    model: Name = "smollm2",
) -> None:
    """Serve the page on which paradigms are written, on this machine alone.

        fluent-mlama zhoblimp serve --projects zhoblimp_projects

    Args:
        projects: folder of projects
        port: on 127.0.0.1
        model: scores pairs on the page
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise UserError(
                f"port {port} of 127.0.0.1 is in use; choose another with --port"
            ) from None
    try:
        from fluent_mlama.zhoblimp.page.app import serve_page
    except ModuleNotFoundError as missing:
        raise UserError(
            f"the page needs the package {missing.name}; run: pip install -r requirements.txt"
        ) from None
    serve_page(projects, port, ModelOnDemand(model))


class ModelOnDemand:
    """Scores pairs with a model that is loaded when it is first needed; one request at a time."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.scorer: CausalScorer | None = None
        self.lock = threading.Lock()

    def __call__(self, rows: Sequence[PairRow]) -> Result:
        """Every pair's evidence, for any linking function."""
        from fluent_mlama.zhoblimp.measures import make_result
        from fluent_mlama.zhoblimp.scores import Target, frame_of, load, requests_of

        with self.lock:
            self.scorer = self.scorer or load(Target(self.model, self.model))
            scores = self.scorer.score(requests_of(rows), tokenisation="joint")
        return make_result(self.model, frame_of(rows, dict(enumerate(scores))))
