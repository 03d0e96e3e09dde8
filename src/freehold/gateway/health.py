"""The health components of the gateway. Every state comes from a probe, never from the configuration."""

import asyncio
from collections.abc import Callable

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.features import Feature, list_features, load_reference
from freehold.gateway.feature_work import has_work
from freehold.gateway.services import Services
from freehold.history.calls import GetHistoryStatus
from freehold.home import Home
from freehold.keeper.calls import GetKeeperStatus, ProgramStatus
from freehold.keeper.seal import Seal, read_seal
from freehold.observe.probes import ComponentProbe, HealthMonitor, Probe, ProbeResult, StateChangeHandler
from freehold.slots.host import read_section

SLOT_TIMEOUT = 8.0
"""Seconds. An external slot gives up by itself before this, and says why."""


def find_seal(home: Home) -> Seal | None:
    """The keeper's seal; None when it is missing or cannot be read."""
    try:
        return read_seal(home)
    except FreeholdError:
        return None


def make_health_monitor(services: Services, changed: StateChangeHandler) -> HealthMonitor:
    async def timeline() -> None:
        await asyncio.to_thread(services.timeline.last)

    async def keeper() -> ProbeResult | None:
        """The keeper answers, and every required program is ready. Optional programs are components of their own."""
        not_ready = [
            program.name for program in await list_programs(services) if program.required and _is_not_ready(program)
        ]
        return ProbeResult("degraded", f"not ready: {', '.join(not_ready)}") if not_ready else None

    async def disk() -> ProbeResult | None:
        """A full disk stops neither sign-in nor undo, so it does not hold back readiness here."""
        found = (await services.keeper.call(GetKeeperStatus())).disk
        return (
            None if found.state == "ok" else ProbeResult("failed" if found.state == "full" else "degraded", found.words)
        )

    async def history() -> ProbeResult | None:
        """A degraded history still records and undoes, so it does not hold back readiness here."""
        status = await services.keeper.call(GetHistoryStatus())
        if status.interrupted is not None:
            return ProbeResult("degraded", f"{status.interrupted.kind} was interrupted. Run: freehold history recover")
        return ProbeResult("degraded", status.degraded) if status.degraded else None

    components = [
        ComponentProbe("timeline", timeline),
        ComponentProbe("keeper", keeper),
        ComponentProbe("history", history, required=False),
        ComponentProbe("disk", disk, required=False),
        ComponentProbe("computer", services.computer_access.probe_computer),
        ComponentProbe("egress", services.computer_access.probe_egress, required=False),
        *(
            ComponentProbe(feature.name, _make_probe(feature, services), required=_is_required(services, feature.name))
            for feature in list_features()
            if feature.health is not None
        ),
        *(
            ComponentProbe(
                f"slot.{slot.name}",
                slot.probe,
                required=read_section(services.manifest, slot.name).required,
                timeout=SLOT_TIMEOUT,
            )
            for slot in services.slots.list()
            if slot.implementation != "off"
        ),
    ]
    return HealthMonitor(components, on_change=changed)


def _make_probe(feature: Feature, services: Services) -> Probe:
    """Loaded at once, or when the feature has something to do."""
    assert feature.health is not None  # the others have no component
    reference = feature.health
    make: Callable[[Services], Probe]
    if feature.work is None:
        make = load_reference(reference)
        return make(services)
    probe: Probe | None = None

    async def probe_later() -> ProbeResult | None:
        nonlocal probe
        if probe is None:
            if not await run_blocking(has_work, feature, services):
                return ProbeResult("off")
            make = load_reference(reference)
            probe = make(services)
        return await probe()

    return probe_later


def _is_required(services: Services, feature: str) -> bool:
    """A feature holds back readiness only when its section of the manifest says so."""
    return bool(getattr(getattr(services.manifest, feature), "required", False))


async def list_programs(services: Services) -> list[ProgramStatus]:
    """The status of every program but the gateway, which the keeper may still be waiting for."""
    status = await services.keeper.call(GetKeeperStatus())
    return [program for program in status.programs if program.name != "gateway"]


async def probe_program(services: Services, name: str) -> ProbeResult | None:
    """The state of a program that the keeper runs for a feature."""
    for program in await list_programs(services):
        if program.name == name and program.state != "starting":
            return ProbeResult("failed", program.last_error or program.state) if _is_not_ready(program) else None
    return ProbeResult("starting")


def _is_not_ready(program: ProgramStatus) -> bool:
    return program.state not in ("ready", "idle")
