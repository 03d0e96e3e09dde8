"""What sessions need from the other rooms, handed in at construction."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.approvals import Approvals
from freehold.agents.sessions.model_access import ModelAccess
from freehold.agents.sessions.rows import SessionEventRow, SessionRow
from freehold.agents.sessions.store import SessionStore
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.calls import KeeperCaller
from freehold.manifest import Manifest


class SessionWatchers(Protocol):
    """Publishes changes to connected clients. No method blocks."""

    def publish_events(self, session: str, events: list[SessionEventRow]) -> None: ...

    async def wait_event(self, session: str, after: int) -> None:
        """Returns when an event after this one was published. One that was stored earlier does not count."""
        ...

    def publish_delta(self, session: str, data: Json) -> None: ...

    def publish_session(self, row: SessionRow) -> None: ...

    def publish_deleted(self, session: str) -> None: ...

    def publish_approval(self, approval: ApprovalRow) -> None: ...

    def publish_installation(self, data: Json) -> None: ...


@dataclass(frozen=True)
class HostGrant:
    """Variables for the agent of one session. A trace masks `secrets`."""

    environment: Mapping[str, str | None]
    secrets: tuple[str, ...] = ()


class HostAccess(Protocol):
    """What the agent of a session may use of the host besides models: host tools, and network permissions."""

    def grant(self, session: str) -> HostGrant:
        """Called before the agent starts."""
        ...

    def mcp_servers(self, session: str, *, http: bool, expands_variables: bool) -> list[Json]:
        """The MCP servers for session/new. `http`: the agent supports MCP over HTTP."""
        ...

    def revoke(self, session: str) -> None:
        """The agent has ended: what it was given no longer works. Idempotent."""
        ...

    def forget(self, session: str) -> None:
        """The session was deleted. Idempotent."""
        ...


async def _is_connected() -> None:
    """For a computer that is always connected."""


def _no_computer(_session: str) -> None:
    return None


async def _no_introduction(_session: str, _agent: str) -> str:
    return ""


def _note_nothing(_session: str, _turn: int | None, _agent: str, _calls: Sequence[Json]) -> None:
    """For sessions whose tool calls nobody counts."""


async def _no_title(_session: SessionRow, _prompt: str) -> str | None:
    return None


def _accept_work() -> None:
    """Without an orchestrator all work is accepted."""


async def _ignore_deleted(_session: str) -> None:
    """Nobody keeps anything for it."""


@dataclass(frozen=True)
class SessionDependencies:
    home: Home
    read_manifest: Callable[[], Manifest]
    """The manifest in force now: models and agents may change while sessions run."""
    store: SessionStore
    approvals: Approvals
    watchers: SessionWatchers
    models: ModelAccess
    host: HostAccess
    computer: Callable[[], Computer]
    """The connected computer. Raises `computer.not-connected`."""
    keeper: KeeperCaller
    own_computer: Callable[[str], Computer | None] = _no_computer
    """The computer in which the agent of this session works, when it is not `main`."""
    wait_connected: Callable[[], Awaitable[None]] = _is_connected
    """Returns when an agent can start inside, or after a timeout: right after a restart the link is not made yet."""
    introduce: Callable[[str, str], Awaitable[str]] = _no_introduction
    """What the first prompt of a session with this agent begins with: the memories that the owner has pinned."""
    note_calls: Callable[[str, int | None, str, Sequence[Json]], None] = _note_nothing
    """Told of the tool calls of a session, its turn and its agent, when they are stored. Blocking."""
    write_title: Callable[[SessionRow, str], Awaitable[str | None]] = _no_title
    """A title for a session with this first prompt; None when it stays the begin of the prompt."""
    refuse_new_work: Callable[[], None] = _accept_work
    """Raises `orchestrator.unavailable` while the orchestrator is lost. What was accepted before goes on."""
    on_deleted: Callable[[str], Awaitable[None]] = _ignore_deleted
    """A session was deleted: what others keep for it ends."""

    @property
    def manifest(self) -> Manifest:
        return self.read_manifest()

    def computer_of(self, session: str) -> Computer:
        """Where the agent of a session works. Raises `computer.not-connected`, or `session.run.conflict`."""
        self.refuse_ended_run(session)
        return self.own_computer(session) or self.computer()

    def has_ended_run(self, session: str) -> bool:
        """Whether it belongs to a run that has no computer any more, or none yet. Then its agent may not work."""
        return self.store.is_of_run(session) and self.own_computer(session) is None

    def refuse_ended_run(self, session: str) -> None:
        if self.has_ended_run(session):
            raise FreeholdError(
                "session.run.conflict",
                "This session belongs to a run that has no computer: it can be read only",
                hint="Fork the session to go on in your own computer",
            )
