"""Builds the service of sessions from the gateway's services."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.approval_store import ApprovalRow, PermissionAnswer
from freehold.agents.sessions.approvals import Approvals
from freehold.agents.sessions.dependencies import HostGrant, SessionDependencies
from freehold.agents.sessions.permission_request import PermissionRequest, make_text_request
from freehold.agents.sessions.rows import SessionEventRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.sessions.store import SessionStore
from freehold.agents.threads import run_blocking
from freehold.browser.browsers import Browsers
from freehold.browser.section import BrowserSection
from freehold.computer.contract.conventions import HOST_TOOLS_PORT
from freehold.egress.keyring import HostCredential
from freehold.egress.models import ActiveStop
from freehold.errors import FreeholdError
from freehold.gateway.browser_host import GatewayBrowserHost
from freehold.gateway.computer_access import ComputerAccess
from freehold.gateway.kill_switch import KillSwitch
from freehold.gateway.preview.hosts import PreviewHosts
from freehold.gateway.preview.listeners import PortMonitor
from freehold.gateway.run_engine import SessionRunEngine
from freehold.gateway.services import Services
from freehold.gateway.session_topics import SessionTopics
from freehold.gateway.title_writer import TitleWriter
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.history.calls import RESTORE_TIMEOUT
from freehold.keeper.client import KeeperClient
from freehold.mcp.servers import McpServers
from freehold.skills.loads import SkillLoads
from freehold.slots import Slot, SlotCaller, SlotError

if TYPE_CHECKING:
    from freehold.agents.tools.server import Ask, HostToolServer
    from freehold.egress.stream import ByteStream


@dataclass(frozen=True)
class MoreTools:
    """Where further host tools come from, and how events with the pictures of all of them are published."""

    mcp: McpServers
    browsers: Browsers
    publish_events: Callable[[str, list[SessionEventRow]], None]


class HostToolAccess:
    """The host tools, which `load` makes when the first agent needs them: an idle gateway has none in memory."""

    def __init__(self, load: "Callable[[], HostToolServer]") -> None:
        self._load = load

    @cached_property
    def server(self) -> "HostToolServer":
        return self._load()

    async def handle(self, stream: "ByteStream") -> None:
        """Serves one connection from inside the computer."""
        await self.server.handle(stream)

    def revoke(self, session: str) -> None:
        """Tools that were never loaded have given nothing to anybody."""
        if "server" in vars(self):
            self.server.revoke(session)


class GatewayHostAccess:
    """Host tools, proxy credentials and placeholders of credentials for the agents of sessions."""

    def __init__(self, tools: HostToolAccess, access: ComputerAccess, more: MoreTools) -> None:
        self._tools = tools
        self._access = access
        self._more = more

    def grant(self, session: str) -> HostGrant:
        """Raises `egress.not-running`."""
        credentials = self._access.egress.credentials
        tools = self._tools.server
        variables, placeholders = self._access.keyring.grant(session)
        environment = {**variables, **tools.environment(session), **credentials.environment(session)}
        return HostGrant(environment, (tools.token_for(session), credentials.issue(session), *placeholders))

    def mcp_servers(self, session: str, *, http: bool, expands_variables: bool) -> list[Json]:
        return self._tools.server.mcp_servers(session, http=http, expands_variables=expands_variables)

    def revoke(self, session: str) -> None:
        self._tools.revoke(session)
        self._more.mcp.end_soon(session)
        self._more.browsers.close_soon(session)
        self._access.keyring.revoke(session)
        with suppress(FreeholdError):  # an egress that does not run has granted nothing
            self._access.egress.end_conversation(session)

    def forget(self, session: str) -> None:
        self._more.browsers.forget(session)
        with suppress(FreeholdError):
            self._access.egress.forget_session(session)


def open_session_service(
    services: Services, publisher: TopicPublisher, ports: PortMonitor, hosts: PreviewHosts
) -> tuple[SessionService, McpServers]:
    """The service is not running yet: the application runs `SessionService.run` as long as it lives."""
    access = services.computer_access
    store = SessionStore(services.timeline)
    topics = SessionTopics(publisher, store)

    def publish_approval(session: str, events: list[SessionEventRow], approval: ApprovalRow) -> None:
        topics.publish_events(session, events)
        topics.publish_approval(approval)

    approvals = Approvals(store, publish_approval, topics.publish_session)
    keeper = KeeperClient(services.home, timeout=RESTORE_TIMEOUT)
    engine = SessionRunEngine(access, keeper, services.manifest.computer.image)
    browsers = _make_browsers(services, keeper, engine)
    more = MoreTools(_make_mcp_servers(services, engine), browsers, topics.publish_events)
    ask = _make_ask(store, approvals)
    access.keyring.ask = partial(_ask_for_write, ask)

    def load_tools() -> "HostToolServer":
        from freehold.gateway.host_tools import make_tool_server

        return make_tool_server(services, store, ask, keeper, engine, ports, hosts, more)

    tools = HostToolAccess(load_tools)
    access.port_handlers[HOST_TOOLS_PORT] = tools.handle
    sessions = SessionService(
        SessionDependencies(
            home=services.home,
            read_manifest=lambda: services.manifest,
            store=store,
            approvals=approvals,
            watchers=topics,
            models=access.models,
            host=GatewayHostAccess(tools, access, more),
            computer=lambda: access.computer,
            keeper=keeper,
            own_computer=engine.own_computer,
            wait_connected=access.wait_connected,
            introduce=partial(_introduce, services.slots.get("memory"), store, engine),
            refuse_new_work=partial(_refuse_without, services.slots.get("orchestrator")),
            on_deleted=partial(_end_grants, services.slots.get("pods")),
            note_calls=SkillLoads(services.timeline, services.home).note_calls,
            write_title=TitleWriter(access.models, lambda: services.manifest).write,
        )
    )

    engine.use(sessions)
    services.slots.engine.engine = engine
    _obey_kill_switch(services, sessions, engine, more.browsers)
    return sessions, more.mcp


async def _introduce(memory: Slot, store: SessionStore, engine: SessionRunEngine, session: str, agent: str) -> str:
    from freehold.agents.tools.memory import introduce_session
    from freehold.gateway.host_tools import find_agents_above

    allowed = engine.permissions_of(session)
    if allowed is not None and "memory" not in allowed:
        return ""
    return await introduce_session(memory, session, agent, await run_blocking(find_agents_above, store, session))


async def _end_grants(pods: Slot, session: str) -> None:
    from freehold.slots.pods.contract import EndGrants

    with suppress(SlotError):  # it was granted nothing, or the slot is off
        await pods.call(EndGrants(session), SlotCaller("owner"))


def _obey_kill_switch(
    services: Services, sessions: SessionService, engine: SessionRunEngine, browsers: Browsers
) -> None:
    access = services.computer_access
    switch = KillSwitch(access, sessions, services.timeline)

    async def stop_everything(stop: ActiveStop) -> None:
        engine.end_all("The owner stopped all agents")
        await switch.pull(stop)
        await browsers.close_all()

    access.models.on_stop(stop_everything)


def _make_mcp_servers(services: Services, engine: SessionRunEngine) -> McpServers:
    access = services.computer_access
    return McpServers(
        services.manifest,
        services.timeline,
        lambda: access.egress,
        access.vault,
        lambda session: engine.sessions.dependencies.computer_of(session),
    )


def _make_browsers(services: Services, keeper: KeeperClient, engine: SessionRunEngine) -> Browsers:
    manifest = services.manifest
    section = manifest.section(BrowserSection)
    ports = [one.port for one in manifest.computer.services.values() if one.port is not None]
    host = GatewayBrowserHost(
        services.computer_access,
        keeper,
        section,
        manifest.computer.image,
        lambda session: engine.sessions.dependencies.computer_of(session),
        ports,
    )
    return Browsers(section, host)


def _make_ask(store: SessionStore, approvals: Approvals) -> "Ask":
    async def ask(session: str, request: PermissionRequest) -> PermissionAnswer | None:
        turn = await run_blocking(store.turns.find_running, session)
        if turn is None:
            raise FreeholdError(
                "tool.no-turn.conflict", "The owner can be asked only while a turn of this session is running"
            )
        return await approvals.ask(session, turn, request)

    return ask


async def _ask_for_write(
    ask: "Ask",
    session: str,
    credential: HostCredential,
    method: str,
    target: str,
) -> bool:
    """A push, a publish or another request that changes something, with a credential of the owner's.

    A lasting answer counts for exactly this target, with its query.
    """
    place = f"{credential.authority}{target}"
    address = place.partition("?")[0]
    what = "Push to" if address.endswith("/git-receive-pack") else f"Send {method} to"
    text = (
        f"{what} https://{place}\nwith the credential {credential.name}, which the agent does not see."
        "\nThe contents of the request are not shown."
    )
    subject = f"{credential.name} {method} {place}"
    reply = await ask(session, make_text_request("credential", f"{what} {address}", text, (subject,)))
    return reply is not None and reply.answer != "reject"


def _refuse_without(orchestrator: Slot) -> None:
    """A neighbour that is sent work decides nothing here, so work here goes on without it."""
    status = orchestrator.status
    if status.state == "unavailable" and orchestrator.implementation != "neighbour":
        raise SlotError(
            "orchestrator",
            "unavailable",
            f"No new work is accepted: {status.error or 'the orchestrator slot cannot be reached'}",
            hint='Freehold tries again by itself. What runs goes on. To work without it: slots.orchestrator = "off"',
        )
