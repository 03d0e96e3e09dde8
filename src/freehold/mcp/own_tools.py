"""What Freehold offers to MCP clients of the owner: files, commands, code, history and sessions.

Tools are requests to Freehold's own API with the token of the caller: what the token may not do, no tool does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from freehold.agents.tools.code_runner import LANGUAGES, MAX_PACKAGES, CodeCall, read_source
from freehold.agents.tools.tool import ToolAnswer
from freehold.client import Freehold
from freehold.client._async.connection import AsyncConnection
from freehold.errors import FreeholdError
from freehold.mcp.own_code import MAX_NAME, OwnContexts, describe_code_run

Json = dict[str, Any]
MAX_TEXT = 100_000
MAX_WAIT = 600.0
_TEXT: Json = {"type": "string"}
_KINDS: Mapping[str, type] = {"string": str, "integer": int, "array": list}


@dataclass(frozen=True)
class OwnCaller:
    """`token` is the id of its token. `run` runs a command in the computer, if the token has the scope for it."""

    token: str
    home: Freehold
    connection: AsyncConnection
    run: Callable[[str], Awaitable[str]]
    contexts: OwnContexts


@dataclass(frozen=True)
class OwnTool:
    """`scope` is what the token needs; the description says it, and the API checks it."""

    name: str
    scope: str
    description: str
    properties: Mapping[str, Json]
    required: tuple[str, ...]
    call: Callable[[OwnCaller, Json], Awaitable[str | ToolAnswer]]

    def as_json(self) -> Json:
        schema = {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }
        return {"name": self.name, "description": f"{self.description} Scope: {self.scope}.", "inputSchema": schema}

    def check(self, given: object) -> Json:
        """Raises `tool.wrong-arguments`."""
        if not isinstance(given, dict) or not given.keys() <= self.properties.keys():
            raise FreeholdError("tool.wrong-arguments", f"{self.name} takes: {', '.join(self.properties) or 'nothing'}")
        for name in self.required:
            if name not in given:
                raise FreeholdError("tool.wrong-arguments", f"{self.name}: {name} is missing")
        for name, value in given.items():
            kind = self.properties[name]["type"]
            if not isinstance(value, _KINDS[kind]) or isinstance(value, bool):
                raise FreeholdError("tool.wrong-arguments", f"{self.name}: {name} is not of the type {kind}")
            allowed = self.properties[name].get("enum", (value,))
            if value not in allowed:
                raise FreeholdError("tool.wrong-arguments", f"{self.name}: {name} is one of: {', '.join(allowed)}")
            if isinstance(value, list) and not (
                len(value) <= self.properties[name]["maxItems"] and all(map(_is_text, value))
            ):
                most = self.properties[name]["maxItems"]
                raise FreeholdError("tool.wrong-arguments", f"{self.name}: {name} is a list of at most {most} strings")
            longest = self.properties[name].get("maxLength")
            if longest is not None and not 0 < len(str(value)) <= longest:
                raise FreeholdError("tool.wrong-arguments", f"{self.name}: {name} has 1 to {longest} characters")
        return given


def _is_text(value: object) -> bool:
    return isinstance(value, str)


async def _list_files(caller: OwnCaller, given: Json) -> str:
    found: Json = await caller.connection.get("/v1/files/list", dict, {"path": given.get("path") or "."})
    rows = [f"{one['name']}{'/' if one['kind'] == 'folder' else ''}" for one in found["entries"]]
    return "\n".join([*rows, *(["…"] if found["next"] else [])]) or "The folder is empty."


async def _read_file(caller: OwnCaller, given: Json) -> str:
    _, content = await caller.connection.download(f"/v1/files/content?path={quote(given['path'], safe='')}")
    text = content.decode(errors="replace")
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n… (cut off)"


async def _write_file(caller: OwnCaller, given: Json) -> str:
    path = f"/v1/files/content?path={quote(given['path'], safe='')}"
    headers = {"content-type": "application/octet-stream"}
    await caller.connection.upload("PUT", path, dict, given["content"].encode(), headers)
    return f"Wrote {given['path']}."


async def _run_command(caller: OwnCaller, given: Json) -> str:
    return await caller.run(given["command"])


async def _run_code(caller: OwnCaller, given: Json) -> ToolAnswer:
    packages = frozenset(given["packages"]) if "packages" in given else None
    call = CodeCall(given.get("language", "python"), given["code"], given.get("call"), packages)
    if "context" not in given:
        source, grants = read_source(call.language, call.code), {"packages": sorted(packages or ())}
        return describe_code_run(await caller.home.code.execute(call.language, source, call=call.call, grants=grants))
    key = caller.token, call.language, given["context"]
    return describe_code_run(*await caller.contexts.execute(caller.home.code, key, call))


async def _read_log(caller: OwnCaller, given: Json) -> str:
    entries = await caller.home.history.log(limit=max(1, min(given.get("limit", 20), 200)))
    rows = [f"{one.id}: {one.why or one.kind} (+{one.added} ~{one.changed} -{one.removed})" for one in entries]
    return "\n".join(rows) or "Nothing has changed yet."


async def _undo(caller: OwnCaller, given: Json) -> str:
    return (await caller.home.history.undo(given.get("entry"))).summary


async def _list_sessions(caller: OwnCaller, given: Json) -> str:
    page = await caller.home.sessions.list(given.get("query", ""))
    rows = [f"{one.id}  {one.agent}  {one.status}  {one.title}" for one in page.sessions]
    return "\n".join(rows) or "There are no sessions."


async def _prompt(caller: OwnCaller, given: Json) -> str:
    sessions = caller.home.sessions
    session = await (sessions.get(given["session"]) if "session" in given else sessions.open(given.get("agent")))
    said: list[str] = [f"Session {session.id}"]
    try:
        async with asyncio.timeout(MAX_WAIT):
            async for update in session.prompt(given["text"]):
                if update.kind == "message" and not update.is_delta and update.data.get("role") != "user":
                    said.append(str(update.data.get("text")))
                elif update.kind == "turn.ended" and update.data.get("error"):
                    said.append(f"[{update.data['error'].get('message')}]")
    except TimeoutError:
        said.append("[It still works, or waits for the owner.]")
    return "\n\n".join(said)[:MAX_TEXT]


_PATH: Json = {**_TEXT, "description": "Relative to the workspace, or absolute in the computer."}
OWN_TOOLS = {
    tool.name: tool
    for tool in (
        OwnTool("list_files", "files", "List a folder of the computer.", {"path": _PATH}, (), _list_files),
        OwnTool("read_file", "files", "Read a text file of the computer.", {"path": _PATH}, ("path",), _read_file),
        OwnTool(
            "write_file",
            "files",
            "Write a whole text file in the computer. It can be undone.",
            {"path": _PATH, "content": _TEXT},
            ("path", "content"),
            _write_file,
        ),
        OwnTool(
            "run",
            "terminal",
            "Run a shell command in the sealed computer, for at most two minutes.",
            {"command": _TEXT},
            ("command",),
            _run_command,
        ),
        OwnTool(
            "run_code",
            "terminal",
            "Run code in a sealed process of its own, in milliseconds and without files or network, and get the value of"
            " its last expression, and its figures.",
            {
                "code": {**_TEXT, "description": "For wasm: a module in the text format, or its bytes in base64."},
                "language": {**_TEXT, "enum": list(LANGUAGES)},
                "context": {
                    **_TEXT,
                    "minLength": 1,
                    "maxLength": MAX_NAME,
                    "description": "A name: calls with the same name and language share their variables.",
                },
                "packages": {
                    "type": "array",
                    "items": _TEXT,
                    "maxItems": MAX_PACKAGES,
                    "description": "Packages that are prepared in the computer. Others than before begin a context anew.",
                },
                "call": {**_TEXT, "description": "For wasm: a function of the module, such as add(40, 2)."},
            },
            ("code",),
            _run_code,
        ),
        OwnTool("history", "read", "The last changes of the files.", {"limit": {"type": "integer"}}, (), _read_log),
        OwnTool(
            "undo",
            "history",
            "Take back the last change of the files, or an entry and all after it.",
            {"entry": {"type": "integer"}},
            (),
            _undo,
        ),
        OwnTool("sessions", "read", "List conversations with agents.", {"query": _TEXT}, (), _list_sessions),
        OwnTool(
            "prompt",
            "prompt",
            "Send a prompt to an agent, in a new session or an open one, and wait for the answer. The owner is asked.",
            {"text": _TEXT, "agent": _TEXT, "session": _TEXT},
            ("text",),
            _prompt,
        ),
    )
}
