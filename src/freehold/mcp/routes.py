"""`/v1/mcp`: the MCP servers of the manifest. They are tried, and their tools allowed, one by one and as they were shown."""

import asyncio
from functools import partial

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from freehold.computer.contract.conventions import OWNER_COMMANDS
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlName
from freehold.gateway.page import PageLink, render_page
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post, put
from freehold.mcp.added_server import add_server
from freehold.mcp.bodies import (
    AddMcpServerBody,
    CallMcpToolBody,
    DecideMcpToolBody,
    McpAnswerBody,
    McpServerBody,
    McpSignInBody,
    SwitchMcpServerBody,
    describe_server,
)
from freehold.mcp.protocol import MAX_MESSAGE

CALLBACK = "/oauth/mcp-callback"
RUN_TIMEOUT = 120.0
API_TIMEOUT = 30.0
MAX_OUTPUT = 100_000


class McpRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._mcp = context.mcp
        self._services = context.services
        self._context = context

    @get("/v1/mcp", scope="read")
    async def list_mcp_servers(self) -> list[McpServerBody]:
        """The servers of the manifest, with their tools as they were seen last."""
        return await asyncio.to_thread(lambda: [self._describe(name) for name in self._mcp.sections])

    @post("/v1/mcp", scope="browser")
    async def add_mcp_server(self, body: AddMcpServerBody, request: Request) -> McpServerBody:
        """Write a server into the manifest. None of its tools is allowed by this."""
        if body.name in self._mcp.sections:
            raise FreeholdError("mcp.exists", f"There is an MCP server {body.name} already")
        section = await asyncio.to_thread(add_server, self._services.home.manifest, body)
        self._mcp.add(body.name, section)
        data = {"server": body.name, "place": body.url or body.command}
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "mcp.server_added", data, who=who)
        return await asyncio.to_thread(self._describe, body.name)

    @post("/v1/mcp/{name}/try", scope="admin")
    async def try_mcp_server(self, name: UrlName) -> McpServerBody:
        """Connect to a server now, and read its tools."""
        await self._mcp.try_server(name)
        return await asyncio.to_thread(self._describe, name)

    @post("/v1/mcp/{name}/call", scope="admin")
    async def call_mcp_tool(self, name: UrlName, body: CallMcpToolBody) -> McpAnswerBody:
        """Call a tool on your own behalf, whether agents may use it or not."""
        text, failed = await self._mcp.try_call(name, body.tool, body.arguments)
        return McpAnswerBody(text=text, failed=failed)

    @post("/v1/mcp/{name}/sign-in", scope="admin")
    async def begin_mcp_sign_in(self, name: UrlName, request: Request) -> McpSignInBody:
        """Begin a sign-in to a remote server. Your browser must open the returned address."""
        gateway = self._services.manifest.gateway
        # Servers register addresses with https and those of `localhost`, and not of names below it. It leads to the pages.
        base = f"http://localhost:{gateway.port}" if gateway.public_url is None else self._services.base_url
        redirect = f"{base}{CALLBACK}"
        who = principal_of(request.scope).who
        return McpSignInBody(address=await self._mcp.begin_sign_in(name, redirect, who=who))

    @delete("/v1/mcp/{name}/sign-in", scope="admin")
    async def end_mcp_sign_in(self, name: UrlName, request: Request) -> McpServerBody:
        """Forget the tokens of a remote server, and end its connections in all sessions."""
        await self._mcp.sign_out(name)
        who = principal_of(request.scope).who
        await asyncio.to_thread(self._services.timeline.append, "mcp.signed_out", {"server": name}, who=who)
        return await asyncio.to_thread(self._describe, name)

    @get(CALLBACK, scope="anyone", include_in_schema=False)
    async def finish_mcp_sign_in(self, request: Request) -> Response:
        """Where a sign-in leads back to. Only who knows its state, which nobody can guess, gets anything done."""
        given = request.query_params
        back = PageLink("Back to the tools", "/mcp")
        state, code = given.get("state", "")[:200], given.get("code", "")[:4000]
        try:
            name = await self._mcp.finish_sign_in(state, code, given.get("iss"))
        except FreeholdError as error:
            return render_page(
                title="Sign-in failed", message=error.message, hint=error.hint, status=error.kind.status, link=back
            )
        await asyncio.to_thread(self._services.timeline.append, "mcp.signed_in", {"server": name}, who="owner")
        return render_page(title="Signed in", message=f"Freehold may use {name} now.", hint="", status=200, link=back)

    @patch("/v1/mcp/{name}", scope="admin")
    async def switch_mcp_server(self, name: UrlName, body: SwitchMcpServerBody, request: Request) -> McpServerBody:
        """Offer the tools of a server to agents, or not. It counts from the next call on."""
        self._mcp.find(name)
        who = principal_of(request.scope).who
        await asyncio.to_thread(partial(self._mcp.pinned.switch, name, on=body.on, who=who))
        return await asyncio.to_thread(self._describe, name)

    @put("/v1/mcp/{name}/tools/{tool}", scope="admin")
    async def decide_mcp_tool(
        self, name: UrlName, tool: UrlName, body: DecideMcpToolBody, request: Request
    ) -> McpServerBody:
        """Allow a tool as it was shown, or no longer."""
        self._mcp.find(name)
        who = principal_of(request.scope).who
        if not await asyncio.to_thread(partial(self._mcp.pinned.decide, name, tool, body.digest, who=who)):
            raise FreeholdError("mcp.changed", f"The tool {tool[:80]!a} of {name} is not what was shown")
        return await asyncio.to_thread(self._describe, name)

    @post("/v1/mcp-server", scope="read", max_body=MAX_MESSAGE, include_in_schema=False)
    async def serve_mcp(self, request: Request) -> Response:
        """Freehold as an MCP server, for MCP clients of the owner. Each tool needs its own scope of the token."""
        # Not before somebody uses it: the client is heavy.
        from freehold.client import Freehold
        from freehold.client._async.connection import AsyncConnection
        from freehold.mcp.own_code import OwnContexts
        from freehold.mcp.own_server import answer_message
        from freehold.mcp.own_tools import OwnCaller

        principal = principal_of(request.scope)
        if (token := principal.token) is None:
            raise FreeholdError("identity.no-token", "An MCP client needs an API token", hint="freehold token create")
        secret = request.headers["authorization"].removeprefix("Bearer ")
        url = f"http://localhost:{self._services.manifest.gateway.port}"

        async def run(command: str) -> str:
            principal.require("terminal")
            done = await self._services.computer.run(command, timeout=RUN_TIMEOUT, apart=OWNER_COMMANDS)
            output = (done.stdout + done.stderr).decode(errors="replace")[:MAX_OUTPUT]
            return f"{output}\n[exit code {done.exit_code}]"

        def make_caller() -> OwnCaller:
            home, connection = (
                Freehold(url, token=secret, timeout=RUN_TIMEOUT),
                AsyncConnection(url, secret, API_TIMEOUT),
            )
            return OwnCaller(token.id, home, connection, run, self._context.service(OwnContexts))

        answer = await answer_message(await request.body(), make_caller)
        return Response(status_code=202) if answer is None else JSONResponse(answer)

    def _describe(self, name: str) -> McpServerBody:
        pinned = self._mcp.pinned
        section = self._mcp.find(name)
        has_tokens = section.oauth and self._mcp.sign_ins.read(name) is not None
        return describe_server(name, section, pinned.list(name), is_off=pinned.is_off(name), has_tokens=has_tokens)
