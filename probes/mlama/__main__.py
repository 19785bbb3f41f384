"""``python -m probes.mlama``: the former name of ``python -m fluent_mlama.mlama``."""

from fluent_mlama.mlama.__main__ import main, run_main

if __name__ == "__main__":
    run_main(main)
