"""The former name of ``fluent_mlama.zhoblimp``; kept for one release."""
