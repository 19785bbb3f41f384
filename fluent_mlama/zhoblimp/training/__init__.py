"""A suite of models trained from scratch, in the manner of Zh-Pythia."""
