"""Builds the service of sessions from the gateway's services."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.approval_store import ApprovalRow, PermissionAnswer
from freehold.agents.sessions.approvals import Approvals
from freehold.agents.sessions.dependencies import HostGrant, SessionDependencies
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.rows import SessionEventRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.sessions.store import SessionStore
from freehold.agents.threads import run_blocking
from freehold.agents.tools.beads import make_bead_tools
from freehold.agents.tools.call_log import HostCallLog
from freehold.agents.tools.command_file import write_command
from freehold.agents.tools.definitions import HostToolDependencies, make_host_tools
from freehold.agents.tools.events import make_event_tools
from freehold.agents.tools.memory import SessionFacts, introduce_session, make_memory_tools
from freehold.agents.tools.pods import make_pod_tools
from freehold.agents.tools.runs import make_run_tools
from freehold.agents.tools.server import HostToolServer
from freehold.agents.tools.tool import HostTool
from freehold.computer.contract.conventions import HOST_TOOLS_PORT
from freehold.egress.models import ActiveStop
from freehold.errors import FreeholdError
from freehold.features import list_features, load_reference
from freehold.gateway.computer_access import ComputerAccess
from freehold.gateway.kill_switch import KillSwitch
from freehold.gateway.preview.hosts import PreviewHosts, can_preview
from freehold.gateway.preview.listeners import PortMonitor
from freehold.gateway.run_engine import SessionRunEngine
from freehold.gateway.services import Services
from freehold.gateway.session_topics import SessionTopics
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.history.calls import RESTORE_TIMEOUT
from freehold.keeper.client import KeeperClient
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.memory.contract import OriginKind
from freehold.slots.pods.contract import EndGrants


class GatewayHostAccess:
    """Host tools and proxy credentials for the agents of sessions."""

    def __init__(self, tools: HostToolServer, access: ComputerAccess) -> None:
        self._tools = tools
        self._access = access

    def grant(self, session: str) -> HostGrant:
        """Raises `egress.not-running`."""
        credentials = self._access.egress.credentials
        environment = {**self._tools.environment(session), **credentials.environment(session)}
        return HostGrant(environment, (self._tools.token_for(session), credentials.issue(session)))

    def mcp_servers(self, session: str, *, http: bool, expands_variables: bool) -> list[Json]:
        return self._tools.mcp_servers(session, http=http, expands_variables=expands_variables)

    def revoke(self, session: str) -> None:
        self._tools.revoke(session)
        with suppress(FreeholdError):  # an egress that does not run has granted nothing
            self._access.egress.end_conversation(session)

    def forget(self, session: str) -> None:
        with suppress(FreeholdError):
            self._access.egress.forget_session(session)


def open_session_service(
    services: Services, publisher: TopicPublisher, ports: PortMonitor, hosts: PreviewHosts
) -> SessionService:
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
    tools = _serve_host_tools(services, store, approvals, keeper, engine, ports, hosts)
    memory, pods = services.slots.get("memory"), services.slots.get("pods")

    async def introduce(session: str, agent: str) -> str:
        allowed = engine.permissions_of(session)
        if allowed is not None and "memory" not in allowed:
            return ""
        return await introduce_session(memory, session, agent, await run_blocking(_find_above, store, session))

    async def end_grants(session: str) -> None:
        with suppress(SlotError):  # it was granted nothing, or the slot is off
            await pods.call(EndGrants(session), SlotCaller("owner"))

    sessions = SessionService(
        SessionDependencies(
            home=services.home,
            manifest=services.manifest,
            store=store,
            approvals=approvals,
            watchers=topics,
            models=access.models,
            host=GatewayHostAccess(tools, access),
            computer=lambda: access.computer,
            keeper=keeper,
            own_computer=engine.own_computer,
            wait_connected=access.wait_connected,
            introduce=introduce,
            refuse_new_work=partial(_refuse_without, services.slots.get("orchestrator")),
            on_deleted=end_grants,
        )
    )

    engine.use(sessions)
    services.slots.engine.engine = engine
    switch = KillSwitch(access, sessions, services.timeline)

    async def stop_everything(stop: ActiveStop) -> None:
        engine.end_all("The owner stopped all agents")
        await switch.pull(stop)

    access.models.on_stop(stop_everything)
    return sessions


def _serve_host_tools(
    services: Services,
    store: SessionStore,
    approvals: Approvals,
    keeper: KeeperClient,
    engine: SessionRunEngine,
    ports: PortMonitor,
    hosts: PreviewHosts,
) -> HostToolServer:
    """Makes the host tools, and serves them inside the computer on their own port."""

    async def ask(session: str, request: PermissionRequest) -> PermissionAnswer | None:
        turn = await run_blocking(store.turns.find_running, session)
        if turn is None:
            raise FreeholdError(
                "tool.no-turn.conflict", "The owner can be asked only while a turn of this session is running"
            )
        return await approvals.ask(session, turn, request)

    async def list_ports() -> dict[int, str | None]:
        return {one.port: one.process for one in await ports.list_ports()}

    def find_preview(port: int) -> str | None:
        domain = hosts.domain_for(services.base_url.partition("://")[2])
        return domain.origin(port) if domain is not None and can_preview(port) else None

    async def find_turn(session: str) -> int | None:
        return await run_blocking(store.turns.find_running, session)

    calls = HostCallLog(find_turn)

    async def find_facts(session: str) -> SessionFacts:
        return await run_blocking(read_facts, store, calls, session)

    dependencies = HostToolDependencies(
        services.timeline,
        keeper,
        lambda: services.computer_access.egress,
        list_ports,
        find_preview,
        lambda session: engine.sessions.dependencies.computer_of(session),
    )
    tools = [
        *make_host_tools(dependencies),
        *make_bead_tools(services.slots.beads),
        *make_event_tools(services.slots.get("events")),
        *make_memory_tools(services.slots.get("memory"), find_facts),
        *make_pod_tools(services.slots.get("pods"), find_facts),
        *make_run_tools(services.slots.get("orchestrator"), engine.permissions_of),
        *(tool for make_tools in _feature_tools() for tool in make_tools(services)),
    ]
    server = HostToolServer(tools, ask, calls=calls, permissions_of=engine.permissions_of)
    services.computer_access.port_handlers[HOST_TOOLS_PORT] = server.handle
    write_command(services.home.agents, server.described)
    return server


def _feature_tools() -> list[Callable[[Services], list[HostTool]]]:
    return [load_reference(feature.tools) for feature in list_features() if feature.tools is not None]


def _refuse_without(orchestrator: Slot) -> None:
    status = orchestrator.status
    if status.state == "unavailable":
        raise SlotError(
            "orchestrator",
            "unavailable",
            f"No new work is accepted: {status.error or 'the orchestrator slot cannot be reached'}",
            hint='Freehold tries again by itself. What runs goes on. To work without it: slots.orchestrator = "off"',
        )


def read_facts(store: SessionStore, calls: HostCallLog, session: str) -> SessionFacts:
    """The agent of a session, its running turn, and what its agent has read in it.

    What host tools have answered is known. What its own tools have read is known by what the agent tells of them; such a
    call counts as soon as it has begun, since its agent may have used it before its end is recorded. A web page counts
    for the whole conversation.
    """
    turn = store.turns.find_running(session)
    here = calls.find(session, turn)
    told = [] if turn is None else store.tool_calls(session, turn)
    # Host tools are told of too, in words of the agent. Those that it has called are known better.
    others = [title for _, title in told if not any(title.endswith(name) for name in here.names)]
    has_web = calls.has_read_web(session) or store.has_fetched(session)
    read: OriginKind = "web" if has_web else "tool" if others or here.has_read else "agent"
    return SessionFacts(store.get(session).agent, turn, read, _find_above(store, session))


def _find_above(store: SessionStore, session: str) -> tuple[str, ...]:
    """The agents of the sessions for which a run works. Of one that another Freehold wanted, nothing is known here."""
    found: list[str] = []
    while store.is_of_run(session):
        parent = store.get(session).parent
        if parent is None or not store.has(parent):
            break
        session = parent
        found.append(store.get(session).agent)
    return tuple(found)
