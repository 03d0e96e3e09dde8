"""The TypeScript client has the calls of the Python client, and the examples of both do the same."""

import asyncio
import inspect
import json
import re
import shutil
import sys
from collections.abc import Iterator
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
RESOURCE = re.compile(r"^  readonly (\w+): ", re.MULTILINE)
TYPE = re.compile(r"^(?:export )?(?:interface (\w+)([^{]*\{.*?^\})|type (\w+) = (.*?;)$)", re.MULTILINE | re.DOTALL)
CLASS = re.compile(r"^export class (\w+)[^{]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)


def to_camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def list_python_resources() -> dict[str, type]:
    """The attributes of a client, by their names in TypeScript."""
    home = AsyncFreehold("http://localhost:3000", token="fh_x")
    return {to_camel(name): type(one) for name, one in vars(home).items() if not name.startswith("_") and name != "url"}


def list_python_calls() -> dict[str, set[str]]:
    """The public methods of each resource, by the name of its class without `Async`."""
    classes: list[type] = [AsyncFreehold, AsyncSession, *list_python_resources().values()]
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


async def test_both_clients_have_the_same_resources_and_the_readme_names_each() -> None:
    (body,) = [
        body for name, body in CLASS.findall((PACKAGE / "src" / "freehold.ts").read_text()) if name == "Freehold"
    ]
    typescript = set(RESOURCE.findall(body)) - {"url"}
    assert typescript == set(list_python_resources())
    assert {name for name in typescript if f"`home.{name}" not in (PACKAGE / "README.md").read_text()} == set()


def list_python_options() -> Iterator[tuple[str, str, set[str], set[str] | None]]:
    """Each call: its class, its name, the options that are given by name, and all parameters if there are no others."""
    classes: list[type] = [AsyncFreehold, AsyncSession, *list_python_resources().values()]
    for kind in classes:
        for name, found in vars(kind).items():
            if name.startswith("_") or not inspect.isfunction(found) or found is AsyncFreehold.close:
                continue
            parameters = inspect.signature(found).parameters.values()
            options = {to_camel(one.name) for one in parameters if one.kind is one.KEYWORD_ONLY}
            is_open = any(one.kind is one.VAR_KEYWORD for one in parameters)
            every = None if is_open else {to_camel(one.name) for one in parameters}
            yield kind.__name__.removeprefix("Async"), to_camel(name), options, every


def read_parameters(text: str, start: int) -> str:
    """From an opening bracket to its closing one."""
    depth = 0
    for end, character in enumerate(text[start:], start):
        depth += (character in "([{") - (character in ")]}")
        if not depth:
            return text[start : end + 1]
    raise ValueError("a bracket is not closed")


def list_typescript_parameters(sources: list[str]) -> dict[tuple[str, str], str]:
    return {
        (name, found[1]): read_parameters(body, found.end() - 1)
        for text in sources
        for name, body in CLASS.findall(text)
        for found in METHOD.finditer(body)
    }


def expand_types(text: str, types: dict[str, str], seen: set[str]) -> str:
    """The text with what its types are declared as."""
    for name in set(re.findall(r"\b[A-Z]\w+\b(?!\[)", text)) & types.keys() - seen:
        seen.add(name)
        text += f" {expand_types(types[name], types, seen)}"
    return text


async def test_every_option_of_a_call_exists_in_both_clients() -> None:
    """Of the same call. An option in TypeScript is a key of its object of options, wherever that type is declared."""
    sources = [path.read_text() for path in (PACKAGE / "src").glob("*.ts")]
    found = [one for text in sources for one in TYPE.findall(text)]
    types = {interface or alias: body or value for interface, body, alias, value in found}
    parameters = list_typescript_parameters(sources)
    checked, missing = 0, []
    for kind, call, options, every in list_python_options():
        given = parameters[kind, call]
        known = expand_types(given, types, set())
        checked += len(options)
        missing += [f"TypeScript {kind}.{call}: {one}" for one in options if not re.search(rf"\b{one}\??:", known)]
        own = [types[name] for name in re.findall(r"\b[A-Z]\w*Options\b", given) if name in types]
        optional = set(re.findall(r"\b(\w+)\?:", " ".join([*re.findall(r"\{[^{}]*\}", given), *own])))
        missing += [f"Python {kind}.{call}: {one}" for one in optional - (optional if every is None else every)]
    assert checked > 100
    assert missing == []


async def run_example(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=cwd, env=env
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, f"{output.decode()}\n{errors.decode()}"
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


USER = """import { Freehold, RequestFailed } from "freehold-client";
import { RequestFailed as same } from "freehold-client/connection";

const [url, token] = process.argv.slice(2);
const ready = (await new Freehold(url, { token }).health()).ready;
const refused = await new Freehold(url, { token: "fh_nobody" }).me().catch((error) => error);
console.log(typeof ready, refused instanceof RequestFailed, refused instanceof same, refused.problem.code);
"""
TYPED_USER = """import { Freehold } from "freehold-client";
const home = new Freehold("http://localhost:3000", { token: "fh_x" });
export const ready = async (): Promise<boolean> => (await home.health()).ready;
// @ts-expect-error the types of the package are read: this is no number
export const wrong = async (): Promise<number> => (await home.health()).ready;
"""
TYPED_SETTINGS = {
    "compilerOptions": {
        "lib": ["ES2023", "ESNext.Disposable", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
        "module": "nodenext",
        "noEmit": True,
        "strict": True,
        "target": "ES2023",
        "types": [],
    },
    "files": ["typed.ts"],
}


async def test_the_packed_package_works_where_it_was_installed(freehold: RunningFreehold, tmp_path: Path) -> None:
    """Built and packed by its own scripts, and installed, both without a network: Node runs it, TypeScript reads its types."""
    node = (await run_example(ROOT / "tools" / "node-path", Path(sys.executable).parent)).strip()
    env = {"PATH": f"{node}:{ROOT}/web/node_modules/.bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    env |= {"npm_config_offline": "true", "npm_config_audit": "false", "npm_config_update_notifier": "false"}
    copy, user = tmp_path / "package", tmp_path / "user"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("dist", "node_modules"))
    await run_example("npm", "pack", "--pack-destination", tmp_path, cwd=copy, env=env)
    (tarball,) = tmp_path.glob("*.tgz")
    user.mkdir()
    await run_example("npm", "install", tarball, cwd=user, env=env)
    assert [one.name for one in (user / "node_modules").iterdir() if one.name[0] != "."] == ["freehold-client"]
    (user / "use.mjs").write_text(USER)
    said = await run_example("node", "use.mjs", freehold.url, freehold.token, cwd=user, env=env)
    assert said == "boolean true true identity.not-signed-in\n"
    (user / "typed.ts").write_text(TYPED_USER)
    (user / "tsconfig.json").write_text(json.dumps(TYPED_SETTINGS))
    await run_example("tsc", "-p", ".", cwd=user, env=env)
