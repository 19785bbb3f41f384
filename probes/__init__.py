"""Sibling papers' questions to the same scoring engine: python -m probes.NAME."""
