"""What the gateway's routes share: one object, opened at start and closed in order."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from freehold.gateway.live import LiveConnections
from freehold.gateway.sealed import Sealed
from freehold.home import Home
from freehold.identity.sessions import Sessions
from freehold.identity.tokens import Tokens
from freehold.keeper.client import KeeperClient
from freehold.manifest import Loaded, Manifest
from freehold.timeline import Timeline

if TYPE_CHECKING:
    from freehold.identity.atproto.fetch import Network

# Asking the disk whether another process has revoked something costs more than all the rest of the guard.
PATIENCE = 0.02


@dataclass(frozen=True)
class House:
    home: Home
    loaded: Loaded
    timeline: Timeline
    sessions: Sessions
    tokens: Tokens
    keeper: KeeperClient
    sealed: Sealed
    network: "Network | None" = None
    live: LiveConnections = field(default_factory=LiveConnections)

    @property
    def manifest(self) -> Manifest:
        return self.loaded.manifest

    @property
    def base_url(self) -> str:
        """Where a browser finds us. AT Protocol sends browsers back to 127.0.0.1, never to the name localhost."""
        gateway = self.manifest.gateway
        if gateway.public_url:
            return gateway.public_url.rstrip("/")
        name = "localhost" if self.manifest.owner.did is None else "127.0.0.1"
        return f"http://{name}:{gateway.port}"


@contextmanager
def open_house(home: Home, loaded: Loaded, network: "Network | None" = None) -> Iterator[House]:
    """Open the databases the routes use: the same files that keeper and command line open.

    `network` changes where sign-in looks for the world; only tests give one.
    """
    manifest = loaded.manifest
    owner = manifest.owner.did
    with (
        Timeline(home.timeline) as timeline,
        Sessions(
            home.identity,
            owner=owner,
            idle=manifest.gateway.session_idle,
            absolute=manifest.gateway.session_absolute,
            patience=PATIENCE,
        ) as sessions,
        Tokens(home.identity, owner=owner, patience=PATIENCE) as tokens,
    ):
        keeper = KeeperClient(home, timeout=5)
        yield House(home, loaded, timeline, sessions, tokens, keeper, Sealed(home, manifest, timeline), network)
