"""The entry point of the client: one Freehold with its resources."""

from types import TracebackType
from typing import Self

from freehold.client._async.agents import AsyncAgents
from freehold.client._async.backup import AsyncBackup
from freehold.client._async.beads import AsyncBeads
from freehold.client._async.budgets import AsyncBudgets
from freehold.client._async.channels import AsyncChannels
from freehold.client._async.code import AsyncCode
from freehold.client._async.connection import AsyncConnection
from freehold.client._async.credentials import AsyncSignIns, AsyncTokens
from freehold.client._async.egress import AsyncEgress
from freehold.client._async.events import AsyncEvents
from freehold.client._async.files import AsyncFiles
from freehold.client._async.fleet import AsyncFleet
from freehold.client._async.git import AsyncGit
from freehold.client._async.history import AsyncHistory
from freehold.client._async.host_credentials import AsyncCredentials
from freehold.client._async.kill_switch import AsyncKillSwitch
from freehold.client._async.mcp import AsyncMcp
from freehold.client._async.memory import AsyncMemory
from freehold.client._async.mesh import AsyncMesh
from freehold.client._async.models import AsyncModels
from freehold.client._async.pods import AsyncPods
from freehold.client._async.preview import AsyncPreview
from freehold.client._async.programs import AsyncPrograms
from freehold.client._async.routines import AsyncRoutines
from freehold.client._async.runs import AsyncRuns
from freehold.client._async.secrets import AsyncSecrets
from freehold.client._async.sessions import AsyncSessions
from freehold.client._async.skills import AsyncSkills
from freehold.client._async.ssh import AsyncSsh
from freehold.client._async.timeline import AsyncTimeline
from freehold.client._async.usage import AsyncUsage
from freehold.client._async.workflows import AsyncWorkflows
from freehold.client.address import read_address
from freehold.client.home_models import HealthInfo, Me, Meta
from freehold.client.models import Ended
from freehold.client.slot_models import SlotInfo
from freehold.client.stored_tokens import find_stored_token
from freehold.errors import FreeholdError


class AsyncFreehold:
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
        self._connection = AsyncConnection(self.url, secret, timeout)
        self.sign_ins = AsyncSignIns(self._connection)
        self.tokens = AsyncTokens(self._connection)
        self.timeline = AsyncTimeline(self._connection)
        self.egress = AsyncEgress(self._connection)
        self.credentials = AsyncCredentials(self._connection)
        self.files = AsyncFiles(self._connection)
        self.history = AsyncHistory(self._connection)
        self.preview = AsyncPreview(self._connection)
        self.skills = AsyncSkills(self._connection)
        self.ssh = AsyncSsh(self._connection)
        self.code = AsyncCode(self._connection)
        self.channels = AsyncChannels(self._connection)
        self.sessions = AsyncSessions(self._connection)
        self.agents = AsyncAgents(self._connection)
        self.models = AsyncModels(self._connection)
        self.beads = AsyncBeads(self._connection)
        self.mcp = AsyncMcp(self._connection)
        self.memory = AsyncMemory(self._connection)
        self.events = AsyncEvents(self._connection)
        self.pods = AsyncPods(self._connection)
        self.runs = AsyncRuns(self._connection)
        self.backup = AsyncBackup(self._connection)
        self.fleet = AsyncFleet(self._connection)
        self.mesh = AsyncMesh(self._connection)
        self.routines = AsyncRoutines(self._connection)
        self.workflows = AsyncWorkflows(self._connection)
        self.budgets = AsyncBudgets(self._connection)
        self.git = AsyncGit(self._connection)
        self.kill_switch = AsyncKillSwitch(self._connection)
        self.programs = AsyncPrograms(self._connection)
        self.secrets = AsyncSecrets(self._connection)
        self.usage = AsyncUsage(self._connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._connection.close()

    async def me(self) -> Me:
        """The caller and its scopes."""
        return await self._connection.get("/v1/me", Me)

    async def sign_out(self) -> None:
        """Revoke the token of this client."""
        await self._connection.delete("/v1/me", Ended)

    async def meta(self) -> Meta:
        """The version, the checksum of the manifest, and the program of each slot."""
        return await self._connection.get("/v1/meta", Meta)

    async def health(self) -> HealthInfo:
        """The current health of each component."""
        return await self._connection.get("/health", HealthInfo)

    async def slots(self) -> tuple[SlotInfo, ...]:
        """Every slot with its mode and state."""
        return await self._connection.get("/v1/slots", tuple[SlotInfo, ...])
