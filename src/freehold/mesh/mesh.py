"""Everything of the mesh that runs inside the gateway, put together."""

import asyncio
import socket
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from freehold import __version__
from freehold.agents.catalogue.registry import find_agent
from freehold.errors import FreeholdError
from freehold.gateway.addresses import make_addresses
from freehold.gateway.steady_time import steady_time
from freehold.mesh.account_record import AccountRecord
from freehold.mesh.ahead_times import AheadTimes
from freehold.mesh.bodies import AgentCardBody, AgentCardsBody, AgentSkillBody
from freehold.mesh.clients import RegisteredClients
from freehold.mesh.did_proof import DidProofs
from freehold.mesh.direct_inbox import DirectInbox
from freehold.mesh.facts import ClientFacts, read_facts
from freehold.mesh.grants import Grant
from freehold.mesh.hosted_work import HostedWork
from freehold.mesh.identity import load_key, replace_key, sign_statement
from freehold.mesh.neighbour_signatures import NeighbourSignatures
from freehold.mesh.neighbours import Neighbour, Neighbours, read_grants, require_address, slug
from freehold.mesh.nostr.event import NostrEvent
from freehold.mesh.nostr.keys import NostrKey, read_public_key, show_key
from freehold.mesh.paired_freeholds import sign_for
from freehold.mesh.pairings import Pairings, known_grants
from freehold.mesh.peer_address import is_here
from freehold.mesh.peer_client import PeerClient
from freehold.mesh.published_event import write_published_event
from freehold.mesh.registration import HostLink, HostRegistration
from freehold.mesh.relay_server import RelayServer
from freehold.mesh.relay_store import RelayStore
from freehold.mesh.relays import AGENT_EVENT, Relays
from freehold.mesh.section import MeshRelaySection, MeshSection
from freehold.mesh.sent_work import SentWork
from freehold.mesh.work_runs import WorkRuns
from freehold.slots.paired import PairedFreehold

if TYPE_CHECKING:
    from freehold.gateway.context import RouteContext

REVOCATION_INTERVAL = 0.25


@dataclass(frozen=True)
class OwnRelay:
    """The relay of this Freehold."""

    section: MeshRelaySection
    server: RelayServer
    store: RelayStore


