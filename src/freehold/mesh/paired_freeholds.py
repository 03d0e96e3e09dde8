"""Neighbours as slots use them: where each is reached, and how requests to it are signed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from freehold.mesh.section import MeshSection
from freehold.slots.paired import PairedFreehold, PairedFreeholds

if TYPE_CHECKING:
    from freehold.home import Home
    from freehold.manifest import Manifest
    from freehold.mesh.neighbours import Neighbour
    from freehold.mesh.nostr.keys import NostrKey
    from freehold.mesh.peer_client import PeerClient
    from freehold.timeline import Timeline


def sign_for(key: "Callable[[], NostrKey]", neighbour: "Neighbour", peers: "PeerClient") -> PairedFreehold:
    """`peers` knows how far the clock there differs. Raises `mesh.no-address`."""
    from freehold.mesh.http_signature import sign_request
    from freehold.mesh.neighbours import require_address

    url = require_address(neighbour)
    return PairedFreehold(
        url,
        lambda method, target, body: sign_request(key(), method, target, body, offset=peers.offset(url)),
        lambda now: peers.correct_clock(url, now),
    )


def read_paired(home: "Home", manifest: "Manifest", timeline: "Timeline") -> PairedFreeholds:
    """For a command, which has the vault and the tables, and needs no gateway. It cannot send work: nobody would follow it."""
    if not manifest.section(MeshSection).enabled:
        return PairedFreeholds()
    found: list[PeerClient] = []

    def find(name: str) -> PairedFreehold:
        from freehold.egress.vault import Vault
        from freehold.mesh.identity import load_key
        from freehold.mesh.neighbours import choose_neighbour, read_neighbours
        from freehold.mesh.peer_client import PeerClient

        if not found:
            found.append(PeerClient())
        key = load_key(Vault(home.vault))
        return sign_for(lambda: key, choose_neighbour(read_neighbours(timeline), name), found[0])

    return PairedFreeholds(find)
