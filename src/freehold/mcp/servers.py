"""The MCP servers of the manifest: connected when a session first uses one, and offered to agents as host tools."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.tools.tool import HostTool, ToolCaller
from freehold.errors import FreeholdError
from freehold.mcp.described_tool import DescribedTool
from freehold.mcp.elsewhere import open_elsewhere
from freehold.mcp.inside import open_inside
from freehold.mcp.offered_name import fit_offered_name
from freehold.mcp.pinned_tools import PinnedTool, PinnedTools
from freehold.mcp.protocol import Json, McpClient
from freehold.mcp.section import McpSection, McpServerSection
from freehold.mcp.sign_in import McpSignIns

if TYPE_CHECKING:
    from freehold.computer import Computer
    from freehold.egress.service import EgressService
    from freehold.egress.vault import Vault
    from freehold.manifest import Manifest
    from freehold.timeline import Timeline

MAX_ARGUMENTS = 200_000
FIRST_LIST_TIMEOUT = 10.0
"""Seconds that an agent waits at its start for a server whose tools were never seen."""
FAILURE_PAUSE = 30.0
"""Seconds in which an agent that lists its tools again does not wait again for a server that has failed."""
TRIAL = "mcp-trial"
_LOST = frozenset({"mcp.ended", "mcp.unreachable", "mcp.bad-answer"})
"""What a connection answers that is no longer one."""


@dataclass(frozen=True)
class ForeignTool(HostTool):
    """A tool of a server. The model is shown the schema that the owner has allowed; the server checks arguments."""

    schema: Json = field(default_factory=dict)

    def as_json(self) -> Json:
        return {"name": self.name, "description": self.description, "inputSchema": self.schema}

    def check(self, given: object) -> Json:
        if not isinstance(given, dict) or len(json.dumps(given)) > MAX_ARGUMENTS:
            raise FreeholdError("tool.wrong-arguments", f"{self.name}: the arguments are not an object, or too long")
        return given


@dataclass
class McpConnection:
    """One session with one server. A task of its own holds it open, from its first use until `closing` is set."""

    client: "asyncio.Future[McpClient]"
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    async def close(self) -> None:
        self.closing.set()
        assert self.task is not None
        if not self.client.done():
            self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class McpServers:
    """`computer_of` gives the computer of a session. Connections of a session end with `end_session`."""

    def __init__(
        self,
        manifest: "Manifest",
        timeline: "Timeline",
        egress: Callable[[], "EgressService"],
        vault: "Vault",
        computer_of: Callable[[str], "Computer"],
    ) -> None:
        self._sections = dict(manifest.section(McpSection).servers)
        self.pinned = PinnedTools(timeline)
        self._egress = egress
        self._vault = vault
        self.sign_ins = McpSignIns(vault)
        self._computer_of = computer_of
        self._open: dict[tuple[str, str], McpConnection] = {}
        self._failed: dict[tuple[str, str], float] = {}
        """When a server showed no tools: by its name and, for one inside, the session."""
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def sections(self) -> dict[str, McpServerSection]:
        return dict(self._sections)

    def add(self, name: str, section: McpServerSection) -> None:
        """One that was added to the manifest while Freehold runs."""
        self._sections[name] = section

    def find(self, name: str) -> McpServerSection:
        """Raises `mcp.not-found`."""
        found = self._sections.get(name)
        if found is None:
            known = ", ".join(self._sections) or "none"
            raise FreeholdError(
                "mcp.not-found", f"There is no MCP server {name[:80]!a}", hint=f"The servers are: {known}"
            )
        return found

    async def list_tools(self, session: str) -> Sequence[HostTool]:
        """The allowed tools of all servers that are switched on, for the agent of a session."""
        sections = [(name, section) for name, section in self.sections.items() if section.enabled]
        found = await asyncio.gather(*(self._list_tools_of(name, section, session) for name, section in sections))
        return [tool for tools in found for tool in tools]

    async def _list_tools_of(self, name: str, section: McpServerSection, session: str) -> list[HostTool]:
        if await asyncio.to_thread(self.pinned.is_off, name):
            return []
        known = await asyncio.to_thread(self.pinned.list, name)
        # A remote server that one session cannot reach is not waited for by the next.
        key = (name, session if section.url is None else "")
        if not known and section.tools and not self._has_just_failed(key):
            known = await self._see_first(name, session)
            if not known:
                self._failed[key] = time.monotonic()
        return [self._make_tool(section, one) for one in known.values() if one.is_allowed]

    def _has_just_failed(self, key: tuple[str, str]) -> bool:
        begin = time.monotonic() - FAILURE_PAUSE
        self._failed = {one: when for one, when in self._failed.items() if when > begin}
        return key in self._failed

    async def try_server(self, name: str) -> dict[str, PinnedTool]:
        """Connect to a server now, and read its tools. Raises the reason when that fails."""
        section = self.find(name)
        async with AsyncExitStack() as stack:
            client = await self._connect(stack, name, section, TRIAL)
            await self._note(name, section, await client.list_tools())
        return await asyncio.to_thread(self.pinned.list, name)

    async def try_call(self, name: str, tool: str, arguments: Json) -> tuple[str, bool]:
        """Call a tool on the owner's behalf, in a connection of its own."""
        section = self.find(name)
        async with AsyncExitStack() as stack:
            client = await self._connect(stack, name, section, TRIAL)
            if tool not in await client.list_tools():
                raise FreeholdError("mcp.not-found", f"The MCP server {name} has no tool {tool[:80]!a}")
            return await client.call(tool, arguments)

    async def end_session(self, session: str) -> None:
        """Close the connections of a session. Idempotent."""
        for key in [key for key in self._open if key[0] == session]:
            await self._open.pop(key).close()

    def end_soon(self, session: str) -> None:
        """The same, without waiting for it."""
        if any(key[0] == session for key in self._open):
            task = asyncio.ensure_future(self.end_session(session))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _make_tool(self, section: McpServerSection, pinned: PinnedTool) -> ForeignTool:
        server, offered = pinned.server, pinned.offered

        async def call(caller: ToolCaller, given: Json) -> str:
            if section.ask:
                from freehold.agents.tools.definitions import ask_permission

                text = f"{server}: {offered.name}\n{json.dumps(given, indent=1, ensure_ascii=False)}"
                subject = f"mcp:{server}/{offered.name}"
                await ask_permission(caller, make_text_request("other", f"{server}: {offered.name}", text, (subject,)))
            return await self._call(caller.session, server, section, offered, given)

        name = fit_offered_name(server, offered.name)
        # A run reaches the network only when it was begun with that permission.
        permission = None if section.url is None else "network"
        return ForeignTool(name, offered.description, {}, (), call, permission=permission, schema=offered.schema)

    async def _call(
        self, session: str, server: str, section: McpServerSection, offered: DescribedTool, given: Json
    ) -> str:
        client, described = await self._look(session, server, section)
        try:
            is_same = offered.name in described and described[offered.name].digest == offered.digest
            text, has_failed = await client.call(offered.name, given) if is_same else ("", False)
        except FreeholdError:
            await self._drop(session, server)
            raise
        if not is_same:
            await self._note(server, section, described)
            raise FreeholdError(
                "mcp.changed",
                f"The MCP server {server} describes {offered.name} in another way than the owner has allowed",
                hint="The owner can look at it and allow it again",
            )
        if has_failed:
            raise FreeholdError("mcp.failed", text or f"{offered.name} failed without a reason")
        return text

    async def _look(
        self, session: str, server: str, section: McpServerSection
    ) -> tuple[McpClient, dict[str, DescribedTool]]:
        """The tools as the server describes them now: what it said before says nothing about that.

        A connection that was open may be one that the server has ended or forgotten. Nothing was called yet, so another
        is opened, once.
        """
        was_open = (session, server) in self._open
        client = await self._connected(session, server, section)
        try:
            return client, await client.list_tools()
        except FreeholdError as error:
            await self._drop(session, server)
            if not was_open or error.code not in _LOST:
                raise
        return await self._look(session, server, section)

    async def _see_first(self, name: str, session: str) -> dict[str, PinnedTool]:
        """A server that does not answer in time offers nothing to this agent."""
        section = self.find(name)
        try:
            async with asyncio.timeout(FIRST_LIST_TIMEOUT):
                client = await self._connected(session, name, section)
                await self._note(name, section, await client.list_tools())
        except (TimeoutError, FreeholdError):
            await self._drop(session, name)
        return await asyncio.to_thread(self.pinned.list, name)

    async def _note(self, name: str, section: McpServerSection, offered: dict[str, DescribedTool]) -> None:
        self._failed = {key: when for key, when in self._failed.items() if key[0] != name}
        await asyncio.to_thread(self.pinned.note, name, offered, frozenset(section.tools))

    async def _connected(self, session: str, name: str, section: McpServerSection) -> McpClient:
        connection = self._open.get((session, name))
        if connection is None:
            connection = McpConnection(asyncio.get_running_loop().create_future())
            connection.task = asyncio.ensure_future(self._hold(connection, session, name, section))
            self._open[session, name] = connection
        try:
            return await asyncio.shield(connection.client)
        except FreeholdError:
            self._open.pop((session, name), None)
            raise

    async def _hold(self, connection: McpConnection, session: str, name: str, section: McpServerSection) -> None:
        """Enters and leaves the connection in one task, whoever asks for it and whoever ends it."""
        try:
            async with AsyncExitStack() as stack:
                connection.client.set_result(await self._connect(stack, name, section, session))
                await connection.closing.wait()
        except FreeholdError as error:
            if not connection.client.done():
                connection.client.set_exception(error)
        finally:
            if not connection.client.done():
                connection.client.set_exception(FreeholdError("mcp.ended", f"The session of {name} has ended"))
                connection.client.exception()  # marks it as retrieved: there may be nobody who waits

    async def _connect(self, stack: AsyncExitStack, name: str, section: McpServerSection, session: str) -> McpClient:
        if section.url is not None:
            who = "owner" if session == TRIAL else f"session:{session}"
            # For each request: a token is renewed while the session goes on, and is gone after a sign-out.
            opened = open_elsewhere(self._egress(), name, section, partial(self._find_key, name, section), who)
            client = McpClient(name, await stack.enter_async_context(opened))
        else:
            inside = open_inside(self._computer_of(session), name, section, session)
            client = McpClient(name, await stack.enter_async_context(inside))
        await client.open()
        return client

    async def _find_key(self, name: str, section: McpServerSection) -> str | None:
        if section.key is not None:
            found = await asyncio.to_thread(self._vault.get, section.key.removeprefix("secret:"))
            return found.reveal()
        if section.oauth and section.url is not None:
            return await self.sign_ins.find_token(self._egress(), name, section.url)
        return None

    async def begin_sign_in(self, name: str, redirect: str, *, who: str) -> str:
        """The address at which the owner signs in to a remote server."""
        section = self.find(name)
        if section.url is None or not section.oauth:
            raise FreeholdError("mcp.not-offered", f"[mcp.{name}] is not a server with oauth = true")
        return await self.sign_ins.begin(self._egress(), name, section.url, redirect, who=who)

    async def finish_sign_in(self, state: str, code: str, issuer: str | None) -> str:
        """Connections as who was signed in before end."""
        name = await self.sign_ins.finish(self._egress(), state, code, issuer)
        await self._drop_all(name)
        return name

    async def sign_out(self, name: str) -> None:
        """Forget the tokens of a server, and end its connections in all sessions. Idempotent."""
        self.find(name)
        await self.sign_ins.sign_out(name)
        await self._drop_all(name)

    async def _drop_all(self, name: str) -> None:
        for session in [session for session, server in self._open if server == name]:
            await self._drop(session, name)

    async def _drop(self, session: str, name: str) -> None:
        found = self._open.pop((session, name), None)
        if found is not None:
            await found.close()
