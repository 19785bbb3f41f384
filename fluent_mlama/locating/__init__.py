"""Where the inflected object is in a sentence."""

from __future__ import annotations

from fluent_mlama.locating.locator import Locator
from fluent_mlama.locating.result import Location, NotFound, Outcome, Row

__all__ = ["Location", "Locator", "NotFound", "Outcome", "Row"]
