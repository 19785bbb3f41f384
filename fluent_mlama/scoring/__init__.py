"""The scoring engine: prompts and candidates in, token log-probabilities out. The only room that knows torch.

``fluent_mlama.scoring.contract`` says what goes in and out, and imports no torch.
"""
