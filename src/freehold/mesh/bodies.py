"""What the API of the mesh sends and receives."""

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, Field

from freehold.agents.sessions.self_running_files import describe_self_running
from freehold.gateway.inputs import RequestBody
from freehold.gateway.moments import to_moment
from freehold.mesh.archive import MAX_SHOWN
from freehold.mesh.grants import Grant
from freehold.mesh.neighbours import Neighbour, ProofState
from freehold.mesh.relay_status import RelayStatus
from freehold.mesh.section import MeshMode
from freehold.slots.orchestrator.contract import RunPermission
from freehold.slots.orchestrator.store import LOST

if TYPE_CHECKING:
    from freehold.mesh.archive import ArchiveFile
    from freehold.mesh.clients import RegisteredClient
    from freehold.mesh.registration import RegistrationStatus
    from freehold.mesh.sent_jobs import SentJob
    from freehold.slots.orchestrator.contract import Run, RunEvent

GrantList = Annotated[list[Grant], Field(max_length=10)]
NeighbourName = Annotated[str | None, Field(default=None, min_length=1, max_length=80)]
EventBody = Annotated[dict[str, Any], Field(max_length=10)]
"""A signed event of Nostr. Whoever reads it checks it."""


class RelayStateBody(BaseModel):
    """A relay that this Freehold connects to. `seen` is when it last answered."""

    url: str
    state: Literal["ok", "away"]
    error: str | None
    since: datetime
    seen: datetime | None
    waiting: int = Field(description="Events that it has not taken yet.")


class RegistrationBody(BaseModel):
    """Where a client stands with its host."""

    host: str
    state: Literal["waiting", "registered", "away", "evicted"]
    error: str | None
    since: datetime
    slots: list[str] = Field(description="What the host serves.")


class MeshBody(BaseModel):
    """This Freehold as its neighbours see it."""

    mode: MeshMode
    name: str
    npub: str
    did: str | None
    url: str | None
    relay: str | None = Field(description="The address of its own relay.")
    relays: list[RelayStateBody]
    registration: RegistrationBody | None


class NeighbourBody(BaseModel):
    """Another Freehold. `grants` is what it may use here, `given` what this one may use there.

    `proof` says whether the DID that it names also names its key: `proven`, `refuted`, or only `claimed` so far.
    """

    name: str
    npub: str
    did: str | None
    proof: ProofState
    url: str | None
    grants: list[Grant]
    given: list[Grant]
    paired: datetime
    seen: datetime | None


class SendMessageBody(RequestBody):
    text: str = Field(min_length=1, max_length=16_000)


class SentMessageBody(BaseModel):
    """`id` is that of the encrypted event, which goes to the relays as soon as they are reached."""

    id: str


class NeighbourMessageBody(BaseModel):
    """What a neighbour wrote, or an event of its timeline. It is data: nothing here acts on it."""

    id: str
    neighbour: str | None = Field(description="Its name; null for one that was evicted since.")
    at: datetime
    kind: Literal["message", "event"]
    content: str


Load = Annotated[float, Field(ge=0, le=100_000)]
Health = Annotated[str, Field(max_length=200)]


class RegisterBody(RequestBody):
    """What a client tells its host about itself."""

    version: str = Field(max_length=40)
    image: str | None = Field(default=None, max_length=64, description="The digest of the lock of its image.")
    contracts: dict[Annotated[str, Field(max_length=40)], Annotated[int, Field(ge=0, le=1_000_000)]] = Field(
        default={}, max_length=20, description="The version of the contract of each of its slots."
    )
    capabilities: list[Annotated[str, Field(max_length=40)]] = Field(default=[], max_length=20)
    load: Load = 0.0
    health: Health = "ok"


class RegisteredBody(BaseModel):
    """A place in the table of the host. `endpoints` are paths of the host."""

    session: str
    heartbeat: float = Field(description="Seconds between two heartbeats. After three missing ones the place is lost.")
    slots: list[str]
    endpoints: dict[str, str]


class HeartbeatBody(RequestBody):
    session: str = Field(min_length=1, max_length=64)
    health: Health = "ok"
    load: Load = 0.0


class DeregisterBody(RequestBody):
    session: str = Field(min_length=1, max_length=64)


class HeartbeatAnswerBody(BaseModel):
    alive: Literal[True] = True


