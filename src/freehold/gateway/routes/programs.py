"""What the keeper keeps running, and starting one of them anew."""

from typing import Annotated, Any

from fastapi import FastAPI, Path, Request
from pydantic import BaseModel

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.gateway.routes.doctor import IsolationFacts
from freehold.keeper.kept import State

# A program may take long to end in good order and to answer again.
RESTART_PATIENCE = 90.0
OURSELVES = "gateway"
KEEPER = "keeper"


class ProgramRow(BaseModel):
    """One program. `since` is when it came into its state, `memory` in bytes, `next_start_in` seconds to its next try."""

    name: str
    state: State
    required: bool
    pid: int | None
    since: float
    restarts: int
    memory: int | None
    last_error: str | None
    next_start_in: float | None
    can_restart: bool


class Port(BaseModel):
    name: str
    host: str
    port: int


class AdviceRow(BaseModel):
    """Something in freehold.toml that stops nothing and may be better otherwise."""

    code: str
    message: str
    hint: str


class ProgramsState(BaseModel):
    """Every program, and what holds the computer. `usage` is what it uses now; null is what cannot be told."""

    version: str
    home: str
    ready: bool
    since: str | None
    missing: list[str]
    programs: list[ProgramRow]
    ports: list[Port]
    isolation: IsolationFacts | None
    usage: dict[str, float | None] | None
    limits: dict[str, float]
    advice: list[AdviceRow]


class RestartAsked(BaseModel):
    """`begun` is false when this very gateway is restarted: the answer comes before it."""

    name: str
    begun: bool
    state: State | None


def add_programs(app: FastAPI, house: House) -> None:
    @app.get("/v1/programs")
    @needs("read")
    async def list_programs() -> ProgramsState:
        """What runs: programs with their restarts and memory, ports, and what holds the computer."""
        status: dict[str, Any] = await house.keeper.call("status")
        keeper = status["keeper"]
        rows = [ProgramRow.model_validate({**_known(program), "can_restart": True}) for program in status["programs"]]
        own = ProgramRow(
            name=KEEPER,
            state="ready",
            required=True,
            pid=keeper["pid"],
            since=keeper["since"],
            restarts=0,
            memory=keeper["memory"],
            last_error=status["timeline_trouble"],
            next_start_in=None,
            can_restart=False,
        )
        return ProgramsState(
            version=__version__,
            home=status["home"],
            ready=status["ready"],
            since=status["since"],
            missing=status["missing"],
            programs=[own, *rows],
            ports=[Port.model_validate(port) for port in status["ports"]],
            isolation=None if status["isolation"] is None else IsolationFacts.model_validate(status["isolation"]),
            usage=status["usage"],
            limits=house.manifest.computer.limits.model_dump(),
            advice=[AdviceRow.model_validate(one) for one in status["advice"]],
        )

    @app.post("/v1/programs/{name}/restart")
    @needs("admin")
    async def restart_program(name: Annotated[str, Path(max_length=100)], request: Request) -> RestartAsked:
        """End a program in good order and start it again; answers when it has begun anew."""
        asked = {"program": name, "who": principal_of(request.scope).who}
        if name == KEEPER:
            raise FreeholdError(
                "program.permission",
                "The keeper is never restarted from here: everything else would end with it",
                hint="On the machine: freehold down, then freehold up",
            )
        if name == OURSELVES:
            await house.keeper.tell("restart", asked)
            return RestartAsked(name=name, begun=False, state=None)
        try:
            found = await house.keeper.call("restart", asked, timeout=RESTART_PATIENCE)
        except FreeholdError as error:
            if error.code == "keeper.no-such-program":
                raise FreeholdError("program.not-found", error.message, hint=error.hint) from None
            raise
        return RestartAsked(name=name, begun=True, state=found["state"])


def _known(program: dict[str, Any]) -> dict[str, Any]:
    return {name: program[name] for name in ProgramRow.model_fields if name in program}
