"""All relays together: what is sent goes to each, what comes is taken once, and how each is doing is kept."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.mesh.messages import MessageKind, NeighbourMessages
from freehold.mesh.neighbours import Neighbours
from freehold.mesh.nostr.direct_message import BACKDATED, CHAT, WRAP, Rumor, unwrap_message, wrap_message
from freehold.mesh.nostr.event import BadEvent, NostrEvent, sign_event
from freehold.mesh.nostr.filter import MAX_VALUES, NostrFilter
from freehold.mesh.nostr.keys import NostrKey
from freehold.mesh.outbox import RelayOutbox
from freehold.mesh.relay_client import RelayClient, RelayHandlers
from freehold.mesh.relay_server import RelayServer
from freehold.mesh.relay_status import RelayStateName, RelayStatus
from freehold.mesh.stored_pages import PAGE, StoredPages
from freehold.timeline import Timeline

RELAY_LIST = 10_002
"""The relays at which a key reads and writes (NIP-65)."""
MESSAGE_RELAYS = 10_050
"""The relays at which a key reads direct messages (NIP-17). Clients write to nobody who names none."""
AGENT_EVENT = 4_570
"""Inside a gift wrap: an event of a Freehold's timeline."""
KINDS: dict[int, MessageKind] = {CHAT: "message", AGENT_EVENT: "event"}
MAX_SEEN = 20_000
DELIVERY_TIMEOUT = 25.0


@dataclass(frozen=True)
class RelayList:
    """Where a key reads, and when it said so."""

    at: int
    urls: frozenset[str]


class RelaysAway(Exception):
    """No relay has taken an event. The text says why."""


