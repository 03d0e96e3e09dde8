"""`/livez`, `/ready`, `/health`, `/v1/meta`: what machines and people ask to know whether all is well."""

import time
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Field

from freehold import __version__
from freehold.gateway.feeds import Feeds
from freehold.gateway.guard import Principal, principal_of
from freehold.gateway.health import SLOTS, find_seal
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.observe.probes import ComponentState

STALE = 1.0


class Alive(BaseModel):
    alive: Literal[True] = True


class Missing(BaseModel):
    """One cause that holds back readiness."""

    name: str
    state: Literal["absent", "degraded", "failed", "off", "starting"]
    reason: str | None = Field(description="What went wrong; told only to the owner.")


class Readiness(BaseModel):
    """Whether Freehold is ready, since when, and if not, for want of what."""

    ready: bool
    since: str | None = None
    requirements: list[str] = []
    missing: list[Missing] = []


class ComponentRow(BaseModel):
    """One component, as it last answered. What went wrong is told only to the owner."""

    name: str
    state: Literal["ok", "degraded", "failed", "off", "starting"]
    since: str
    last_error: str | None
    required: bool


class HealthReport(BaseModel):
    ready: bool
    components: list[ComponentRow]


class Meta(BaseModel):
    """What this Freehold is."""

    version: str
    manifest_checksum: str
    slots: dict[str, str]
    metrics: str


def add_probes(app: FastAPI, house: House, feeds: Feeds) -> None:
    asked = float("-inf")

    async def look(principal: Principal) -> tuple[ComponentState, ...]:
        """What every component answers now; strangers share an answer a second old, so that they cannot keep us busy."""
        nonlocal asked
        now = time.monotonic()
        if not principal.may("read"):
            if now - asked < STALE:
                return feeds.health.states
            asked = now
        return await feeds.health.ask()

    async def readiness(principal: Principal) -> Readiness:
        seal = find_seal(house.home)
        missing = [
            Missing(name=state.name, state=state.state, reason=state.last_error)
            for state in await look(principal)
            if state.required and state.state != "ok"
        ]
        if seal is None:
            missing.insert(
                0, Missing(name="seal", state="absent", reason="A required program has not answered the keeper")
            )
        if missing or seal is None:
            return Readiness(ready=False, missing=missing)
        return Readiness(ready=True, since=seal.since, requirements=list(seal.requirements))

    @app.get("/livez")
    @needs("anyone")
    async def livez() -> Alive:
        """The gateway runs. Asks nothing of anybody else."""
        return Alive()

    @app.get("/ready", responses={503: {"model": Readiness}})
    @needs("anyone")
    async def ready(request: Request, response: Response) -> Readiness:
        """200 when sealed and every required component answers; 503 naming each cause otherwise."""
        principal = principal_of(request.scope)
        found = await readiness(principal)
        response.status_code = 200 if found.ready else 503
        if not principal.may("read"):
            hidden = [cause.model_copy(update={"reason": None}) for cause in found.missing]
            return found.model_copy(update={"missing": hidden})
        return found

    @app.get("/health")
    @needs("anyone")
    async def health(request: Request) -> HealthReport:
        """Every component and slot with its state, since when, and its last error."""
        principal = principal_of(request.scope)
        states = await look(principal)
        rows = [ComponentRow.model_validate(state.as_json()) for state in states]
        if not principal.may("read"):
            rows = [row.model_copy(update={"last_error": None}) for row in rows]
        is_ready = find_seal(house.home) is not None and not feeds.health.missing
        return HealthReport(ready=is_ready, components=rows)

    @app.get("/v1/meta")
    @needs("read")
    async def meta() -> Meta:
        """Version, manifest and what fills each slot."""
        observe = house.manifest.observe
        slots: dict[str, Any] = {name: getattr(house.manifest.slots, name).mode for name in SLOTS}
        return Meta(
            version=__version__,
            manifest_checksum=house.loaded.checksum,
            slots=slots,
            metrics=f"http://{observe.metrics_host}:{observe.metrics_port}/metrics",
        )