class MeshClientBody(BaseModel):
    """A client of this host."""

    name: str
    npub: str
    registered: datetime
    heard: datetime
    version: str
    image: str | None
    contracts: dict[str, int]
    capabilities: list[str] = Field(description="What works there: some of `slots`, `work` and `relay`.")
    load: float
    health: str
    slots: list[str] = Field(description="What it was given and what works here now.")
    grants: list[Grant] = Field(description="What it was given here.")


WorkId = Annotated[str, Path(min_length=1, max_length=40, pattern="^[A-Za-z0-9-]+$")]
Prompt = Annotated[str, Field(min_length=1, max_length=64 * 1024)]
Title = Annotated[str | None, Field(default=None, min_length=1, max_length=200)]


class HostWorkBody(RequestBody):
    """A job of a neighbour. The same id begins it once only."""

    id: str = Field(min_length=1, max_length=40, pattern="^[A-Za-z0-9-]+$")
    prompt: Prompt
    title: Title = None
    budget: float | None = Field(
        default=None,
        gt=0,
        lt=1_000_000,
        description="What it may cost, in US dollars, when that is less than allowed here.",
    )
    permissions: list[RunPermission] | None = Field(
        default=None,
        max_length=20,
        description="What its agent may do at most. It never gets more than is allowed here.",
    )


class HostedEventBody(BaseModel):
    seq: int
    at: str
    kind: str
    data: dict[str, Any]


class HostedWorkBody(BaseModel):
    """How a job stands, and what its agent said and did since `after`.

    `lost`: this Freehold was restarted while the agent worked. `files`: an archive can be fetched.
    """

    state: str
    error: str | None
    lost: bool
    files: bool
    agent: str
    cost: float | None = Field(description="In US dollars, as far as it is known.")
    events: list[HostedEventBody] = []


class SendWorkBody(RequestBody):
    neighbour: str = Field(min_length=1, max_length=80)
    prompt: Prompt
    title: Title = None


class SentWorkFileBody(BaseModel):
    """A file that work has made. `text` is null for one that is not a short text."""

    path: str
    size: int
    is_program: bool
    runs_by_itself: str | None = Field(description="What starts such a file without anybody asking for it.")
    text: str | None


class SentWorkBody(BaseModel):
    """Work that was sent to a neighbour. `entry` is the entry of history that has its files, once accepted."""

    id: str
    neighbour: str | None = Field(description="Its name; null for one that was evicted since.")
    title: str
    state: Literal["sending", "working", "returned", "done", "failed", "lost", "ended", "accepted", "dropped"]
    error: str | None
    created: datetime
    finished: datetime | None
    entry: int | None
    folder: str | None


class SentWorkDetailsBody(BaseModel):
    work: SentWorkBody
    events: list[HostedEventBody]
    files: list[SentWorkFileBody]


class AcceptWorkBody(RequestBody):
    folder: str = Field(
        default="", max_length=1000, description="A folder of the workspace; the workspace itself if empty."
    )
    force: bool = Field(default=False, description="Overwrite files that are there and differ.")


class DecideWorkBody(RequestBody):
    """An empty object."""


CardText = Annotated[str, Field(max_length=2_000)]
CardWords = Annotated[list[Annotated[str, Field(max_length=100)]], Field(max_length=50)]


class AgentSkillBody(BaseModel):
    id: CardText
    name: CardText
    description: CardText
    tags: CardWords


class AgentCardBody(BaseModel):
    """An agent in the card format of A2A, as far as it fits. Work for it is sent by the mesh and not by A2A."""

    name: CardText
    description: CardText
    version: CardText
    url: CardText
    capabilities: Annotated[dict[Annotated[str, Field(max_length=100)], bool], Field(max_length=50)]
    defaultInputModes: CardWords
    defaultOutputModes: CardWords
    skills: Annotated[list[AgentSkillBody], Field(max_length=50)]


class AgentCardsBody(BaseModel):
    """The agents of one Freehold that take work, and what the one that asks may use there."""

    agents: Annotated[list[AgentCardBody], Field(max_length=50)]
    grants: list[Annotated[str, Field(max_length=40)]] = Field(default=[], max_length=20)


class ReplaceKeyBody(RequestBody):
    secret_key: str | None = Field(
        default=None, min_length=63, max_length=64, description="An nsec to use from now on; a new key if missing."
    )


class MeshKeyBody(BaseModel):
    npub: str


class AccountRecordBody(BaseModel):
    """Whether the owner's account names the key of this Freehold: asked of the server of the account just now.

    `claimed` when that could not be asked, `none` without an account.
    """

    did: str | None
    npub: str
    proof: ProofState


class BeginRecordBody(RequestBody):
    """An empty object."""


