"""Serves the host tools to agents inside the computer: MCP over HTTP. The token says which session calls.

This is not the protocol's Python package; see docs/adr/0012.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence

from freehold import __version__
from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.tools.call_log import HostCallLog
from freehold.agents.tools.tool import HostTool, Json, ToolAnswer, ToolCaller
from freehold.computer.contract.conventions import AGENTS_PATH, HOST_TOOLS_PORT, LOOPBACK
from freehold.egress import http1
from freehold.egress.stream import ByteStream, PushbackReader
from freehold.errors import FreeholdError

ADDRESS = f"http://{LOOPBACK}:{HOST_TOOLS_PORT}/mcp"
COMMAND = f"{AGENTS_PATH}/.tools/freehold"
"""The `freehold` command inside the computer."""

TOKEN_VARIABLE = "FREEHOLD_TOOLS_TOKEN"  # noqa: S105 - the name of a variable
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
MAX_BODY = 256 * 1024
MAX_CALLS = 8
"""Calls of one session at the same time."""

READ_TIMEOUT = 30.0

PermissionsOf = Callable[[str], frozenset[str] | None]
"""What the session of a run may do; None for a session that may do everything."""
Ask = Callable[[str, PermissionRequest], Awaitable[PermissionAnswer | None]]
ShowPictures = Callable[[str, ToolAnswer], Awaitable[None]]
"""Shows the pictures of an answer in the conversation, whatever the agent does with them."""
ListMore = Callable[[str], Awaitable[Sequence[HostTool]]]
"""Further tools for the agent of a session, as they are now."""


async def _list_none(_session: str) -> Sequence[HostTool]:
    return ()


def _may_everything(_session: str) -> None:
    return None


async def _show_nothing(_session: str, _answer: ToolAnswer) -> None:
    return None


async def _no_turn(_session: str) -> None:
    return None


class HostToolServer:
    """`handle` serves one connection from inside. `mcp_servers` and `environment` are for the agent of a session."""

    def __init__(
        self,
        tools: Sequence[HostTool],
        ask: Ask,
        *,
        list_more: ListMore = _list_none,
        calls: HostCallLog | None = None,
        permissions_of: PermissionsOf = _may_everything,
        show_pictures: ShowPictures = _show_nothing,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._ask = ask
        self._list_more = list_more
        self._log = calls or HostCallLog(_no_turn)
        self._permissions_of = permissions_of
        self._show_pictures = show_pictures
        self._sessions: dict[bytes, str] = {}
        self._tokens: dict[str, str] = {}
        self._calls: dict[str, int] = {}

    def token_for(self, session: str) -> str:
        """The token of a session. The same until `revoke`."""
        if session not in self._tokens:
            self._tokens[session] = secret = secrets.token_urlsafe(32)
            self._sessions[_digest(secret)] = session
        return self._tokens[session]

    def revoke(self, session: str) -> None:
        """The token of the session no longer works. Idempotent."""
        secret = self._tokens.pop(session, None)
        if secret is not None:
            del self._sessions[_digest(secret)]
        self._log.forget(session)

    def mcp_servers(self, session: str, *, http: bool, expands_variables: bool) -> list[Json]:
        """For session/new. An agent that does not support MCP over HTTP gets a program that forwards from stdio.

        An agent that expands variables gets the name of the variable instead of the token.
        """
        secret = f"${{{TOKEN_VARIABLE}}}" if expands_variables else self.token_for(session)
        if http:
            headers = [{"name": "Authorization", "value": f"Bearer {secret}"}]
            return [{"type": "http", "name": "freehold", "url": ADDRESS, "headers": headers}]
        env = [{"name": TOKEN_VARIABLE, "value": secret}]
        return [{"name": "freehold", "command": "/usr/bin/python3", "args": [COMMAND, "mcp"], "env": env}]

    def environment(self, session: str) -> dict[str, str | None]:
        """For the `freehold` command inside the computer."""
        return {TOKEN_VARIABLE: self.token_for(session)}

    async def handle(self, stream: ByteStream) -> None:
        """A request that is not valid HTTP is answered with 400, and its connection ends: what follows has no clear start."""
        reader = PushbackReader(stream)
        keeps_open = True
        while keeps_open:
            try:
                async with asyncio.timeout(READ_TIMEOUT):
                    request = await http1.read_request(reader)
                    body = await _body(reader, request)
            except TimeoutError:
                return
            except FreeholdError as error:
                if error.code != "egress.cut-short":
                    await stream.write(_encode_answer(400, _error(None, -32700, error.message), keeps_open=False))
                return
            keeps_open = request.keeps_open and request.method != "HEAD"
            status, answer = await self._answer(request, body)
            await stream.write(_encode_answer(status, answer, keeps_open=keeps_open))

    async def _answer(self, request: http1.HttpRequest, body: bytes | None) -> tuple[int, Json | None]:
        if request.target != "/mcp":
            return 404, None
        if request.values("origin"):
            return 403, None  # only browsers send it
        secret = (request.values("authorization") or [""])[0].removeprefix("Bearer ")
        session = self._sessions.get(_digest(secret))
        if session is None:
            return 401, None
        if request.method != "POST":
            return 405, None
        if body is None:
            return 413, None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return 400, _error(None, -32700, "The body is not valid JSON")
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return 400, _error(None, -32600, "The body is not a JSON-RPC request")
        number = message.get("id")
        if number is None:
            return 202, None
        try:
            result = await self._dispatch(session, message["method"], message.get("params") or {})
        except FreeholdError as error:
            return 200, _error(number, -32602, error.message)
        return 200, {"jsonrpc": "2.0", "id": number, "result": result}

    async def _dispatch(self, session: str, method: str, params: object) -> Json:
        given = params if isinstance(params, dict) else {}
        match method:
            case "initialize":
                version = given.get("protocolVersion")
                return {
                    "protocolVersion": version if version in VERSIONS else VERSIONS[0],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "freehold", "version": __version__},
                }
            case "ping":
                return {}
            case "tools/list":
                more = [tool for tool in await self._list_more(session) if tool.name not in self._tools]
                allowed = [tool for tool in (*self._tools.values(), *more) if self._may_use(session, tool)]
                return {"tools": [tool.as_json() for tool in allowed]}
            case "tools/call":
                return await self._call(session, given.get("name"), given.get("arguments") or {})
            case _:
                raise FreeholdError("tool.not-found", f"There is no method {method!a:.60}")

    async def _call(self, session: str, name: object, given: object) -> Json:
        tool = await self._find(session, name) if isinstance(name, str) else None
        if tool is None:
            raise FreeholdError("tool.not-found", f"There is no tool {name!a:.60}")
        if not self._may_use(session, tool):
            raise FreeholdError(
                "tool.not-granted.permission",
                f"{tool.name}: this run was begun without the permission {tool.permission}",
            )
        if self._calls.get(session, 0) >= MAX_CALLS:
            raise FreeholdError("tool.too-many", f"{MAX_CALLS} calls of this session are running already")
        checked = tool.check(given)
        self._calls[session] = self._calls.get(session, 0) + 1
        try:
            caller = ToolCaller(session, lambda request: self._ask(session, request))
            await self._log.note_call(session, tool.name)
            answer = await tool.call(caller, checked)
            if tool.reads:
                await self._log.note_read(session, from_web=isinstance(answer, ToolAnswer) and answer.from_web)
            if isinstance(answer, ToolAnswer) and answer.pictures:
                await self._show_pictures(session, answer)
            return _content(answer)
        except FreeholdError as error:
            # The call was valid and failed. The model reads the reason.
            return {**_content(error.message), "isError": True}
        finally:
            self._calls[session] -= 1
            if not self._calls[session]:
                del self._calls[session]

    async def _find(self, session: str, name: str) -> HostTool | None:
        if name in self._tools:
            return self._tools[name]
        return next((tool for tool in await self._list_more(session) if tool.name == name), None)

    def _may_use(self, session: str, tool: HostTool) -> bool:
        allowed = self._permissions_of(session)
        return allowed is None or tool.permission is None or tool.permission in allowed

    @property
    def described(self) -> list[Json]:
        """The tools of Freehold itself, in the form of MCP's tools/list."""
        return [tool.as_json() for tool in self._tools.values()]


def _encode_answer(status: int, answer: Json | None, *, keeps_open: bool) -> bytes:
    data = b"" if answer is None else json.dumps(answer).encode()
    fields = [("content-type", "application/json"), *([] if keeps_open else [("connection", "close")])]
    return http1.encode_response(status, _REASONS[status], fields, len(data)) + data


async def _body(reader: PushbackReader, request: http1.HttpRequest) -> bytes | None:
    """None when it is too large."""
    if request.method not in http1.METHODS_WITH_BODY and request.framing() != 0:
        raise http1.malformed(f"a {request.method[:16]} request must not have a body")
    data = bytearray()
    async for piece in http1.read_body(reader, request.framing()):
        if len(data) <= MAX_BODY:
            data += piece
    return bytes(data) if len(data) <= MAX_BODY else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _content(answer: str | ToolAnswer) -> Json:
    return {"content": (ToolAnswer(answer) if isinstance(answer, str) else answer).as_json()}


def _error(number: object, code: int, message: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


_REASONS = {
    200: "OK",
    202: "Accepted",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    413: "Content Too Large",
}
