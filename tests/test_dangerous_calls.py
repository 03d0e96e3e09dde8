"""Code that is built from data (eval, pickle, a shell) occurs only where this list says, and why."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ALLOWED = {
    ("src/freehold/computer/attached/start_program.py", "exec"): "becomes the guest, inside the computer",
    ("src/freehold/computer/contract/guest_archive.py", "marshal"): "compiles the guest from our own sources",
    **{
        (
            "src/freehold/guest/isolates/python_runner.py",
            call,
        ): "runs the caller's code, in a sealed process of the computer"
        for call in ("compile", "exec", "eval")
    },
    (
        "src/freehold/skills/front_matter.py",
        "yaml.load",
    ): "with a subclass of SafeLoader, which makes plain values only",
    **{
        ("src/freehold/routines/workflows/runner.py", call): "runs the owner's workflow, inside the computer"
        for call in ("compile", "exec")
    },
}

MODULES = {"pickle", "cPickle", "shelve", "marshal", "dill", "jsonpickle"}
NAMES = {"eval", "exec", "__import__", "compile"}
METHODS = {
    "os.system",
    "os.popen",
    "asyncio.create_subprocess_shell",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "yaml.load",
    "tempfile.mktemp",
}
SUSPECT = re.compile(
    rf"\b(?:{'|'.join({*MODULES, *NAMES, *(name.rpartition('.')[2] for name in METHODS), 'shell'})})\b"
)
"""What a file without any of these words cannot do. To parse all files takes many seconds."""
WEB_PATTERN = re.compile(
    r"\beval\(|new Function\(|dangerouslySetInnerHTML|\.(?:inner|outer)HTML\b|insertAdjacentHTML|document\.write"
)


def find_dangerous_calls(text: str) -> Iterator[str]:
    if not SUSPECT.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in MODULES:
            yield node.module
        elif isinstance(node, ast.Call):
            yield from _find_in_call(node)


def _find_in_call(call: ast.Call) -> Iterator[str]:
    function = call.func
    if isinstance(function, ast.Name) and function.id in NAMES:
        yield function.id
    if isinstance(function, ast.Attribute) and ast.unparse(function) in METHODS:
        yield ast.unparse(function)
    for keyword in call.keywords:
        if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            yield "shell="


def test_no_code_is_built_from_data_outside_of_the_list() -> None:
    found = {
        (str(path.relative_to(ROOT)), call)
        for folder in ("src", "tools")
        for path in (ROOT / folder).rglob("*.py")
        for call in find_dangerous_calls(path.read_text())
    }
    assert found == set(ALLOWED)


def test_the_page_builds_no_code_or_markup_from_text() -> None:
    sources = [path for path in (ROOT / "web" / "src").rglob("*.ts*") if path.suffix in (".ts", ".tsx")]
    assert len(sources) > 50
    assert [str(path) for path in sources if WEB_PATTERN.search(path.read_text())] == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "eval(x)",
        "exec(x)",
        "os.system(x)",
        "subprocess.run(x, shell=True)",
        "subprocess.run(x, shell=maybe)",
        "asyncio.create_subprocess_shell(x)",
    ],
)
def test_a_dangerous_call_is_found(text: str) -> None:
    assert list(find_dangerous_calls(text))