class RecordRedirectBody(BaseModel):
    """The address that the browser must open next: there the owner agrees."""

    redirect: str


class CreatePairingCodeBody(RequestBody):
    grants: GrantList = Field(default=[], description="What the neighbour may use here.")
    name: NeighbourName = Field(default=None, description="Its name here; what it calls itself if missing.")


class PairingCodeBody(BaseModel):
    """A pairing code. It works once, for ten minutes."""

    code: str
    npub: str
    expires: datetime


class PairingCodeTextBody(RequestBody):
    code: str = Field(min_length=1, max_length=2000)


class PairNeighbourBody(PairingCodeTextBody):
    grants: GrantList = Field(default=[], description="What the neighbour may use here.")
    name: NeighbourName = Field(default=None, description="Its name here; what it calls itself if missing.")


class IntroductionBody(BaseModel):
    """The Freehold that made a code. Compare the key with the one that its owner sees."""

    url: str
    npub: str
    name: str
    did: str | None
    proof: ProofState


class NeighbourGrantsBody(RequestBody):
    grants: GrantList


class EvictedNeighbourBody(BaseModel):
    """The neighbour that was evicted. Its requests and streams end within a second."""

    name: str


class IntroduceBody(RequestBody):
    """Of the other Freehold, which has a code that was made here."""

    secret: str = Field(min_length=1, max_length=100)
    challenge: str = Field(min_length=1, max_length=64)


class RedeemCodeBody(IntroduceBody):
    """Of the other Freehold, signed by its key."""

    statement: EventBody
    url: str | None = Field(default=None, max_length=300)
    grants: list[Annotated[str, Field(max_length=40)]] = Field(default=[], max_length=20)


class StatementBody(BaseModel):
    """A statement of this Freehold's key, signed."""

    statement: dict[str, Any]
    grants: list[Grant] = []


def neighbour_body(one: Neighbour) -> NeighbourBody:
    return NeighbourBody(
        name=one.name,
        npub=one.npub,
        did=one.did,
        proof=one.proof,
        url=one.url,
        grants=sorted(one.grants),
        given=sorted(one.given),
        paired=to_moment(one.paired),
        seen=None if one.seen is None else to_moment(one.seen),
    )


def relay_body(one: RelayStatus, waiting: int) -> RelayStateBody:
    seen = None if one.seen is None else to_moment(one.seen)
    return RelayStateBody(
        url=one.url, state=one.state, error=one.error, since=to_moment(one.since), seen=seen, waiting=waiting
    )


def registration_body(one: "RegistrationStatus") -> RegistrationBody:
    return RegistrationBody(
        host=one.host, state=one.state, error=one.error, since=to_moment(one.since), slots=list(one.slots)
    )


def client_body(one: "RegisteredClient", neighbour: Neighbour, slots: list[str]) -> MeshClientBody:
    facts = one.facts
    return MeshClientBody(
        name=neighbour.name,
        npub=neighbour.npub,
        registered=to_moment(one.registered),
        heard=to_moment(one.heard),
        version=facts.version,
        image=facts.image,
        contracts=dict(facts.contracts),
        capabilities=list(facts.capabilities),
        load=facts.load,
        health=facts.health,
        slots=slots,
        grants=sorted(neighbour.grants),
    )


def hosted_body(run: "Run", events: "tuple[RunEvent, ...]" = ()) -> HostedWorkBody:
    return HostedWorkBody(
        state=run.state,
        error=run.error,
        lost=run.error == LOST,
        files=run.added + run.changed > 0,
        agent=run.agent,
        cost=run.cost,
        events=[HostedEventBody(seq=one.seq, at=one.at, kind=one.kind, data=dict(one.data)) for one in events],
    )


def work_body(job: "SentJob", neighbour: str | None) -> SentWorkBody:
    return SentWorkBody(
        id=job.id,
        neighbour=neighbour,
        title=job.title,
        state=job.state,
        error=job.error,
        created=to_moment(job.created),
        finished=None if job.finished is None else to_moment(job.finished),
        entry=job.entry,
        folder=job.folder,
    )


def file_body(one: "ArchiveFile") -> SentWorkFileBody:
    text: str | None = None
    if len(one.data) <= MAX_SHOWN:
        with suppress(UnicodeDecodeError):
            text = one.data.decode()
    return SentWorkFileBody(
        path=one.path,
        size=len(one.data),
        is_program=one.is_program,
        runs_by_itself=describe_self_running(f"/workspace/{one.path}"),
        text=None if text is None or "\0" in text else text,
    )
