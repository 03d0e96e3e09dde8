"""Liveness, readiness, health and version: `/livez`, `/ready`, `/health`, `/v1/meta`."""

import time
from typing import Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field

from freehold import __version__
from freehold.features import list_features
from freehold.gateway.context import RouteContext
from freehold.gateway.health import find_seal
from freehold.gateway.principal import Principal, principal_of
from freehold.gateway.routing import get
from freehold.observe.probes import ComponentState
from freehold.slots.host import read_section

ANONYMOUS_PROBE_INTERVAL = 1.0


class AliveBody(BaseModel):
    alive: Literal[True] = True


class MissingRequirementBody(BaseModel):
    """One reason why Freehold is not ready."""

    name: str
    state: Literal["absent", "degraded", "failed", "off", "starting"]
    reason: str | None = Field(description="The error; shown only to the owner.")


class ReadinessBody(BaseModel):
    """Whether Freehold is ready, since when, and if not, why."""

    ready: bool
    since: str | None = None
    requirements: list[str] = []
    missing: list[MissingRequirementBody] = []


class PartHealthBody(BaseModel):
    """One of the things of which a component has several, as a relay of the mesh."""

    name: str
    state: Literal["ok", "degraded", "failed", "off", "starting"]
    seen: str | None = Field(description="When it was last connected, or well in another way.")
    error: str | None


class ComponentHealthBody(BaseModel):
    """The last state of one component. Errors and parts are shown only to the owner."""

    name: str
    state: Literal["ok", "degraded", "failed", "off", "starting"]
    since: str
    last_error: str | None
    required: bool
    parts: list[PartHealthBody] = []


class HealthReportBody(BaseModel):
    ready: bool
    components: list[ComponentHealthBody]


class FeaturePageBody(BaseModel):
    """A page of the control center that belongs to a feature."""

    path: str
    title: str


class FeatureBody(BaseModel):
    """A feature of this Freehold."""

    name: str
    title: str
    pages: list[FeaturePageBody]


class MetaBody(BaseModel):
    """Version and configuration of this Freehold."""

    version: str
    manifest_checksum: str
    slots: dict[str, str]
    slot_contracts: dict[str, int] = Field(
        description="The version of the contract of each slot that this version has."
    )
    features: list[FeatureBody]
    metrics: str


class ProbeRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._publisher = context.publisher
        self._last_anonymous_probe = float("-inf")

    async def _probe(self, principal: Principal) -> tuple[ComponentState, ...]:
        """Probe every component. Callers without a credential share one probe a second, so that they cannot cause load."""
        now = time.monotonic()
        if not principal.has_scope("read"):
            if now - self._last_anonymous_probe < ANONYMOUS_PROBE_INTERVAL:
                return self._publisher.health.states
            self._last_anonymous_probe = now
        return await self._publisher.health.probe()

    async def _readiness(self, principal: Principal) -> ReadinessBody:
        seal = find_seal(self._services.home)
        missing = [
            MissingRequirementBody(name=state.name, state=state.state, reason=state.last_error)
            for state in await self._probe(principal)
            if state.required and state.state != "ok"
        ]
        if seal is None:
            missing.insert(
                0,
                MissingRequirementBody(
                    name="seal", state="absent", reason="A required program does not answer the keeper"
                ),
            )
        if missing or seal is None:
            return ReadinessBody(ready=False, missing=missing)
        return ReadinessBody(ready=True, since=seal.since, requirements=list(seal.requirements))

    @get("/livez", scope="anyone")
    async def livez(self) -> AliveBody:
        """200 while the gateway runs. No other program is asked."""
        return AliveBody()

    @get("/ready", responses={503: {"model": ReadinessBody}}, scope="anyone")
    async def ready(self, request: Request, response: Response) -> ReadinessBody:
        """200 when every required program and component answers; otherwise 503 with each reason."""
        principal = principal_of(request.scope)
        found = await self._readiness(principal)
        response.status_code = 200 if found.ready else 503
        if not principal.has_scope("read"):
            hidden = [cause.model_copy(update={"reason": None}) for cause in found.missing]
            return found.model_copy(update={"missing": hidden})
        return found

    @get("/health", scope="anyone")
    async def health(self, request: Request) -> HealthReportBody:
        """All components and slots with their state and last error."""
        principal = principal_of(request.scope)
        states = await self._probe(principal)
        rows = [ComponentHealthBody.model_validate(state.as_json()) for state in states]
        if not principal.has_scope("read"):
            rows = [row.model_copy(update={"last_error": None, "parts": []}) for row in rows]
        is_ready = find_seal(self._services.home) is not None and not self._publisher.health.not_ready
        return HealthReportBody(ready=is_ready, components=rows)

    @get("/v1/meta", scope="read")
    async def meta(self) -> MetaBody:
        """Version, checksum of the manifest, the mode of each slot, and the features with their pages."""
        observe = self._services.manifest.observe
        slots = self._services.slots.list()
        return MetaBody(
            version=__version__,
            manifest_checksum=self._services.loaded.checksum,
            slots={slot.name: read_section(self._services.manifest, slot.name).mode for slot in slots},
            slot_contracts={slot.name: slot.contract.version for slot in slots if slot.contract.calls},
            features=[
                FeatureBody(
                    name=feature.name,
                    title=feature.title,
                    pages=[FeaturePageBody(path=page.path, title=page.title) for page in feature.pages],
                )
                for feature in list_features()
            ],
            metrics=f"http://{observe.metrics_host}:{observe.metrics_port}/metrics",
        )
