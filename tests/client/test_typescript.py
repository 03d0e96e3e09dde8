"""The TypeScript client has the calls of the Python client, and the examples of both do the same."""

import asyncio
import inspect
import re
import sys
from pathlib import Path

import pytest
from tests.computer.isolates.conftest import node_folder
from tests.support.condition import until
from tests.support.freehold import ROOT
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.client._async.freehold import AsyncFreehold
from freehold.client._async.sessions import AsyncSession

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[slots]
beads = "local"
memory = "local"
pods = "local"
events = "local"
orchestrator = "local"
[agents]
default = "builtin"
"""
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest=MANIFEST)
PACKAGE = ROOT / "clients" / "typescript"
METHOD = re.compile(r"^  (?:async )?\*?(\w+)(?:<[^>]*>)?\(", re.MULTILINE)
CLASS = re.compile(r"^export class (\w+)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def to_camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def list_python_calls() -> dict[str, set[str]]:
    """The public methods of each resource, by the name of its class without `Async`."""
    home = AsyncFreehold("http://localhost:3000", token="fh_x")
    resources = [one for name, one in vars(home).items() if not name.startswith("_") and name != "url"]
    classes: list[type] = [AsyncFreehold, AsyncSession, *map(type, resources)]
    return {
        kind.__name__.removeprefix("Async"): {
            to_camel(name)
            for name, found in vars(kind).items()
            if not name.startswith("_") and inspect.isfunction(found) and found is not AsyncFreehold.close
        }
        for kind in classes
    }


def list_typescript_calls() -> dict[str, set[str]]:
    found = {}
    for path in (PACKAGE / "src").glob("*.ts"):
        for name, body in CLASS.findall(path.read_text()):
            # `Freehold.close` has nothing to do there: nothing stays open between calls.
            found[name] = {method for method in METHOD.findall(body) if method != "constructor"}
    return found


async def test_both_clients_have_the_same_calls() -> None:
    typescript = list_typescript_calls()
    python = list_python_calls()
    assert python
    for name, calls in python.items():
        assert typescript[name] == calls, name


def list_python_options() -> set[tuple[str, str]]:
    """The options of every call, with the name of its class. Those of a call may only be given by name."""
    home = AsyncFreehold("http://localhost:3000", token="fh_x")
    resources = [one for name, one in vars(home).items() if not name.startswith("_") and name != "url"]
    classes: list[type] = [AsyncFreehold, AsyncSession, *map(type, resources)]
    return {
        (kind.__name__.removeprefix("Async"), to_camel(option.name))
        for kind in classes
        for name, found in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(found)
        for option in inspect.signature(found).parameters.values()
        if option.kind is option.KEYWORD_ONLY
    }


async def test_every_option_of_a_call_exists_in_both_clients() -> None:
    """An option is a name with a type in the file of its class, or in one that the class takes from the API."""
    sources = {}
    for path in (PACKAGE / "src").glob("*.ts"):
        text = path.read_text()
        for name, _ in CLASS.findall(text):
            sources[name] = text
    api = (PACKAGE / "src" / "api.ts").read_text()
    missing = {
        f"{kind}: {option}"
        for kind, option in list_python_options()
        if not re.search(rf"\b{option}\??[:,]", sources[kind]) and not re.search(rf"\b{option}\?:", api)
    }
    assert missing == set()


async def run_example(*command: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=ROOT
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


async def are_slots_ready(freehold: RunningFreehold) -> bool:
    return all(slot["state"] in ("ok", "off") for slot in await freehold.call("GET", "/v1/slots"))


PROMPTS = {"runs": "SAY Done.", "undo": "WRITE haiku.txt An old silent pond"}
EXPECTED = {
    "runs": "Done.",
    "settings": "agent builtin\n",
    "undo": ("asked: Write haiku.txt\nadded workspace/haiku.txt True\n1 removed\nworkspace/haiku.txt False\n"),
}


@pytest.mark.parametrize("name", ["code", "runs", "settings", "slots", "timeline", "undo"])
async def test_the_examples_of_both_languages_print_the_same(freehold: RunningFreehold, name: str) -> None:
    await until(lambda: are_slots_ready(freehold))
    await until(freehold.is_connected)
    given = (freehold.url, freehold.token, *([PROMPTS[name]] if name in PROMPTS else []))
    python = await run_example(sys.executable, ROOT / "examples" / "client" / f"{name}.py", *given)
    typescript = await run_example(
        node_folder() / "bin" / "node", "--no-warnings", PACKAGE / "examples" / f"{name}.ts", *given
    )
    assert python == typescript
    assert python.splitlines()
    assert EXPECTED.get(name, "") in python


async def test_every_example_exists_in_both_languages() -> None:
    typescript = {path.stem for path in (PACKAGE / "examples").glob("*.ts")}
    assert typescript == {path.stem for path in (ROOT / "examples" / "client").glob("*.py")}