class Mesh:
    """`load` first, in a thread; then `run` as long as the gateway lives."""

    def __init__(self, context: "RouteContext", section: MeshSection) -> None:
        services = context.services
        self.context = context
        self.section = section
        self.services = services
        self.neighbours = Neighbours(services.timeline, services.tokens)
        self.peers = PeerClient()
        self.pairings = Pairings(self)
        self.proofs = DidProofs(self.neighbours, services.manifest.owner.plc_url, services.network)
        gateway = services.manifest.gateway
        origins = make_addresses(
            port=gateway.port, public_url=gateway.public_url, trusted_proxies=gateway.trusted_proxies
        ).origins
        self._ahead = AheadTimes(services.home.root / "mesh" / "ahead.db")
        self.signatures = NeighbourSignatures(self.neighbours, services.tokens, origins, self._ahead)
        self._key: NostrKey | None = None
        self.clients = RegisteredClients(services.timeline, self.neighbours, section.heartbeat)
        self.registration = self._make_registration()
        self.work = SentWork(self)
        self.hosted = HostedWork(services, section.work, lambda pubkey: self.require_grant(pubkey, "work"))
        self.direct = DirectInbox(self)
        self.record = AccountRecord(self)
        self._own_relay: OwnRelay | None = None
        self._relays: Relays | None = None

    def load(self) -> None:
        """Blocks."""
        self._key = load_key(self.services.vault)
        self._ahead.load(steady_time())
        self.neighbours.load()
        self._own_relay = self._open_relay()
        server = None if self._own_relay is None else self._own_relay.server
        # An address of this machine tells nothing to who reads it elsewhere.
        is_public = self.services.manifest.gateway.public_url is not None
        own_url = self.relay_url if is_public or not self.section.relays else None
        self._relays = Relays(
            self.section.relays,
            lambda: self.key,
            self.neighbours,
            self.services.timeline,
            server,
            own_url,
            self.direct.take,
            self.peers.list_offsets,
        )
        self._relays.load()
        self.clients.load()

    async def run(self) -> None:
        """Until cancelled."""
        self.services.slots.paired.find = self.find_paired
        self.services.slots.paired.runs = self.find_runs
        self.services.direct_messages.service = self.direct
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.proofs.run())
                group.create_task(self._look_after_neighbours())
                group.create_task(self.relays.run())
                group.create_task(self._publish_events())
                group.create_task(self.work.run())
                if self.section.mode == "host":
                    group.create_task(self.clients.run())
                if self.registration is not None:
                    group.create_task(self.registration.run())
        finally:
            self.services.slots.paired.find = None
            self.services.slots.paired.runs = None
            self.services.direct_messages.service = None
            self.record.close()
            self._ahead.close()
            await self.peers.close()
            if self._own_relay is not None:
                self._own_relay.store.close()

    # Relays

    @property
    def relays(self) -> Relays:
        assert self._relays is not None  # `load` comes first
        return self._relays

    @property
    def relay_url(self) -> str | None:
        """The address of the own relay."""
        return None if self._own_relay is None else self.url.replace("http", "ws", 1) + "/relay"

    def require_relay(self) -> OwnRelay:
        """Raises `mesh.not-found`."""
        if self._own_relay is None:
            raise FreeholdError(
                "mesh.not-found",
                "This Freehold is no relay",
                hint="Set enabled = true in [mesh.relay] of freehold.toml",
            )
        return self._own_relay

    def _open_relay(self) -> OwnRelay | None:
        section = self.section.relay
        if not section.enabled:
            return None
        owner = None if section.owner is None else read_public_key(section.owner)

        def is_allowed(pubkey: str) -> bool:
            if section.readers == "anyone" or pubkey in (owner, self.key.public):
                return True
            found = self.neighbours.find(pubkey)
            return found is not None and self.neighbours.is_active(found)

        async def receive(event: NostrEvent) -> None:
            await self.relays.receive("", event)

        def list_known() -> frozenset[str]:
            own = {self.key.public} if owner is None else {self.key.public, owner}
            return frozenset(own.union(one.pubkey for one in self.neighbours.list()))

        path = self.services.home.root / "mesh" / "relay.db"
        store = RelayStore(path, section.max_events, section.max_bytes, list_known)
        return OwnRelay(section, RelayServer(store, section.max_connections, is_allowed, receive), store)

    async def _look_after_neighbours(self) -> None:
        """Notes who was heard, and ends what goes on for who was revoked: another process may revoke a token as well."""
        known = -1
        while True:
            current = self.services.sign_ins.revocation_count()
            if current != known:
                await self._end_revoked()
            known = current
            heard, self.signatures.heard = self.signatures.heard, set()
            for pubkey in heard:
                if self.neighbours.is_news(pubkey):
                    await asyncio.to_thread(self.neighbours.note_seen, pubkey)
            await asyncio.sleep(REVOCATION_INTERVAL)

    async def _end_revoked(self) -> None:
        if self._own_relay is not None:
            self._own_relay.server.close_revoked()
        for one in await asyncio.to_thread(self.neighbours.find_revoked):
            await self.clients.remove(one.pubkey, None, "its token was revoked")
            await self.hosted.stop_all(one)

    async def _publish_events(self) -> None:
        """Tells each neighbour the chosen kinds of events."""
        if not self.section.publish:
            return
        timeline = self.services.timeline
        last = await asyncio.to_thread(timeline.last)
        async with aclosing(timeline.follow(0 if last is None else last.seq, self.section.publish)) as events:
            async for event in events:
                content = write_published_event(event)
                for one in filter(self.neighbours.is_active, self.neighbours.list()):
                    await self.relays.send(one.pubkey, content, AGENT_EVENT)

    # Identity

    @property
    def key(self) -> NostrKey:
        assert self._key is not None  # `load` comes first
        return self._key

    @property
    def name(self) -> str:
        return self.section.name or slug(socket.gethostname().partition(".")[0])

    @property
    def did(self) -> str | None:
        return self.services.manifest.owner.did

    @property
    def url(self) -> str:
        """Where it is reached: from everywhere, or only from this machine."""
        gateway = self.services.manifest.gateway
        return gateway.public_url or f"http://localhost:{gateway.port}"

    def address_for(self, other: str) -> str | None:
        """Where the Freehold at another address reaches this one; None when it cannot."""
        is_reached = self.services.manifest.gateway.public_url is not None or is_here(other)
        return self.url if is_reached else None

    def make_statement(self, challenge: str = "", url: str | None = None) -> NostrEvent:
        return sign_statement(self.key, self.name, self.did, challenge, url)

    async def replace_key(self, text: str | None, who: str) -> str:
        """The new public key. Neighbours know only the old one and must be paired again."""
        before = self.key.public
        key = await asyncio.to_thread(replace_key, self.services.vault, text)
        self._key = key
        data = {"before": show_key(before), "npub": show_key(key.public)}
        await asyncio.to_thread(self.services.timeline.append, "mesh.key_replaced", data, who=who)
        await self.relays.use_new_key()
        return key.public

    # Neighbours

    async def set_grants(self, name: str, grants: Iterable[str], who: str) -> Neighbour:
        """What goes on by a grant that is taken back ends: its requests and streams, its place, and its jobs."""
        before = self.neighbours.get(name)
        found = await asyncio.to_thread(self.neighbours.set_grants, name, read_grants(grants), who)
        self.services.connections.end_token(before.token)
        await self.end_ungranted(found)
        return found

    async def end_ungranted(self, neighbour: Neighbour) -> None:
        """Its place and its jobs, where it has no grant for them any more. It may have lost one by pairing again."""
        if "register" not in neighbour.grants:
            await self.clients.remove(neighbour.pubkey, None, "the grant was taken back")
        if "work" not in neighbour.grants:
            await self.hosted.stop_all(neighbour)

    async def evict(self, name: str, who: str) -> Neighbour:
        """Out at once: its requests, its streams and its connections to the relay."""
        found = await asyncio.to_thread(self.neighbours.remove, name, who)
        self.services.connections.end_token(found.token)
        if self._own_relay is not None:
            self._own_relay.server.close_revoked()
        await self.clients.remove(found.pubkey, None, "evicted")
        await self.hosted.stop_all(found)
        self.note_changed_neighbours()
        return found

    def note_changed_neighbours(self) -> None:
        """Whoever depends on who is paired looks again."""
        self.proofs.wake()
        self.relays.refresh()
        self.work.retry()
        if self.registration is not None:
            self.registration.wake()

    # Federation

    def _make_registration(self) -> HostRegistration | None:
        if self.section.mode != "client" or self.section.host is None:
            return None
        link = HostLink(self.neighbours, self.ask_neighbour, self.read_facts, self._note_host_back)
        return HostRegistration(self.section.host, self.section.heartbeat, self.services.timeline, link)

    def _note_host_back(self) -> None:
        """Its relay, and the work that was sent to it, are looked for again at once."""
        self.relays.refresh()
        self.work.retry()

    async def ask_neighbour(self, neighbour: Neighbour, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return await self.peers.send(self.key, self.require_address(neighbour), "POST", path, body)

    def require_address(self, neighbour: Neighbour) -> str:
        """Raises `mesh.no-address`."""
        return require_address(neighbour)

    def find_paired(self, name: str) -> PairedFreehold:
        """A neighbour as a slot uses it. Raises `mesh.not-found` or `mesh.no-address`."""
        return sign_for(lambda: self.key, self.neighbours.get(name), self.peers)

    def find_runs(self, name: str) -> WorkRuns:
        """A neighbour as the orchestrator slot uses it. Raises `mesh.not-found`."""
        return WorkRuns(self, self.neighbours.get(name))

    async def read_facts(self) -> ClientFacts:
        """What this Freehold tells its host."""
        failed = [one.name for one in self.context.publisher.health.states if one.required and one.state != "ok"]
        health = "ok" if not failed else f"not ready: {', '.join(failed)}"[:200]
        return await asyncio.to_thread(read_facts, self.services, self._own_relay is not None, health)

    async def read_cards(self, neighbour: Neighbour) -> AgentCardsBody:
        """The agents of a neighbour that take work, and what it lets this one use. Also notes the latter."""
        answer = await self.peers.send(self.key, self.require_address(neighbour), "GET", "/v1/mesh/cards")
        try:
            found = AgentCardsBody.model_validate(answer)
        except ValidationError:
            raise FreeholdError("mesh.bad-reply", f"The reply of {neighbour.name} is not a list of agents") from None
        await asyncio.to_thread(self.neighbours.note_given, neighbour.pubkey, known_grants(found.grants))
        return found

    def make_card(self) -> AgentCardBody:
        """The agent that does the work of neighbours. Blocks."""
        manifest = self.services.manifest
        name = self.section.work.agent or manifest.agents.default
        definition = find_agent(manifest, name)
        skill = AgentSkillBody(
            id="work",
            name="Work on a prompt",
            description="Works on a prompt in a computer of its own, and returns the files that it made.",
            tags=["files", "code"],
        )
        return AgentCardBody(
            name=name,
            description=f"{definition.title} on {self.name}",
            version=__version__,
            url=f"{self.url}/v1/mesh/hosted",
            capabilities={"streaming": True, "pushNotifications": False},
            defaultInputModes=["text/plain"],
            defaultOutputModes=["application/x-tar", "text/plain"],
            skills=[skill],
        )

    def list_served(self, neighbour: Neighbour) -> list[str]:
        """The slots that a neighbour was given and that work here now."""
        slots = self.services.slots.list()
        return [one.name for one in slots if one.name in neighbour.grants and one.status.state == "ok"]

    def require_grant(self, signer: str, grant: Grant) -> Neighbour:
        """Raises `mesh.denied`."""
        found = self.neighbours.find(signer)
        if found is None or grant not in found.grants:
            raise FreeholdError(
                "mesh.denied", f"You were not given {grant} here", hint="Ask the owner: freehold mesh grant NAME"
            )
        return found
