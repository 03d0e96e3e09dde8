"""What is written on the pages of the documentation works as it stands there: manifests, JSON and Python.

Commands are in `test_readme`; pages of which the code has a test of its own are in `RUN_ELSEWHERE`.
"""

import ast
import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.manifest.machine import look
from tests.support.condition import DEADLINE
from tests.support.freehold import ROOT
from tests.support.running_freehold import FreeholdOptions, run_freehold

from freehold.egress import EgressService, EgressSettings
from freehold.home import Home
from freehold.timeline import Timeline

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("guides/*.md")),
    *sorted(DOCS.glob("tutorials/*.md")),
]
OWNER = '[owner]\ndid = "did:plc:z72i7hdynmk6r22z27h6tvur"\n'
ASSUMED = {
    "E114": OWNER,
    "E404": '[models.openai]\nkind = "openai"\nkey = "secret:openai"\n',
    "E505": '[models.local]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:11434/v1"\nmodel = "qwen3"\n',
}
"""What a page takes for granted because it was described before, by the problem of a manifest that has nothing else."""
PLACEHOLDERS = {"npub1…": "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"}
EVERY_BACKEND = {"bubblewrap": "", "docker": "", "podman": "", "microvm": "", "attached": ""}
RUN_ELSEWHERE = {
    "api.md": "tests/client/test_guide.py",
    "computer.md": "tests/computer/test_guide.py",
    "history.md": "tests/history/test_guide.py",
}
NEEDS_MACHINES = {"fleet.md"}
"""Other machines are needed; `tests/fleet` makes the same calls with some that it starts."""
RUN_HERE = {"batch.md", "chat.md", "egress.md", "isolates.md", "models.md", "preview.md", "timeline.md", "workflows.md"}


def snippets(language: str) -> list[Any]:
    listed = []
    for page in PAGES:
        found = re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
        for number, text in enumerate(found, 1):
            listed.append(pytest.param(text, id=f"{page.name}-{number}"))
    return listed


def python_of(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / "guides" / page).read_text(), re.MULTILINE | re.DOTALL)


async def run_python(source: str, **names: Any) -> dict[str, Any]:
    """As in a program whose body is a coroutine."""
    code = compile(source, "snippet", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, names)  # the guide is ours
    if inspect.isawaitable(found):
        await found
    return names


@pytest.mark.parametrize("text", snippets("toml"))
def test_every_manifest_is_accepted(text: str) -> None:
    for placeholder, value in PLACEHOLDERS.items():
        text = text.replace(placeholder, value)
    alone = look(text, backends=EVERY_BACKEND).errors
    assumed = "".join(ASSUMED.get(code, "") for code in {problem.code for problem in alone})
    errors = look(assumed + text, backends=EVERY_BACKEND).errors if assumed else alone
    assert [f"{problem.code} {problem.message}" for problem in errors] == []


@pytest.mark.parametrize("text", snippets("json"))
def test_every_json_can_be_read(text: str) -> None:
    assert json.loads(text)


@pytest.mark.parametrize("text", snippets("python"))
def test_everything_that_python_imports_is_there(text: str) -> None:
    indented = re.match(r"\s+", text)
    tree = ast.parse(f"async def main():\n{text}" if indented else text)
    compile(tree, "snippet", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "freehold":
            module = import_module(node.module)
            assert all(hasattr(module, name.name) for name in node.names)


def test_the_python_of_every_page_runs_in_a_test() -> None:
    pages = {page.name for page in PAGES if "\n```python\n" in page.read_text()}
    assert pages == RUN_HERE | NEEDS_MACHINES | set(RUN_ELSEWHERE)
    assert all((ROOT / test).is_file() for test in RUN_ELSEWHERE.values())


async def test_the_timeline(tmp_path: Path) -> None:
    (block,) = python_of("timeline.md")
    home = Home(root=tmp_path, run=tmp_path / "run")
    await run_python(block, home=home)
    with Timeline(home.timeline, readonly=True) as timeline:
        (event,) = timeline.read(after=0, kinds=["egress.*"])
        assert (event.who, event.data) == ("owner", {"host": "example.org"})


async def test_the_scripted_model() -> None:
    (block,) = python_of("models.md")

    async def ask(url: str) -> None:
        headers = {"authorization": "Bearer the real key"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=DEADLINE) as http:
            body = {"model": "any", "messages": [{"role": "user", "content": "Is it clean?"}]}
            assert (await http.post(f"{url}/v1/chat/completions", json=body)).status_code == 200

    assert "    ...  #" in block
    names = await run_python(block.replace("    ...  #", "    await ask(model.url)  #"), ask=ask)
    assert len(names["model"].requests) == 1


async def test_the_egress_service(tmp_path: Path) -> None:
    (block,) = python_of("egress.md")
    listened: list[int] = []

    class Computer:
        async def listen(self, port: int, _handle: object) -> None:
            listened.append(port)

    class Seen(Exception):
        """It would go on for ever."""

    def see(pending: object) -> None:
        assert pending == []
        raise Seen

    with Timeline(tmp_path / "timeline.db") as timeline, pytest.raises(Seen):
        await run_python(
            block,
            EgressService=EgressService,
            EgressSettings=EgressSettings,
            timeline=timeline,
            computer=Computer(),
            print=see,
        )
    assert listened == [3128]


async def test_code_in_isolates() -> None:
    block, _ = python_of("isolates.md")
    printed: list[object] = []
    names = await run_python(block, print=printed.append)
    assert printed == [42]
    assert (names["result"].stdout, names["result"].value, names["rows"]) == (b"hello\n", 42, [0, 1, 4, 9, 16])


async def test_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "monday.md").write_text("one two\n")
    (tmp_path / "count.py").write_text("import sys\nprint(len(open(sys.argv[1]).read().split()))\n")
    (block,) = python_of("batch.md")
    printed: list[tuple[object, ...]] = []
    await run_python(block, print=lambda *words: printed.append(words))
    ((_, state, folder),) = printed
    assert state == "done"
    assert (tmp_path / "counts" / str(folder) / "stdout").read_text() == "2\n"


async def test_a_program_that_prompts_and_one_that_opens_a_preview(tmp_path: Path) -> None:
    (chat,) = python_of("chat.md")
    (preview,) = python_of("preview.md")
    said: list[object] = []
    async with run_freehold(tmp_path, FreeholdOptions(agents=("builtin",))) as freehold:
        source = chat.replace("http://localhost:3000", freehold.url).replace("fh_…", freehold.token)
        inside = "".join(f"    {line}\n" for line in preview.splitlines())
        names = await run_python(source + inside, print=said.append)
    assert said
    assert names["ports"] == ()
    assert "5173" in names["address"]


def test_the_workflow_is_the_example_that_a_test_runs() -> None:
    (block,) = python_of("workflows.md")
    example = ast.parse((ROOT / "examples/workflows/nightly_update.py").read_text())
    without_docstring = ast.Module(example.body[1:], [])
    assert ast.dump(ast.parse(block)) == ast.dump(without_docstring)
