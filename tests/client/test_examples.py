"""The examples of both clients: each does the same in both languages, and there is one for every resource."""

import asyncio
import json
import re
import sys

import pytest
import pytest_asyncio
from tests.client.test_typescript import PACKAGE, list_python_resources, run_example, to_camel
from tests.computer.isolates.conftest import node_folder
from tests.support.condition import until
from tests.support.freehold import ROOT
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.ssh.authority import make_key_pair

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[agents]
default = "builtin"
[mesh]
mode = "peer"
name = "home"
[mcp.notes]
command = "/usr/bin/python3 /workspace/odd_server.py"
[credentials.forge]
host = "git.example.org"
secret = "secret:forge"
"""
ENVIRONMENT = {"FREEHOLD_SSH_ENABLED": "true", "FREEHOLD_BACKUP_TO": "{home}-backups"}
FREEHOLD = FreeholdOptions(agents=("builtin",), manifest=MANIFEST, environment=ENVIRONMENT)
PORT = 8123
FLOW = """from freehold_workflow import ask


async def main(data):
    return await ask(f"Is week {data['week']} over?", ["yes", "no"])
"""
EXPECTED = {
    "access": "token:test\ntoken test admin files history prompt read\ncredential forge git.example.org ask\nssh laptop\n",
    "backup": "has files\n",
    "channels": "email failed 22:00\nchannels.not-paired.conflict\n",
    "git": "+One more line\nWrite notes is HEAD 0\n",
    "machines": "peer home\nfreehold-pair is yours\nfleet 0 0\n",
    "preview": f"{PORT} python3 is yours to open\n",
    "routines": "3\ncron\ndone\npaused\n",
    "sessions": "Three.\n",
    "skills": "shipped\noff\n",
    "tools": "notes echo Says it again.\nhello\n",
    "usage": "budget * day_cost 2.5\nsecret example\nruns gateway\nstopped: to try it\nlifted\n",
    "workflows": "Is week 12 over? yes no\ndone yes\n",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def content(freehold: RunningFreehold) -> None:
    """What the examples speak of: a workflow, an MCP server, a recovery key, a public key, a repository, a server inside."""
    await until(freehold.is_connected)
    freehold.file("flows").mkdir()
    freehold.file("flows/nightly.py").write_text(FLOW)
    freehold.file("odd_server.py").write_bytes((ROOT / "tests/mcp/odd_server.py").read_bytes())
    assert (await asyncio.to_thread(freehold.harness.run, "backup", "key")).returncode == 0
    (freehold.home.root / "laptop.pub").write_text(make_key_pair().public_key)
    session = await freehold.open("builtin")
    repository = {"command": "git init --quiet project"}
    server = {"command": f"python3 -m http.server {PORT} --bind 127.0.0.1", "background": True}
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, f"CALL run {json.dumps(repository)}\nSAY done")
        await freehold.run_turn(watch, session, f"CALL run {json.dumps(server)}\nSAY done")

    async def are_parts_ready() -> bool:
        ports = (await freehold.call("GET", "/v1/preview/ports"))["ports"]
        is_meshed = (await freehold.http.get("/v1/mesh")).status_code == 200
        is_set_up = (await freehold.call("GET", "/v1/backup"))["recovery_key"] is not None
        return [one["port"] for one in ports] == [PORT] and is_meshed and is_set_up

    await until(are_parts_ready)


def list_words(freehold: RunningFreehold, name: str) -> list[str]:
    """The words of an example after the address and the token."""
    words = {
        "access": [str(freehold.home.root / "laptop.pub")],
        "git": ["project"],
        "sessions": ["SAY Three.", "RUN rm -r /workspace/flows"],
    }
    return words.get(name, [])


@pytest.mark.parametrize("name", sorted(EXPECTED))
async def test_an_example_prints_the_same_in_both_languages(freehold: RunningFreehold, name: str) -> None:
    given = (freehold.url, freehold.token, *list_words(freehold, name))
    python = await run_example(sys.executable, ROOT / "examples" / "client" / f"{name}.py", *given)
    typescript = await run_example(
        node_folder() / "bin" / "node", "--no-warnings", PACKAGE / "examples" / f"{name}.ts", *given
    )
    assert python == typescript
    assert EXPECTED[name] in python


async def test_every_example_exists_in_both_languages() -> None:
    typescript = {path.stem for path in (PACKAGE / "examples").glob("*.ts")}
    assert typescript == {path.stem for path in (ROOT / "examples" / "client").glob("*.py")}


async def test_every_resource_of_the_clients_has_an_example() -> None:
    """A new resource comes with one."""
    for folder, pattern in ((ROOT / "examples" / "client", "*.py"), (PACKAGE / "examples", "*.ts")):
        text = "".join(path.read_text() for path in folder.glob(pattern))
        used = {to_camel(name) for name in re.findall(r"\bhome\.(\w+)\.", text)}
        assert set(list_python_resources()) - used == set(), folder
