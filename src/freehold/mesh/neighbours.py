"""The Freeholds that this one knows, and what each may use here."""

import json
import re
import secrets
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, cast

from freehold.errors import FreeholdError
from freehold.identity.tokens import NEIGHBOUR_PREFIX, ApiTokens, Scope
from freehold.mesh.grants import GRANTS, SLOT_GRANTS, Grant
from freehold.mesh.nostr.keys import show_key
from freehold.mesh.schema import ROOM, STEPS
from freehold.timeline import Timeline

ProofState = Literal["none", "claimed", "proven", "refuted"]
"""What is known of its DID: it names none; it names one; that DID names its key; that DID does not."""
MAX_NEIGHBOURS = 2_000
MAX_EVICTED = 1_000
"""How many are remembered, so that they are told."""
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,27}")
SEEN_INTERVAL = 600.0

_COLUMNS = "pubkey, name, url, did, proof, grants, given, token, paired, seen"


@dataclass(frozen=True)
class Neighbour:
    """Another Freehold. `grants` is what it may use here, `given` what it said that this one may use there.

    `token` is the id of the API token that stands for it: whoever revokes that ends its requests and streams.
    """

    pubkey: str
    name: str
    url: str | None
    did: str | None
    proof: ProofState
    grants: frozenset[Grant]
    given: frozenset[Grant]
    token: str
    paired: float
    seen: float | None = None

    @property
    def npub(self) -> str:
        return show_key(self.pubkey)


class Neighbours:
    """Thread-safe. Reads come from memory; only this process writes."""

    def __init__(self, timeline: Timeline, tokens: ApiTokens) -> None:
        self._timeline = timeline
        self._tokens = tokens
        self._lock = threading.Lock()
        self._known: dict[str, Neighbour] = {}
        self._evicted: set[str] = set()

    def load(self) -> None:
        """Blocks. Creates the tables at the first use."""
        self._known = {one.pubkey: one for one in read_neighbours(self._timeline)}
        self._evicted = {row[0] for row in self._timeline.query("SELECT pubkey FROM mesh_evicted")}

    def list(self) -> list[Neighbour]:
        return sorted(self._known.values(), key=lambda one: one.name)

    def find(self, pubkey: str) -> Neighbour | None:
        return self._known.get(pubkey)

    def was_evicted(self, pubkey: str) -> bool:
        return pubkey in self._evicted

    def get(self, name: str) -> Neighbour:
        """By name, `npub` or hex digits. Raises `mesh.not-found`."""
        return choose_neighbour(self.list(), name)

    def add(
        self,
        pubkey: str,
        name: str,
        *,
        url: str | None,
        did: str | None,
        grants: Iterable[Grant],
        given: Iterable[Grant],
        who: str,
    ) -> Neighbour:
        """Stores a paired neighbour. One with the same key is replaced. Blocks."""
        with self._lock:
            before = self._known.get(pubkey)
            if before is None and len(self._known) >= MAX_NEIGHBOURS:
                raise FreeholdError(
                    "mesh.too-many",
                    f"There are {MAX_NEIGHBOURS} neighbours already",
                    hint="freehold mesh evict NAME removes one",
                )
            if before is not None:
                self._tokens.revoke(NEIGHBOUR_PREFIX + before.name)
            free = self._free_name(name, pubkey)
            token, _secret = self._tokens.create(NEIGHBOUR_PREFIX + free, _scopes(grants), None, limit=MAX_NEIGHBOURS)
            proof: ProofState = "none" if did is None else "claimed"
            made = Neighbour(pubkey, free, url, did, proof, frozenset(grants), frozenset(given), token.id, time.time())
            data = {"name": free, "npub": made.npub, "did": did, "grants": sorted(made.grants)}
            with self._timeline.transaction() as tx:
                tx.execute(
                    f"INSERT OR REPLACE INTO mesh_neighbour ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    _encode(made),
                )
                tx.execute("DELETE FROM mesh_evicted WHERE pubkey = ?", (pubkey,))
                tx.append("mesh.paired", data, who=who)
            self._known[pubkey] = made
            self._evicted.discard(pubkey)
        return made

    def set_grants(self, name: str, grants: Iterable[Grant], who: str) -> Neighbour:
        """Changes what it may use here. Its running requests end. Blocks."""
        with self._lock:
            found = self.get(name)
            self._tokens.revoke(NEIGHBOUR_PREFIX + found.name)
            token, _secret = self._tokens.create(
                NEIGHBOUR_PREFIX + found.name, _scopes(grants), None, limit=MAX_NEIGHBOURS
            )
            made = replace(found, grants=frozenset(grants), token=token.id)
            with self._timeline.transaction() as tx:
                tx.execute(
                    "UPDATE mesh_neighbour SET grants = ?, token = ? WHERE pubkey = ?",
                    (json.dumps(sorted(made.grants)), token.id, made.pubkey),
                )
                tx.append("mesh.grants_changed", {"name": made.name, "grants": sorted(made.grants)}, who=who)
            self._known[made.pubkey] = made
        return made

    def remove(self, name: str, who: str) -> Neighbour:
        """Evicts it: its requests and streams end, and it must pair again. Blocks."""
        with self._lock:
            found = self.get(name)
            self._tokens.revoke(NEIGHBOUR_PREFIX + found.name)
            with self._timeline.transaction() as tx:
                tx.execute("DELETE FROM mesh_neighbour WHERE pubkey = ?", (found.pubkey,))
                tx.execute("DELETE FROM mesh_client WHERE pubkey = ?", (found.pubkey,))
                tx.execute("INSERT OR REPLACE INTO mesh_evicted VALUES (?, ?)", (found.pubkey, time.time()))
                tx.execute(
                    "DELETE FROM mesh_evicted WHERE pubkey NOT IN"
                    " (SELECT pubkey FROM mesh_evicted ORDER BY at DESC LIMIT ?)",
                    (MAX_EVICTED,),
                )
                tx.append("mesh.evicted", {"name": found.name, "npub": found.npub}, who=who)
            del self._known[found.pubkey]
            self._evicted.add(found.pubkey)
        return found

    def is_active(self, neighbour: Neighbour) -> bool:
        """Whether its token still is. Does not block noticeably."""
        return self._tokens.is_active(neighbour.token)

    def find_revoked(self) -> tuple[Neighbour, ...]:
        """Those whose token was revoked. Waits for a change that goes on: that revokes a token and makes another. Blocks."""
        with self._lock:
            return tuple(one for one in self._known.values() if not self.is_active(one))

    def note_proof(self, pubkey: str, proof: ProofState) -> None:
        """Blocks."""
        self._change(pubkey, "proof", proof)

    def is_news(self, pubkey: str) -> bool:
        """Whether it is worth to be stored that a neighbour was heard: every ten minutes at most. Does not block."""
        found = self._known.get(pubkey)
        return found is not None and (found.seen is None or time.time() - found.seen >= SEEN_INTERVAL)

    def note_seen(self, pubkey: str) -> None:
        """Blocks."""
        if self.is_news(pubkey):
            self._change(pubkey, "seen", time.time())

    def note_given(self, pubkey: str, given: Iterable[Grant]) -> None:
        """Blocks."""
        found = self._known.get(pubkey)
        if found is not None and found.given != frozenset(given):
            self._change(pubkey, "given", json.dumps(sorted(given)))

    def _change(self, pubkey: str, column: str, value: object) -> None:
        with self._lock, self._timeline.transaction() as tx:
            tx.execute(f"UPDATE mesh_neighbour SET {column} = ? WHERE pubkey = ?", (value, pubkey))  # noqa: S608
            rows = tx.execute(f"SELECT {_COLUMNS} FROM mesh_neighbour WHERE pubkey = ?", (pubkey,)).fetchall()  # noqa: S608
            if rows:
                self._known[pubkey] = _decode(rows[0])

    def _free_name(self, wanted: str, pubkey: str) -> str:
        name = slug(wanted)
        taken = {one.name for one in self._known.values() if one.pubkey != pubkey}
        return name if name not in taken else f"{name[:21]}-{secrets.token_hex(3)}"


