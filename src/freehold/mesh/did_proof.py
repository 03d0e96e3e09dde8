"""Whether a DID says that a key speaks for it: a record in the repository of that account names the key."""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from freehold.errors import FreeholdError
from freehold.mesh.neighbours import Neighbours, ProofState
from freehold.mesh.nostr.keys import show_key
from freehold.observe.logs import log_unexpected

if TYPE_CHECKING:
    from freehold.identity.atproto.fetcher import NetworkOverrides

COLLECTION = "org.freehold.mesh.key"
NO_RECORD = (400, 404)
"""How a server says that there is no such record or account. Anything else says nothing about it."""
TIMEOUT = 20.0
INTERVAL = 3600.0


def make_record(public: str, created: str) -> dict[str, str]:
    """The record. Its key in the collection is the `npub`."""
    return {"$type": COLLECTION, "npub": show_key(public), "createdAt": created}


async def is_named_by(did: str, public: str, plc_url: str, network: "NetworkOverrides | None") -> bool:
    """Asks the server of the DID and nobody else. Raises `mesh.unreachable` when it cannot be asked."""
    from freehold.identity.atproto.fetcher import Fetcher, FetchError
    from freehold.identity.atproto.problems import SignInProblem
    from freehold.identity.atproto.resolver import Resolver

    npub = show_key(public)
    fetcher = Fetcher(network)
    try:
        account = await Resolver(fetcher, plc_url=plc_url).resolve_did(did)
        query = urlencode({"repo": did, "collection": COLLECTION, "rkey": npub})
        answer = await fetcher.request("GET", f"{account.pds.rstrip('/')}/xrpc/com.atproto.repo.getRecord?{query}")
        if answer.status in NO_RECORD:
            return False
        if answer.status != 200:
            raise FreeholdError("mesh.unreachable", f"The server of {did} answered {answer.status}")
        value = answer.json().get("value")
    except (FetchError, SignInProblem) as error:
        raise FreeholdError("mesh.unreachable", f"The account {did} could not be asked: {error}") from None
    return isinstance(value, dict) and value.get("$type") == COLLECTION and value.get("npub") == npub


class DidProofs:
    """Asks the DIDs of neighbours whether they name their keys: after each change of neighbours, and every hour."""

    def __init__(self, neighbours: Neighbours, plc_url: str, network: "NetworkOverrides | None") -> None:
        self._neighbours = neighbours
        self._plc_url = plc_url
        self._network = network
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def prove(self, did: str | None, pubkey: str) -> ProofState:
        """`claimed` when the account could not be asked."""
        if did is None:
            return "none"
        try:
            async with asyncio.timeout(TIMEOUT):
                return "proven" if await is_named_by(did, pubkey, self._plc_url, self._network) else "refuted"
        except (FreeholdError, TimeoutError):
            return "claimed"

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._wake.clear()
            for one in self._neighbours.list():
                try:
                    proof = await self.prove(one.did, one.pubkey)
                    if proof not in (one.proof, "claimed"):  # who cannot be asked now changes nothing
                        await asyncio.to_thread(self._neighbours.note_proof, one.pubkey, proof)
                except Exception as error:
                    log_unexpected(error, "the DID of a neighbour could not be checked")
            try:
                async with asyncio.timeout(INTERVAL):
                    await self._wake.wait()
            except TimeoutError:
                continue
