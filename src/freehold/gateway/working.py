"""The agents' room in this house: what its sessions stand on, and who looks on."""

import asyncio
from typing import Any

from freehold.agents.approvals import Approval, Approvals, Question, Reply
from freehold.agents.ground import Ground, Spent
from freehold.agents.registry import Access
from freehold.agents.room import Room
from freehold.agents.rpc import Json
from freehold.agents.store import EventRow, SessionRow, Store
from freehold.agents.tools.kit import Surroundings, make_kit
from freehold.agents.tools.placing import place_command
from freehold.agents.tools.server import PORT, HostTools
from freehold.egress.models import ModelGateway, Stopped
from freehold.errors import FreeholdError
from freehold.gateway.feeds import Feeds
from freehold.gateway.house import House
from freehold.gateway.preview.hosts import PreviewHosts, is_shown
from freehold.gateway.preview.listeners import Ports
from freehold.gateway.topics import Encoded, Topic, encode_message

MAX_MISSED = 1_000
HISTORY_PATIENCE = 600.0


class Sockets:
    """Brings what happens in sessions to the sockets: `sessions`, `approvals`, `agents`, and `session:ID` each."""

    def __init__(self, feeds: Feeds, store: Store) -> None:
        self._topics = feeds.topics
        self._store = store
        self._last: dict[str, int] = {}
        self._sessions = feeds.topics.add(Topic("sessions"))
        self._approvals = feeds.topics.add(Topic("approvals"))
        self._agents = feeds.topics.add(Topic("agents"))
        feeds.topics.add_family("session", self._bring)

    async def _bring(self, session: str) -> Topic | None:
        rows = await asyncio.to_thread(
            self._store.timeline.query, "SELECT seq FROM agents_session WHERE id = ?", (session,)
        )
        if not rows:
            return None

        async def missed(after: int) -> list[Encoded] | None:
            found = await asyncio.to_thread(self._store.events, session, after=after, limit=MAX_MISSED + 1)
            if len(found) > MAX_MISSED:
                return None
            return [(event.seq, encode_message(f"session:{session}", event.seq, event.as_json())) for event in found]

        # What was told while we looked counts, too: a watcher that begins there misses nothing.
        first = max(rows[0][0], self._last.get(session, 0))
        return Topic(f"session:{session}", kept=100, first=first, backlog=missed)

    def events(self, session: str, events: list[EventRow]) -> None:
        if events:
            self._last[session] = max(self._last.get(session, 0), events[-1].seq)
        topic = self._topics.open(f"session:{session}")
        if topic is None:
            return
        if not topic.readers:
            # Nobody looks on: whoever comes finds it on the disk.
            self._topics.remove(topic.name)
            return
        for event in events:
            if event.seq > topic.last:
                topic.publish(event.as_json(), event.seq)

    def delta(self, session: str, data: Json) -> None:
        topic = self._topics.open(f"session:{session}")
        if topic is not None:
            topic.pass_on(data)

    def session(self, row: SessionRow) -> None:
        self._sessions.publish(row.as_json())

    def gone(self, session: str) -> None:
        self._sessions.publish({"id": session, "deleted": True})
        self._last.pop(session, None)
        self._topics.remove(f"session:{session}")

    def approval(self, approval: Approval) -> None:
        self._approvals.publish(approval.as_json())

    def installing(self, data: Json) -> None:
        self._agents.publish(data)


class Models:
    """The model gateway in the words of the agents' room."""

    def __init__(self, models: ModelGateway) -> None:
        self._models = models

    def access(self, provider: str | None, session: str, model: str | None) -> Access:
        found = self._models.endpoint_for(provider, session)
        chosen = model or found.provider.model
        return Access(found.provider.name, found.provider.kind, found.base_url, found.key, chosen)

    def set_turn(self, session: str, turn: str | None) -> None:
        self._models.set_turn(session, turn)

    async def spent(self, session: str, turn: str) -> Spent | None:
        usage = await self._models.usage_of(session, turn)
        return Spent(usage.tokens.input, usage.tokens.output, usage.cost) if usage.requests else None

    def blocked(self, session: str) -> FreeholdError | None:
        return self._models.blocked(session)

    def end_session(self, session: str) -> None:
        self._models.end_session(session)

    def is_stopped(self) -> bool:
        return self._models.stopped is not None


def open_room(house: House, feeds: Feeds, ports: Ports, hosts: PreviewHosts) -> Room:
    """Not running yet: `Room.run` is for the application's life."""
    store = Store(house.timeline)
    sockets = Sockets(feeds, store)

    def told(session: str, events: list[EventRow], approval: Approval) -> None:
        sockets.events(session, events)
        sockets.approval(approval)

    async def keeper(method: str, params: dict[str, Any]) -> Any:
        return await house.keeper.call(method, params, timeout=HISTORY_PATIENCE)

    ground = Ground(
        home=house.home,
        manifest=house.manifest,
        store=store,
        approvals=Approvals(store, told, sockets.session),
        watchers=sockets,
        money=Models(house.sealed.models),
        computer=lambda: house.sealed.computer,
        keeper=keeper,
    )
    room = Room(ground)

    async def stopped(stop: Stopped) -> None:
        await room.stop_all("Everything was stopped" + (f": {stop.why}" if stop.why else ""))

    house.sealed.models.on_stop(stopped)
    _offer_tools(house, ground, ports, hosts)
    return room


def _offer_tools(house: House, ground: Ground, ports: Ports, hosts: PreviewHosts) -> None:
    """Host tools for every session; whatever acts is asked about like any tool of the agent's own."""

    async def ask(session: str, question: Question) -> Reply | None:
        rows = await asyncio.to_thread(
            ground.store.timeline.query,
            "SELECT max(turn) FROM agents_turn WHERE session = ? AND state = 'sent'",
            (session,),
        )
        if rows[0][0] is None:
            raise FreeholdError(
                "tool.no-turn.conflict", "The owner is only asked while a prompt of theirs is worked on"
            )
        return await ground.approvals.ask(session, rows[0][0], question)

    async def listening() -> dict[int, str | None]:
        return {one.port: one.process for one in await ports.find()}

    def preview(port: int) -> str | None:
        family = hosts.seen_from(house.base_url.partition("://")[2])
        return family.origin(port) if family is not None and is_shown(port) else None

    kit = make_kit(Surroundings(house.timeline, ground.keeper, lambda: house.sealed.egress, listening, preview))
    tools = HostTools(kit, ask)
    ground.servers, ground.environment, ground.forget = tools.servers, tools.environment, tools.forget
    house.sealed.doors[PORT] = tools.handle
    place_command(house.home.agents, tools.described)
