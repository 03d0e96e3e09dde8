"""The databases and connections that the routes share, opened at the start and closed in order."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from freehold.egress.models.embeddings import fetch_embeddings
from freehold.gateway.computer_access import ComputerAccess
from freehold.gateway.connections import OpenConnections
from freehold.gateway.direct_messages import DirectMessageBox
from freehold.gateway.feature_objects import FeatureObjects
from freehold.gateway.owner_questions import OwnerQuestionBox
from freehold.home import Home
from freehold.identity.sign_ins import SignIns, control_center_url
from freehold.identity.tokens import ApiTokens
from freehold.keeper.client import KeeperClient
from freehold.manifest import LoadedManifest, Manifest
from freehold.manifest.current import CurrentManifest
from freehold.slots.host import SlotHost, make_place
from freehold.timeline import Timeline

if TYPE_CHECKING:
    from freehold.computer import Computer
    from freehold.egress.models import ModelGateway
    from freehold.egress.service import EgressService
    from freehold.egress.vault import Vault
    from freehold.identity.atproto.fetcher import NetworkOverrides

# Reading from the disk whether another process has revoked something costs more than the rest of the guard.
REVOCATION_CHECK_INTERVAL = 0.02


@dataclass(frozen=True)
class Services:
    home: Home
    current: CurrentManifest
    timeline: Timeline
    sign_ins: SignIns
    tokens: ApiTokens
    keeper: KeeperClient
    computer_access: ComputerAccess
    slots: SlotHost
    network: "NetworkOverrides | None" = None
    connections: OpenConnections = field(default_factory=OpenConnections)
    direct_messages: DirectMessageBox = field(default_factory=DirectMessageBox)
    owner_questions: OwnerQuestionBox = field(default_factory=OwnerQuestionBox)
    feature_objects: FeatureObjects = field(default_factory=FeatureObjects)

    @property
    def loaded(self) -> LoadedManifest:
        return self.current.loaded

    @property
    def manifest(self) -> Manifest:
        """The manifest in force now. See `CurrentManifest` for what changes while the gateway runs."""
        return self.current.manifest

    @property
    def computer(self) -> "Computer":
        """The connected computer. Raises `computer.not-connected`."""
        return self.computer_access.computer

    @property
    def egress(self) -> "EgressService":
        """Raises `egress.not-running` before it has started."""
        return self.computer_access.egress

    @property
    def models(self) -> "ModelGateway":
        return self.computer_access.models

    @property
    def vault(self) -> "Vault":
        return self.computer_access.vault

    @property
    def base_url(self) -> str:
        """The address of the control center."""
        gateway = self.manifest.gateway
        return control_center_url(gateway.port, gateway.public_url)


@contextmanager
def open_services(home: Home, loaded: LoadedManifest, network: "NetworkOverrides | None" = None) -> Iterator[Services]:
    """Open the databases that the routes use. The keeper and the command line open the same files.

    `network` replaces the servers that sign-in contacts; only tests give one.
    """
    manifest = loaded.manifest
    owner = manifest.owner.did
    with (
        Timeline(home.timeline) as timeline,
        SignIns(
            home.identity,
            owner=owner,
            idle=manifest.gateway.sign_in_idle,
            absolute=manifest.gateway.sign_in_absolute,
            refresh_interval=REVOCATION_CHECK_INTERVAL,
        ) as sessions,
        ApiTokens(home.identity, owner=owner, refresh_interval=REVOCATION_CHECK_INTERVAL) as tokens,
    ):
        keeper = KeeperClient(home, timeout=5)
        access = ComputerAccess(home, manifest, timeline)
        embed = partial(fetch_embeddings, access.models)
        slots = SlotHost(manifest, make_place(home, timeline, access.vault.get, embed))
        current = CurrentManifest(loaded, os.environ, home.root)
        yield Services(home, current, timeline, sessions, tokens, keeper, access, slots, network)
