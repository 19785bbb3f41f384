"""ZhoBLiMP's question: what syntax does a model know, asked with minimal pairs (Liu et al. 2024)."""