def read_neighbours(timeline: Timeline) -> list[Neighbour]:
    """All that are paired. Creates the tables at the first use. Blocks."""
    timeline.ensure_schema(ROOM, *STEPS)
    return [_decode(row) for row in timeline.query(f"SELECT {_COLUMNS} FROM mesh_neighbour")]  # noqa: S608


def choose_neighbour(known: Iterable[Neighbour], name: str) -> Neighbour:
    """By name, `npub` or hex digits. Raises `mesh.not-found`, which lists the known ones."""
    names = []
    for one in known:
        if name in (one.name, one.pubkey, one.npub):
            return one
        names.append(one.name)
    raise FreeholdError(
        "mesh.not-found",
        f"There is no neighbour {name[:70]!a}",
        hint=f"The neighbours are: {', '.join(sorted(names)) or 'none'}",
    )


def require_address(neighbour: Neighbour) -> str:
    """Raises `mesh.no-address`."""
    if neighbour.url is None:
        raise FreeholdError(
            "mesh.no-address", f"{neighbour.name} has no address that can be reached from here", hint="It must ask"
        )
    return neighbour.url


def slug(text: str) -> str:
    """A name of at most 28 letters, digits and hyphens."""
    found = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:28].strip("-")
    return found or "freehold"


def read_grants(names: Iterable[str]) -> frozenset[Grant]:
    """Raises `mesh.unknown-kind`, which lists the known ones."""
    wanted = frozenset(names)
    unknown = sorted(wanted - set(GRANTS))
    if unknown:
        raise FreeholdError(
            "mesh.unknown-kind",
            f"A neighbour cannot be given {', '.join(unknown)[:100]}",
            hint=f"It can be given: {', '.join(GRANTS)}",
        )
    return cast("frozenset[Grant]", wanted)


def _scopes(grants: Iterable[Grant]) -> frozenset[Scope]:
    return frozenset({"neighbour", *cast("Iterable[Scope]", (one for one in grants if one in SLOT_GRANTS))})


def _encode(one: Neighbour) -> tuple[object, ...]:
    grants, given = json.dumps(sorted(one.grants)), json.dumps(sorted(one.given))
    return (one.pubkey, one.name, one.url, one.did, one.proof, grants, given, one.token, one.paired, one.seen)


def _decode(row: tuple[object, ...]) -> Neighbour:
    pubkey, name, url, did, proof, grants, given, token, paired, seen = row
    return Neighbour(
        cast(str, pubkey),
        cast(str, name),
        cast("str | None", url),
        cast("str | None", did),
        cast(ProofState, proof),
        frozenset(json.loads(cast(str, grants))),
        frozenset(json.loads(cast(str, given))),
        cast(str, token),
        cast(float, paired),
        cast("float | None", seen),
    )
