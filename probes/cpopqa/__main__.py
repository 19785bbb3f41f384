"""``python -m probes.cpopqa``: the former name of ``python -m fluent_mlama.cpopqa``."""

from fluent_mlama.cpopqa.__main__ import main, run_main

if __name__ == "__main__":
    run_main(main)
