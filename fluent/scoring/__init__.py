"""The scoring engine: prompts and candidates in, token log-probabilities out. The only room that knows torch.

``fluent.scoring.contract`` says what goes in and out, and imports no torch.
"""
