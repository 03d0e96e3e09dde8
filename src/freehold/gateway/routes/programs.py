"""The programs that the keeper runs: list and restart them."""

from typing import Literal

from fastapi import Request
from pydantic import BaseModel

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import UrlName
from freehold.gateway.moments import Moment, to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routes.doctor import IsolationFactsBody
from freehold.gateway.routing import get, post
from freehold.keeper.calls import GetKeeperStatus, ProgramState, ProgramStatus, RestartProgram
from freehold.strict_json import encode

# A program may take long to stop and to become ready again.
RESTART_TIMEOUT = 90.0
GATEWAY = "gateway"
KEEPER = "keeper"


class ProgramInfoBody(BaseModel):
    """One program. `since` is when its state began, `memory` is in bytes, `next_start_in` in seconds."""

    name: str
    state: ProgramState
    required: bool
    pid: int | None
    since: Moment
    restarts: int
    memory: int | None
    last_error: str | None
    next_start_in: float | None
    can_restart: bool


class ServedPortBody(BaseModel):
    name: str
    host: str
    port: int


class ManifestAdviceBody(BaseModel):
    """A warning about freehold.toml. It does not prevent a start."""

    code: str
    message: str
    hint: str


class SleepStateBody(BaseModel):
    """The sleep of the computer. `after`, `seconds` (asleep since its start) in seconds, `given_back` in bytes."""

    after: float
    asleep: bool
    since: Moment | None
    given_back: int | None
    times: int
    seconds: float
    trouble: str | None


class MountStateBody(BaseModel):
    """One mount of the computer. History covers none. `words` say what is wrong, or nothing."""

    kind: str
    source: str
    target: str
    writable: bool
    state: Literal["starting", "ready", "failing", "down"]
    words: str


class SecurityExceptionBody(BaseModel):
    """A protection that the manifest lowers. `adds` is everything that it adds to the computer, in sentences."""

    name: str
    reason: str
    until: str | None
    why: str
    adds: list[str]


class ProgramsStateBody(BaseModel):
    """All programs, and the isolation of the computer. `usage` is its present use; null means not measurable.

    `sleep` is null for a computer that never sleeps.
    """

    version: str
    home: str
    ready: bool
    since: str | None
    missing: list[str]
    programs: list[ProgramInfoBody]
    ports: list[ServedPortBody]
    isolation: IsolationFactsBody | None
    usage: dict[str, float | None] | None
    sleep: SleepStateBody | None
    limits: dict[str, float]
    mounts: list[MountStateBody]
    exceptions: list[SecurityExceptionBody]
    advice: list[ManifestAdviceBody]


class RestartStartedBody(BaseModel):
    """`begun` is false for the gateway itself: it answers before it restarts."""

    name: str
    begun: bool
    state: ProgramState | None


class ProgramRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/programs", scope="read")
    async def list_programs(self) -> ProgramsStateBody:
        """All programs with restarts and memory, the ports, and the isolation of the computer."""
        status = await self._services.keeper.call(GetKeeperStatus())
        rows = [_describe_program(program) for program in status.programs]
        own = ProgramInfoBody(
            name=KEEPER,
            state="ready",
            required=True,
            pid=status.keeper.pid,
            since=to_moment(status.keeper.since),
            restarts=0,
            memory=status.keeper.memory,
            last_error=status.timeline_trouble,
            next_start_in=None,
            can_restart=False,
        )
        return ProgramsStateBody(
            version=__version__,
            home=status.home,
            ready=status.ready,
            since=status.since,
            missing=list(status.missing),
            programs=[own, *rows],
            ports=[ServedPortBody.model_validate(encode(port)) for port in status.ports],
            isolation=None if status.isolation is None else IsolationFactsBody.model_validate(encode(status.isolation)),
            usage=None if status.usage is None else vars(status.usage),
            sleep=None if status.sleep is None else SleepStateBody.model_validate(encode(status.sleep)),
            limits=self._services.manifest.computer.limits.model_dump(),
            mounts=[MountStateBody.model_validate(encode(mount)) for mount in status.mounts],
            exceptions=[SecurityExceptionBody.model_validate(encode(one)) for one in status.exceptions],
            advice=[ManifestAdviceBody.model_validate(encode(one)) for one in status.advice],
        )

    @post("/v1/programs/{name}/restart", scope="admin")
    async def restart_program(self, name: UrlName, request: Request) -> RestartStartedBody:
        """Stop a program in order and start it again. Answers when it has started."""
        call = RestartProgram(name, principal_of(request.scope).who)
        if name == KEEPER:
            raise FreeholdError(
                "program.permission",
                "The keeper cannot be restarted from here, because all other programs would end with it",
                hint="On the machine: freehold down, then freehold up",
            )
        if name == GATEWAY:
            await self._services.keeper.send(call)
            return RestartStartedBody(name=name, begun=False, state=None)
        try:
            found = await self._services.keeper.call(call, timeout=RESTART_TIMEOUT)
        except FreeholdError as error:
            if error.code == "keeper.no-such-program":
                raise FreeholdError("program.not-found", error.message, hint=error.hint) from None
            raise
        return RestartStartedBody(name=name, begun=True, state=found.state)


def _describe_program(program: ProgramStatus) -> ProgramInfoBody:
    known = {name: value for name, value in vars(program).items() if name in ProgramInfoBody.model_fields}
    return ProgramInfoBody(**known, can_restart=True)
