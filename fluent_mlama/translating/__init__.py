"""Whole-sentence translation back ends behind one protocol, and the store of their answers."""
