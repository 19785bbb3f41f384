"""The former name of ``fluent_mlama.mlama``; kept for one release."""
