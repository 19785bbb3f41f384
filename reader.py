"""Step 1: read facts.

    python reader.py stats starter                    facts, relations and templates by language
    python reader.py sample mlama1.1.zip -l ru,cs     a few filled templates
    python reader.py download data/mlama1.1.zip       the published facts

``MLama`` opens a folder or zip in the mLAMA 1.1 layout (``<lang>/<relation>.jsonl`` and ``<lang>/templates.jsonl``)
and hands out facts, templates and filled templates. The code is in ``fluent_mlama/reader.py``; how a line becomes a
fact is in ``fluent_mlama/records/facts.py``. Next step: ``datamodifier.py``.
"""

from fluent_mlama.console import run_main
from fluent_mlama.reader import MLama, fill_template, is_valid_template, main

__all__ = ["MLama", "fill_template", "is_valid_template", "main"]

if __name__ == "__main__":
    run_main(main)
