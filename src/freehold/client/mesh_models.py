"""The replies of the mesh as frozen objects."""

from datetime import datetime
from typing import Any

from pydantic import Field

from freehold.client.models import ApiModel


class MeshRelayInfo(ApiModel):
    url: str
    state: str
    error: str | None
    since: datetime
    seen: datetime | None
    waiting: int


class MeshRegistrationInfo(ApiModel):
    host: str
    state: str
    error: str | None
    since: datetime
    slots: tuple[str, ...]


class MeshInfo(ApiModel):
    """This Freehold as its neighbours see it."""

    mode: str
    name: str
    npub: str
    did: str | None
    url: str | None
    relay: str | None
    relays: tuple[MeshRelayInfo, ...]
    registration: MeshRegistrationInfo | None


class NeighbourInfo(ApiModel):
    """A paired Freehold. `grants` is what it may use here, `given` what this one may use there."""

    name: str
    npub: str
    did: str | None
    proof: str
    url: str | None
    grants: tuple[str, ...]
    given: tuple[str, ...]
    paired: datetime
    seen: datetime | None


class MeshKeyInfo(ApiModel):
    npub: str


class AccountRecordInfo(ApiModel):
    """Whether the account names the key of this Freehold: `proven`, `refuted`, `claimed` when it could not be asked."""

    did: str | None
    npub: str
    proof: str


class PairingCodeInfo(ApiModel):
    """It works once, for ten minutes."""

    code: str
    npub: str
    expires: datetime


class IntroductionInfo(ApiModel):
    """The Freehold that made a code."""

    url: str
    npub: str
    name: str
    did: str | None
    proof: str


class EvictedInfo(ApiModel):
    name: str


class MeshClientInfo(ApiModel):
    """A client of this host."""

    name: str
    npub: str
    registered: datetime
    heard: datetime
    version: str
    image: str | None
    contracts: dict[str, int]
    capabilities: tuple[str, ...]
    load: float
    health: str
    slots: tuple[str, ...]
    grants: tuple[str, ...]


class SentMessageInfo(ApiModel):
    id: str


class NeighbourMessageInfo(ApiModel):
    """What a neighbour wrote, or an event of its timeline."""

    id: str
    neighbour: str | None
    at: datetime
    kind: str
    content: str


class WorkInfo(ApiModel):
    """Work that was sent to a neighbour. `entry` is the entry of history that has its files, once accepted."""

    id: str
    neighbour: str | None
    title: str
    state: str
    error: str | None
    created: datetime
    finished: datetime | None
    entry: int | None
    folder: str | None


class WorkEventInfo(ApiModel):
    seq: int
    at: datetime
    kind: str
    data: dict[str, Any]


class WorkFileInfo(ApiModel):
    path: str
    size: int
    is_program: bool
    runs_by_itself: str | None
    text: str | None


class WorkDetails(ApiModel):
    work: WorkInfo
    events: tuple[WorkEventInfo, ...]
    files: tuple[WorkFileInfo, ...]


class AgentSkillInfo(ApiModel):
    id: str
    name: str
    description: str
    tags: tuple[str, ...]


class AgentCardInfo(ApiModel):
    """An agent of a neighbour, as A2A describes one."""

    name: str
    description: str
    version: str
    skills: tuple[AgentSkillInfo, ...]
    url: str = ""
    capabilities: dict[str, bool] = Field(default_factory=dict)
    default_input_modes: tuple[str, ...] = Field(default=(), alias="defaultInputModes")
    default_output_modes: tuple[str, ...] = Field(default=(), alias="defaultOutputModes")


class AgentCards(ApiModel):
    """The agents of a neighbour that take work. `grants` is what you may use there."""

    agents: tuple[AgentCardInfo, ...]
    grants: tuple[str, ...] = ()
