"""The benchmark in the formats of other people's tools: Hugging Face datasets,
lm-evaluation-harness, LM-Pub-Quiz (BEAR)."""
