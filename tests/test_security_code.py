"""What the code never does with data: evaluate it, unpickle it, unpack it, hand it to a shell, offer it to other machines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import source_files

REFUSED_CALLS = {
    "eval", "exec", "compile", "__import__", "input", "os.system", "os.popen", "os.execv", "os.execvp", "subprocess.getoutput",
    "tempfile.mktemp", "yaml.load", "yaml.load_all", "builtins.eval", "builtins.exec",
}  # fmt: skip
REFUSED_METHODS = {
    "read_pickle": "pickle", "to_pickle": "pickle", "read_hdf": "pickle", "extractall": "unpacking", "extract_all": "unpacking",
    "unpack_archive": "unpacking", "read_sql": "pickle", "unsafe_load": "yaml", "full_load": "yaml", "extension_from_string": "templates",
}  # fmt: skip
REFUSED_MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "shelve",
    "marshal",
    "joblib",
    "pty",
    "telnetlib",
    "xmlrpc",
    "xml",
}
EVALUATING = {"eval", "query"}
TEXT = (ast.Constant, ast.JoinedStr)
"""Methods of a DataFrame that take code as text."""
LISTENING = {"0.0.0.0", "::", "[::]"}


def dotted(node: ast.expr) -> str:
    """``os.system`` of a name or an attribute chain; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (head := dotted(node.value)):
        return f"{head}.{node.attr}"
    return ""


def complaints(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        line = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
            )
            yield from (
                f"{line} imports {name}" for name in names if name.split(".")[0] in REFUSED_MODULES
            )
        if isinstance(node, ast.Constant) and node.value in LISTENING:
            yield f"{line} names every network interface"
        if not isinstance(node, ast.Call):
            continue
        name, keywords = (
            dotted(node.func),
            {keyword.arg: keyword.value for keyword in node.keywords},
        )
        if name in REFUSED_CALLS:
            yield f"{line} calls {name}"
        if isinstance(node.func, ast.Attribute) and node.func.attr in REFUSED_METHODS:
            yield f"{line} calls {node.func.attr} ({REFUSED_METHODS[node.func.attr]})"
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in EVALUATING
            and isinstance(next(iter(node.args), None), TEXT)
        ):
            yield f"{line} calls .{node.func.attr} with a text"
        if name == "torch.load" and "weights_only" not in keywords:
            yield f"{line} calls torch.load without weights_only"
        for option, value in (
            ("shell", True),
            ("allow_pickle", True),
            ("trust_remote_code", True),
            ("autoescape", False),
            ("verify", False),
        ):
            if isinstance(keywords.get(option), ast.Constant) and keywords[option].value is value:  # type: ignore[attr-defined]
                yield f"{line} says {option}={value}"
        if name == "Environment" and "autoescape" not in keywords:
            yield f"{line} makes a jinja2 environment that does not escape"


def test_the_sources_evaluate_unpickle_and_unpack_nothing(root: Path) -> None:
    files = source_files(root)
    assert len(files) > 150
    assert [complaint for path in files for complaint in complaints(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')", "import pickle", "yaml.load(text)", "os.system('ls')", "zip.extractall('x')", "pd.read_pickle(path)",
        "frame.query('a > 1')", "subprocess.run('ls', shell=True)", "torch.load(path)", "np.load(path, allow_pickle=True)",
        "Environment(loader=None)", "run(host='0.0.0.0')", "AutoModel.from_pretrained('m', trust_remote_code=True)",
    ],
)  # fmt: skip
def test_each_of_these_lines_is_found(tmp_path: Path, line: str) -> None:
    (tmp_path / "one.py").write_text(line + "\n", encoding="utf-8")
    assert len(list(complaints(tmp_path / "one.py"))) == 1


def from_pretrained_calls(root: Path) -> Iterator[tuple[str, ast.Call, str]]:
    for path in source_files(root):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "from_pretrained"
            ):
                yield f"{path.relative_to(root)}:{node.lineno}", node, dotted(node.func.value)


def test_every_model_is_loaded_from_safetensors_unless_the_user_says_otherwise(root: Path) -> None:
    """Weights come from ``load_model``, from a GGUF file, or from our own training folder."""
    loading = {
        where: call
        for where, call, name in from_pretrained_calls(root)
        if "Model" in name or name.endswith(("LM", "automatic"))
    }
    assert len(loading) >= 3
    for where, call in loading.items():
        keywords = {keyword.arg for keyword in call.keywords}
        assert "use_safetensors" in keywords or None in keywords, where


def test_whatever_listens_listens_on_this_machine_alone(root: Path) -> None:
    listening = []
    for path in source_files(root):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name, texts = (
                dotted(node.func),
                [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)],
            )
            if name == "ui.run" or name.endswith(
                (".bind", ".listen", "HTTPServer", "run_app", "uvicorn.run")
            ):
                listening.append(name)
                assert "127.0.0.1" in texts, f"{path.name}:{node.lineno} {name}"
    assert "ui.run" in listening
