"""mLAMA's questions: what does a model know in each language, and do languages know different
things (Kassner et al. 2021).
"""
