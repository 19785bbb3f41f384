"""Whole-sentence translation back ends behind one small protocol, and the store of what they
answered.
"""
