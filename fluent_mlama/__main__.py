"""``python -m fluent_mlama`` is ``fluent-mlama``."""

from fluent_mlama.cli import entry_point

if __name__ == "__main__":
    entry_point()
