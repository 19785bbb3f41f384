"""The parts that the steps at the repository's root are made of (see docs/architecture.md)."""
