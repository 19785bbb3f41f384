"""The parts that the steps at the repository's root are made of (see docs/architecture.md)."""

__version__ = "1.0.0"
