"""The host tools that this Freehold offers to agents, and the server through which they use them."""

from collections.abc import Callable

from freehold.agents.sessions.store import SessionStore
from freehold.agents.threads import run_blocking
from freehold.agents.tools.beads import make_bead_tools
from freehold.agents.tools.call_log import HostCallLog
from freehold.agents.tools.command_file import write_command
from freehold.agents.tools.conversation_pictures import ConversationPictures
from freehold.agents.tools.definitions import HostToolDependencies, make_host_tools
from freehold.agents.tools.events import make_event_tools
from freehold.agents.tools.memory import SessionFacts, make_memory_tools
from freehold.agents.tools.pods import make_pod_tools
from freehold.agents.tools.runs import make_run_tools
from freehold.agents.tools.server import Ask, HostToolServer
from freehold.agents.tools.tool import HostTool
from freehold.browser.tools import make_browser_tools
from freehold.features import list_features, load_reference
from freehold.gateway.preview.hosts import PreviewHosts, can_preview
from freehold.gateway.preview.listeners import PortMonitor
from freehold.gateway.run_engine import SessionRunEngine
from freehold.gateway.services import Services
from freehold.gateway.session_service import MoreTools
from freehold.keeper.client import KeeperClient
from freehold.slots.memory.contract import OriginKind


def make_tool_server(
    services: Services,
    store: SessionStore,
    ask: Ask,
    keeper: KeeperClient,
    engine: SessionRunEngine,
    ports: PortMonitor,
    hosts: PreviewHosts,
    more: MoreTools,
) -> HostToolServer:
    """Makes the host tools and their server, and writes the `freehold` command with which programs inside use them."""

    async def find_turn(session: str) -> int | None:
        return await run_blocking(store.turns.find_running, session)

    calls = HostCallLog(find_turn)

    async def find_facts(session: str) -> SessionFacts:
        return await run_blocking(read_facts, store, calls, session)

    dependencies = _make_tool_dependencies(services, keeper, engine, ports, hosts)
    tools = [
        *make_host_tools(dependencies),
        *make_bead_tools(services.slots.beads),
        *make_event_tools(services.slots.get("events")),
        *make_memory_tools(services.slots.get("memory"), find_facts),
        *make_pod_tools(services.slots.get("pods"), find_facts),
        *make_run_tools(services.slots.get("orchestrator"), engine.permissions_of),
        *make_browser_tools(more.browsers),
        *(tool for make_tools in _feature_tools() for tool in make_tools(services)),
    ]
    server = HostToolServer(
        tools,
        ask,
        list_more=more.mcp.list_tools,
        calls=calls,
        permissions_of=engine.permissions_of,
        show_pictures=ConversationPictures(store, more.publish_events).show,
    )
    write_command(services.home.agents, server.described)
    return server


def _make_tool_dependencies(
    services: Services, keeper: KeeperClient, engine: SessionRunEngine, ports: PortMonitor, hosts: PreviewHosts
) -> HostToolDependencies:
    async def list_ports() -> dict[int, str | None]:
        return {one.port: one.process for one in await ports.list_ports()}

    def find_preview(port: int) -> str | None:
        domain = hosts.domain_for(services.base_url.partition("://")[2])
        return domain.origin(port) if domain is not None and can_preview(port) else None

    return HostToolDependencies(
        services.timeline,
        keeper,
        lambda: services.computer_access.egress,
        list_ports,
        find_preview,
        lambda session: engine.sessions.dependencies.computer_of(session),
    )


def _feature_tools() -> list[Callable[[Services], list[HostTool]]]:
    return [load_reference(feature.tools) for feature in list_features() if feature.tools is not None]


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
    return SessionFacts(store.get(session).agent, turn, read, find_agents_above(store, session))


def find_agents_above(store: SessionStore, session: str) -> tuple[str, ...]:
    """The agents of the sessions for which a run works. Of one that another Freehold wanted, nothing is known here."""
    found: list[str] = []
    while store.is_of_run(session):
        parent = store.get(session).parent
        if parent is None or not store.has(parent):
            break
        session = parent
        found.append(store.get(session).agent)
    return tuple(found)
