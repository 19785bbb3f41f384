"""The former name of ``fluent_mlama.cpopqa``; kept for one release."""