class Relays:
    """`own` is the relay of this Freehold at `own_url`, if it is one.

    `on_direct` gets every direct message whose author is no neighbour. `offsets`: by how much clocks of neighbours differ.
    """

    def __init__(
        self,
        urls: Sequence[str],
        key: Callable[[], NostrKey],
        neighbours: Neighbours,
        timeline: Timeline,
        own: RelayServer | None,
        own_url: str | None,
        on_direct: Callable[[Rumor], None],
        offsets: Callable[[], list[int]],
    ) -> None:
        self._key = key
        self._neighbours = neighbours
        self._timeline = timeline
        self._own = own
        self._own_url = own_url
        self._on_direct = on_direct
        self.messages = NeighbourMessages(timeline)
        self.outbox = RelayOutbox(timeline)
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lists: dict[str, RelayList] = {}
        self._last: dict[str, int] = {}
        self._caught_up: set[str] = set()
        self._away: dict[str, str] = {}
        self._complaints: dict[str, str] = {}
        """What is wrong with relays that are connected."""
        self._deliveries: dict[str, asyncio.Future[None]] = {}
        self._refusals: dict[str, str] = {}
        handlers = RelayHandlers(
            key,
            self._filters,
            self.receive,
            self._note,
            self._note_caught_up,
            self._note_answer,
            self._complain,
            offsets,
        )
        self._clients = [RelayClient(url, self.outbox, handlers) for url in dict.fromkeys(urls)]

    def load(self) -> None:
        """Blocks. Relays that the manifest does not name any more are forgotten."""
        known = {one.url for one in self._clients}
        with self._timeline.transaction() as tx:
            for (url,) in tx.execute("SELECT url FROM mesh_relay").fetchall():
                if url not in known:
                    tx.execute("DELETE FROM mesh_relay WHERE url = ?", (url,))
                    tx.execute("DELETE FROM mesh_outbox WHERE relay = ?", (url,))
        self._last = {url: last for url, last in self._timeline.query("SELECT url, last FROM mesh_relay") if last}

    async def run(self) -> None:
        """Until cancelled."""
        await self._publish_lists()
        await self._read_own()
        async with asyncio.TaskGroup() as group:
            for one in self._clients:
                group.create_task(one.run())

    def refresh(self) -> None:
        """The neighbours have changed."""
        for one in self._clients:
            one.refresh()

    async def use_new_key(self) -> None:
        """The key has changed: other messages are wanted, and others must know where to write."""
        await self._publish_lists()
        self.refresh()

    async def deliver(self, event: NostrEvent) -> None:
        """To all relays. Returns when one has it. Raises `RelaysAway`; then nobody sends it later either."""
        if self._own is not None:
            await self.publish(event)
            return
        if not self._clients:
            raise RelaysAway("freehold.toml names no relay, and [mesh.relay] is off")
        if len(self._away) == len(self._clients):
            raise RelaysAway("; ".join(f"{url}: {error}" for url, error in self._away.items())[:300])
        taken = self._deliveries[event.id] = asyncio.get_running_loop().create_future()
        try:
            await self.publish(event)
            async with asyncio.timeout(DELIVERY_TIMEOUT):
                await taken
        except TimeoutError:
            for one in self._clients:
                await asyncio.to_thread(self.outbox.remove, one.url, event.id)
            reason = self._refusals.get(event.id, "no relay has said in time that it took the message")
            raise RelaysAway(reason) from None
        finally:
            del self._deliveries[event.id]
            self._refusals.pop(event.id, None)

    async def send(self, receiver: str, content: str, kind: int = CHAT) -> str:
        """An encrypted direct message to one key. Returns the id of what relays see."""
        wrap = await asyncio.to_thread(wrap_message, self._key(), receiver, content, kind=kind)
        known = self._lists.get(receiver)
        await self.publish(wrap, None if known is None else known.urls)
        return wrap.id

    async def publish(self, event: NostrEvent, wanted: frozenset[str] | None = None) -> None:
        """To the relays that the receiver reads, or to all of ours when these are not among them."""
        if self._own is not None:
            await self._own.add(event)
        chosen = [one for one in self._clients if wanted is None or _normal(one.url) in wanted] or self._clients
        for one in chosen:
            await asyncio.to_thread(self.outbox.add, one.url, event)
            one.wake()

    async def receive(self, relay: str, event: NostrEvent) -> None:
        """An event of any relay. What was seen before costs nothing more."""
        is_message = event.kind == WRAP and event.tag("p") == self._key().public
        is_list = event.kind == RELAY_LIST and self._neighbours.find(event.pubkey) is not None
        if not (is_message or is_list) or not self._is_new(event):
            return
        if is_message:
            await self._open(event)
        else:
            self._note_list(event)

    def _is_new(self, event: NostrEvent) -> bool:
        """Only what is signed counts as seen: the id does not cover the signature, so a relay could spend the id of a
        message with a forged copy of it, and the true one of another relay would look like a repetition."""
        if event.id in self._seen or not event.is_signed:
            return False
        self._seen[event.id] = None
        if len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        return True

    def _note_list(self, event: NostrEvent) -> None:
        """The newest list counts: a relay that shows an older one cannot lead messages to itself."""
        known = self._lists.get(event.pubkey)
        if known is None or known.at <= event.created_at:
            found = (tag[1] for tag in event.tags[:20] if len(tag) > 1 and tag[0] == "r" and tag[2:] != ("write",))
            self._lists[event.pubkey] = RelayList(event.created_at, frozenset(_normal(url) for url in found))

    def states(self) -> list[RelayStatus]:
        """Blocks."""
        rows = self._timeline.query("SELECT url, state, error, since, seen FROM mesh_relay ORDER BY url")
        return [RelayStatus(*row) for row in rows]

    async def _open(self, wrap: NostrEvent) -> None:
        try:
            rumor = await asyncio.to_thread(unwrap_message, self._key(), wrap)
        except BadEvent:
            return
        sender, kind = self._neighbours.find(rumor.pubkey), KINDS.get(rumor.kind)
        if sender is None:
            self._on_direct(rumor)
            return
        if kind is None or not self._neighbours.is_active(sender):
            return  # nobody who may write here
        await asyncio.to_thread(self.messages.add, rumor, kind)
        await asyncio.to_thread(self._neighbours.note_seen, rumor.pubkey)

    def _filters(self, relay: str) -> list[dict[str, Any]]:
        # The clock may have been ahead when it was noted.
        since = max(0, min(self._last.get(relay, 0), int(time.time())) - BACKDATED - 3600)
        wraps: dict[str, Any] = {"kinds": [WRAP], "#p": [self._key().public], "since": since, "limit": PAGE}
        keys = [one.pubkey for one in self._neighbours.list()]
        parts = (keys[start : start + MAX_VALUES] for start in range(0, len(keys), MAX_VALUES))
        return [wraps, *({"kinds": [RELAY_LIST], "authors": part} for part in parts)]

    async def _note(self, relay: str, state: RelayStateName, error: str | None) -> None:
        now = time.time()
        if state == "away":
            self._away[relay] = error or "away"
        else:
            self._away.pop(relay, None)
            error = self._complaints.get(relay)
        if state == "away" and relay in self._caught_up:
            self._caught_up.discard(relay)
            self._last[relay] = int(now)
        await asyncio.to_thread(self._store_state, relay, state, error, now)

    async def _complain(self, relay: str, problem: str | None) -> None:
        if self._complaints.get(relay) != problem:
            if problem is None:
                del self._complaints[relay]
            else:
                self._complaints[relay] = problem
            await self._note(relay, "ok", None)

    async def _note_caught_up(self, relay: str) -> None:
        self._caught_up.add(relay)
        self._last[relay] = int(time.time())
        await self._note(relay, "ok", None)

    def _store_state(self, relay: str, state: RelayStateName, error: str | None, now: float) -> None:
        """`seen` is when it was last connected; while away, when it was lost."""
        with self._timeline.transaction() as tx:
            row = tx.execute("SELECT state, since, seen FROM mesh_relay WHERE url = ?", (relay,)).fetchone()
            was_ok = row is not None and row[0] == "ok"
            since = row[1] if row is not None and row[0] == state else now
            seen = now if state == "ok" or was_ok else (None if row is None else row[2])
            tx.execute(
                "INSERT OR REPLACE INTO mesh_relay (url, state, error, since, seen, last) VALUES (?, ?, ?, ?, ?, ?)",
                (relay, state, error, since, seen, self._last.get(relay)),
            )

    def _note_answer(self, id: str, is_taken: bool, reason: str) -> None:
        waiting = self._deliveries.get(id)
        if waiting is None or waiting.done():
            return
        if is_taken:
            waiting.set_result(None)
        else:
            self._refusals[id] = reason

    async def _publish_lists(self) -> None:
        """Where others write to this key."""
        urls = [one.url for one in self._clients] + ([self._own_url] if self._own_url is not None else [])
        if urls:
            await self.publish(sign_event(self._key(), RELAY_LIST, "", [["r", url] for url in urls]))
            await self.publish(sign_event(self._key(), MESSAGE_RELAYS, "", [["relay", url] for url in urls]))

    async def _read_own(self) -> None:
        """What the own relay had taken before the last process could read it."""
        if self._own is None:
            return
        me = self._key().public
        since, pages, is_more = int(time.time()) - BACKDATED - 3600, StoredPages(), True
        while is_more:
            wanted = NostrFilter(kinds=frozenset({WRAP}), tags={"p": frozenset({me})}, since=since, until=pages.until)
            for event in await self._own.find([wanted]):
                pages.note(event)
                await self.receive("", event)
            is_more = pages.turn("its own")


def _normal(url: str) -> str:
    return url.lower().rstrip("/")
