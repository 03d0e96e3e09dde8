"""MCP over HTTP for whoever is inside: a token says which session calls, and nothing that it says can change that.

Our own and not the protocol's Python package; see docs/adr/0012.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence

from freehold import __version__
from freehold.agents.approvals import Question, Reply
from freehold.agents.tools.tool import Caller, Json, Tool
from freehold.egress import http1
from freehold.egress.stream import Inlet, Stream
from freehold.errors import FreeholdError

PORT = 3130
ADDRESS = f"http://127.0.0.1:{PORT}/mcp"
INSIDE = "/opt/agents/.tools/freehold"
TOKEN = "FREEHOLD_TOOLS_TOKEN"  # noqa: S105 - the name of a variable
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
MAX_BODY = 256 * 1024
MAX_AT_ONCE = 8
TO_READ = 30.0

Ask = Callable[[str, Question], Awaitable[Reply | None]]


class HostTools:
    """`handle` serves one connection from inside; `servers` and `environment` are what a session's agent is given."""

    def __init__(self, kit: Sequence[Tool], ask: Ask) -> None:
        self._tools = {tool.name: tool for tool in kit}
        self._ask = ask
        self._sessions: dict[bytes, str] = {}
        self._tokens: dict[str, str] = {}
        self._calls: dict[str, int] = {}

    def token_for(self, session: str) -> str:
        """One for each session, until it is forgotten."""
        if session not in self._tokens:
            self._tokens[session] = secret = secrets.token_urlsafe(32)
            self._sessions[_digest(secret)] = session
        return self._tokens[session]

    def forget(self, session: str) -> None:
        """Its token opens nothing any more. Idempotent."""
        secret = self._tokens.pop(session, None)
        if secret is not None:
            del self._sessions[_digest(secret)]

    def servers(self, session: str, http: bool, fills_in: bool) -> list[Json]:
        """For session/new; an agent that does not speak HTTP gets a program that does it for it.

        One that fills in variables is told where the token is instead of the token.
        """
        secret = f"${{{TOKEN}}}" if fills_in else self.token_for(session)
        if http:
            headers = [{"name": "Authorization", "value": f"Bearer {secret}"}]
            return [{"type": "http", "name": "freehold", "url": ADDRESS, "headers": headers}]
        env = [{"name": TOKEN, "value": secret}]
        return [{"name": "freehold", "command": "/usr/bin/python3", "args": [INSIDE, "mcp"], "env": env}]

    def environment(self, session: str) -> dict[str, str | None]:
        """For the `freehold` command, which the agent's own commands may call."""
        return {TOKEN: self.token_for(session)}

    async def handle(self, stream: Stream) -> None:
        inlet = Inlet(stream)
        while True:
            try:
                async with asyncio.timeout(TO_READ):
                    request = await http1.read_request(inlet)
                    body = await _body(inlet, request)
            except TimeoutError:
                return
            status, answer = await self._answer(request, body)
            data = b"" if answer is None else json.dumps(answer).encode()
            fields = [("content-type", "application/json"), ("content-length", str(len(data)))]
            await stream.write(http1.encode_head(f"HTTP/1.1 {status} {_REASONS[status]}", fields) + data)

    async def _answer(self, request: http1.Request, body: bytes | None) -> tuple[int, Json | None]:
        if request.target != "/mcp":
            return 404, None
        if request.values("origin"):
            return 403, None  # a page in a browser is no agent
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
            return 400, _error(None, -32700, "That is not JSON")
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return 400, _error(None, -32600, "That is no request")
        number = message.get("id")
        if number is None:
            return 202, None
        try:
            result = await self._do(session, message["method"], message.get("params") or {})
        except FreeholdError as error:
            return 200, _error(number, -32602, error.message)
        return 200, {"jsonrpc": "2.0", "id": number, "result": result}

    async def _do(self, session: str, method: str, params: object) -> Json:
        given = params if isinstance(params, dict) else {}
        match method:
            case "initialize":
                asked = given.get("protocolVersion")
                return {
                    "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "freehold", "version": __version__},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.as_json() for tool in self._tools.values()]}
            case "tools/call":
                return await self._call(session, given.get("name"), given.get("arguments") or {})
            case _:
                raise FreeholdError("tool.not-found", f"There is no method {method!a:.60}")

    async def _call(self, session: str, name: object, given: object) -> Json:
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise FreeholdError("tool.not-found", f"There is no tool {name!a:.60}")
        if self._calls.get(session, 0) >= MAX_AT_ONCE:
            raise FreeholdError("tool.too-many", f"{MAX_AT_ONCE} calls of this session wait already")
        checked = tool.check(given)
        self._calls[session] = self._calls.get(session, 0) + 1
        try:
            caller = Caller(session, lambda question: self._ask(session, question))
            return _content(await tool.call(caller, checked))
        except FreeholdError as error:
            # For the model to read: the call was right, and it did not work out.
            return {**_content(error.message), "isError": True}
        finally:
            self._calls[session] -= 1
            if not self._calls[session]:
                del self._calls[session]

    @property
    def described(self) -> list[Json]:
        """The tools as MCP lists them."""
        return [tool.as_json() for tool in self._tools.values()]


async def _body(inlet: Inlet, request: http1.Request) -> bytes | None:
    """None when it is too large."""
    data = bytearray()
    async for piece in http1.read_body(inlet, request.framing()):
        if len(data) <= MAX_BODY:
            data += piece
    return bytes(data) if len(data) <= MAX_BODY else None


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


def _content(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


def _error(number: object, code: int, words: str) -> Json:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": words}}


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
