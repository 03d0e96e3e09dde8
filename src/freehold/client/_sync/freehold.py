# made from _async/freehold.py by python -m tools.generate
"""The entry point of the client: one Freehold with its resources."""

from types import TracebackType
from typing import Self

from freehold.client._sync.agents import SyncAgents
from freehold.client._sync.backup import SyncBackup
from freehold.client._sync.beads import SyncBeads
from freehold.client._sync.budgets import SyncBudgets
from freehold.client._sync.channels import SyncChannels
from freehold.client._sync.code import SyncCode
from freehold.client._sync.connection import SyncConnection
from freehold.client._sync.credentials import SyncSignIns, SyncTokens
from freehold.client._sync.egress import SyncEgress
from freehold.client._sync.events import SyncEvents
from freehold.client._sync.files import SyncFiles
from freehold.client._sync.fleet import SyncFleet
from freehold.client._sync.git import SyncGit
from freehold.client._sync.history import SyncHistory
from freehold.client._sync.host_credentials import SyncCredentials
from freehold.client._sync.kill_switch import SyncKillSwitch
from freehold.client._sync.mcp import SyncMcp
from freehold.client._sync.memory import SyncMemory
from freehold.client._sync.mesh import SyncMesh
from freehold.client._sync.models import SyncModels
from freehold.client._sync.pods import SyncPods
from freehold.client._sync.preview import SyncPreview
from freehold.client._sync.programs import SyncPrograms
from freehold.client._sync.routines import SyncRoutines
from freehold.client._sync.runs import SyncRuns
from freehold.client._sync.secrets import SyncSecrets
from freehold.client._sync.sessions import SyncSessions
from freehold.client._sync.skills import SyncSkills
from freehold.client._sync.ssh import SyncSsh
from freehold.client._sync.timeline import SyncTimeline
from freehold.client._sync.usage import SyncUsage
from freehold.client._sync.workflows import SyncWorkflows
from freehold.client.address import read_address
from freehold.client.home_models import HealthInfo, Me, Meta
from freehold.client.models import Ended
from freehold.client.slot_models import SlotInfo
from freehold.client.stored_tokens import find_stored_token
from freehold.errors import FreeholdError


class SyncFreehold:
    """Each resource is an attribute. Replies are frozen objects, and failures raise FreeholdError."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0) -> None:
        """Without `token`, the token that `freehold login` stored for this address is used."""
        self.url = read_address(url)
        secret = token if token is not None else find_stored_token(self.url)
        if secret is None:
            raise FreeholdError(
                "client.no-token",
                f"There is no token for {self.url}",
                hint=f"Get one: freehold login {self.url}",
            )
        self._connection = SyncConnection(self.url, secret, timeout)
        self.sign_ins = SyncSignIns(self._connection)
        self.tokens = SyncTokens(self._connection)
        self.timeline = SyncTimeline(self._connection)
        self.egress = SyncEgress(self._connection)
        self.credentials = SyncCredentials(self._connection)
        self.files = SyncFiles(self._connection)
        self.history = SyncHistory(self._connection)
        self.preview = SyncPreview(self._connection)
        self.skills = SyncSkills(self._connection)
        self.ssh = SyncSsh(self._connection)
        self.code = SyncCode(self._connection)
        self.channels = SyncChannels(self._connection)
        self.sessions = SyncSessions(self._connection)
        self.agents = SyncAgents(self._connection)
        self.models = SyncModels(self._connection)
        self.beads = SyncBeads(self._connection)
        self.mcp = SyncMcp(self._connection)
        self.memory = SyncMemory(self._connection)
        self.events = SyncEvents(self._connection)
        self.pods = SyncPods(self._connection)
        self.runs = SyncRuns(self._connection)
        self.backup = SyncBackup(self._connection)
        self.fleet = SyncFleet(self._connection)
        self.mesh = SyncMesh(self._connection)
        self.routines = SyncRoutines(self._connection)
        self.workflows = SyncWorkflows(self._connection)
        self.budgets = SyncBudgets(self._connection)
        self.git = SyncGit(self._connection)
        self.kill_switch = SyncKillSwitch(self._connection)
        self.programs = SyncPrograms(self._connection)
        self.secrets = SyncSecrets(self._connection)
        self.usage = SyncUsage(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def me(self) -> Me:
        """The caller and its scopes."""
        return self._connection.get("/v1/me", Me)

    def sign_out(self) -> None:
        """Revoke the token of this client."""
        self._connection.delete("/v1/me", Ended)

    def meta(self) -> Meta:
        """The version, the checksum of the manifest, and the program of each slot."""
        return self._connection.get("/v1/meta", Meta)

    def health(self) -> HealthInfo:
        """The current health of each component."""
        return self._connection.get("/health", HealthInfo)

    def slots(self) -> tuple[SlotInfo, ...]:
        """Every slot with its mode and state."""
        return self._connection.get("/v1/slots", tuple[SlotInfo, ...])
