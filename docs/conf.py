"""The documentation site: Markdown pages as they lie in docs/, and a reference from the docstrings.

`make docs` builds it into docs/_build (not tracked); a warning is an error.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path

from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

project = "Fluent-mLAMA"
extensions = ["myst_parser", "sphinx.ext.autodoc", "plain_docstrings"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = project
html_static_path: list[str] = []
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False

myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
toc_object_entries = False  # pages of the reference have one entry a module, not one a function
autodoc_default_options = {"members": True}
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
suppress_warnings = [
    "ref.python"
]  # a type such as `object` or `Item` is also the name of a field or class elsewhere

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)\)")
_MODULES = re.compile(r"^%modules (\S+)$", re.MULTILINE)


def modules_of(package: str) -> list[str]:
    """The package or module itself and every module below it, found on disk, in the order of their names."""
    found = import_module(package)
    below = pkgutil.walk_packages(getattr(found, "__path__", ()), f"{package}.")
    return [package, *(module.name for module in below if not module.name.endswith("__main__"))]


def rooms_without_a_page(package: str) -> list[str]:
    """The modules and packages right below ``package`` that no page of the reference names."""
    pages = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")
    )
    names = [
        f"{package}.{module.name}"
        for module in pkgutil.iter_modules(import_module(package).__path__)
    ]
    return [
        module
        for name in names
        if name not in _MODULES.findall(pages)
        for module in modules_of(name)
    ]


def name_files_outside(app: Sphinx, docname: str, source: list[str]) -> None:
    """A link to a file outside docs/ works where the repository is shown; the site, which holds no such file, names it."""
    if "/" not in docname:
        source[0] = _OUTSIDE.sub(r"\1 (`\2`)", source[0])


def list_modules(app: Sphinx, docname: str, source: list[str]) -> None:
    """`%modules fluent_mlama.records` on a page of the reference stands for the docstrings of every module of that room,
    `%modules fluent_mlama.*` for those of the rooms that no page names."""

    def directives(found: re.Match[str]) -> str:
        package, star, _ = found[1].partition(".*")
        names = rooms_without_a_page(package) if star else modules_of(package)
        return "\n".join(
            f"## `{name}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n" for name in names
        )

    if docname.startswith("reference/"):
        source[0] = _MODULES.sub(directives, source[0])


def setup(app: Sphinx) -> None:
    """Sphinx calls this once."""
    app.connect("source-read", name_files_outside)
    app.connect("source-read", list_modules)
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("tsv", TextLexer)
