"""``python -m probes.zhoblimp``: the former name of ``python -m fluent_mlama.zhoblimp``."""

from fluent_mlama.zhoblimp.__main__ import main, run_main

if __name__ == "__main__":
    run_main(main)
