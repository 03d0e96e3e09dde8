"""Both sides of a pairing: codes that are made here, and codes of others that are entered here."""

import asyncio
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.manifest.addresses import is_loopback
from freehold.mesh.grants import GRANTS, Grant
from freehold.mesh.identity import OwnerStatement, read_statement
from freehold.mesh.neighbours import Neighbour, ProofState, read_grants, slug
from freehold.mesh.nostr.keys import show_key
from freehold.mesh.pairing import PairingCode, PairingCodes, read_code
from freehold.mesh.peer_address import check_address, is_here

if TYPE_CHECKING:
    from freehold.mesh.mesh import Mesh

BETWEEN = (
    "Somebody may stand between you. Ask the other owner for the key and the address that freehold mesh status shows"
)

MAX_FORMER = 1_000
"""Former neighbours whose names are looked at."""


@dataclass(frozen=True)
class Introduction:
    """The other Freehold of a pairing code, before anything is agreed."""

    code: PairingCode
    statement: OwnerStatement
    proof: ProofState


class Pairings:
    def __init__(self, mesh: "Mesh") -> None:
        self._mesh = mesh
        self._codes = PairingCodes(mesh.services.timeline)

    async def create_code(self, grants: Iterable[str], name: str | None) -> tuple[PairingCode, float]:
        """A one-time code for the owner of another Freehold, and when it expires."""
        secret, expires = await asyncio.to_thread(self._codes.create, read_grants(grants), name and slug(name))
        return PairingCode(self._mesh.url, self._mesh.key.public, secret), expires

    async def require_code(self, secret: str) -> None:
        """Raises `mesh.code-expired`. The code can still be used."""
        await asyncio.to_thread(self._codes.require, secret)

    async def introduce(self, text: str) -> Introduction:
        """Asks the Freehold of a code who it is. The code is not used up."""
        code = read_code(text)
        if code.pubkey == self._mesh.key.public:
            raise FreeholdError("mesh.bad-value", "This code was made here", hint="Enter it at the other Freehold")
        challenge = secrets.token_hex(16)
        body = {"secret": code.secret, "challenge": challenge}
        found = await self._mesh.peers.send(self._mesh.key, code.url, "POST", "/v1/mesh/introduction", body)
        statement = self._read_statement(found, code, challenge)
        return Introduction(code, statement, await self._mesh.proofs.prove(statement.did, statement.pubkey))

    async def pair(self, text: str, grants: Iterable[str], name: str | None, who: str) -> Neighbour:
        """Uses a code up. Both sides then know each other."""
        code, own = read_code(text), read_grants(grants)
        if code.pubkey == self._mesh.key.public:
            raise FreeholdError("mesh.bad-value", "This code was made here", hint="Enter it at the other Freehold")
        challenge = secrets.token_hex(16)
        body = {
            "secret": code.secret,
            "challenge": challenge,
            "statement": self._mesh.make_statement(code.secret).as_json(),
            "url": self._mesh.address_for(code.url),
            "grants": sorted(own),
        }
        found = await self._mesh.peers.send(self._mesh.key, code.url, "POST", "/v1/mesh/pair", body)
        statement = self._read_statement(found, code, challenge)
        given = known_grants(found.get("grants"))
        chosen = await asyncio.to_thread(self._choose_name, name, statement)
        made = await asyncio.to_thread(
            self._mesh.neighbours.add,
            code.pubkey,
            chosen,
            url=code.url,
            did=statement.did,
            grants=own,
            given=given,
            who=who,
        )
        await self._mesh.end_ungranted(made)
        self._mesh.note_changed_neighbours()
        return made

    async def accept(
        self, signer: str, secret: str, statement: object, url: str | None, given: Iterable[str], address: str
    ) -> frozenset[Grant]:
        """The other side has entered a code that was made here. Returns what it may use.

        `address` is where the request came from: only who is on this machine can name an address of this machine.
        """
        said = read_statement(statement, secret)
        if said.pubkey != signer:
            raise FreeholdError("mesh.bad-signature", "The statement is of another key than the request")
        if signer == self._mesh.key.public:
            raise FreeholdError("mesh.bad-value", "A Freehold cannot be its own neighbour")
        own = None if url is None else check_address(url)
        if own is not None and is_here(own) and not is_loopback(address):
            own = None
        name, grants = await asyncio.to_thread(self._codes.take, secret)
        chosen = await asyncio.to_thread(self._choose_name, name, said)
        made = await asyncio.to_thread(
            self._mesh.neighbours.add,
            signer,
            chosen,
            url=own,
            did=said.did,
            grants=grants,
            given=known_grants(list(given)),
            who=f"neighbour:{show_key(signer)}",
        )
        await self._mesh.end_ungranted(made)
        self._mesh.note_changed_neighbours()
        return grants

    def _choose_name(self, given: str | None, said: OwnerStatement) -> str:
        """What the owner calls it, or what it calls itself. The name of a former neighbour goes to another key only if the
        owner says so: slots of the manifest may still name it. Blocks."""
        if given is not None:
            return given
        former = self._mesh.services.timeline.tail(MAX_FORMER, ["mesh.evicted"])
        npub = next((one.data["npub"] for one in reversed(former) if one.data["name"] == said.name), None)
        is_free = npub is None or npub == show_key(said.pubkey)
        return said.name if is_free else f"{said.name[:21]}-{secrets.token_hex(3)}"

    def _read_statement(self, found: dict[str, object], code: PairingCode, challenge: str) -> OwnerStatement:
        statement = read_statement(found.get("statement"), challenge)
        if statement.pubkey != code.pubkey:
            raise FreeholdError(
                "mesh.bad-signature",
                f"{code.url} answers with the key {show_key(statement.pubkey)}, and the code names {code.npub}",
                hint=BETWEEN,
            )
        if not _is_same_address(statement.url, code.url):
            raise FreeholdError(
                "mesh.bad-signature",
                f"The key answers at {code.url}, and says that its Freehold is at {str(statement.url)[:80]!a}",
                hint=BETWEEN,
            )
        return statement


def _is_same_address(said: str | None, url: str) -> bool:
    """Whether a key says that it is reached at the address of its code. Who has another key can pass on what it says."""
    try:
        return said is not None and check_address(said) == url
    except FreeholdError:
        return False


def known_grants(value: object) -> frozenset[Grant]:
    """What the other side says that it gives. A newer version may give what this one does not know."""
    names = value if isinstance(value, list) else []
    return frozenset(one for one in GRANTS if one in names)
