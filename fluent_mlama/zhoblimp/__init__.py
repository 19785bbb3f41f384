"""ZhoBLiMP's question: what syntax does a model know, asked with minimal pairs.

After Liu et al. 2024.
"""
