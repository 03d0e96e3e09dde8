"""The health component of the mesh. A relay or a host that is away is said here, and stops nothing."""

import asyncio
import sqlite3
import sys
from importlib.util import find_spec

from freehold.gateway.moments import to_moment
from freehold.gateway.services import Services
from freehold.mesh.section import MeshSection
from freehold.observe.probes import PartState, Probe, ProbeResult
from freehold.timeline import Timeline


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        section = services.manifest.section(MeshSection)
        if not section.enabled:
            return ProbeResult("off")
        if find_spec("coincurve") is None:
            command = f"{sys.executable} -m pip install 'freehold[mesh]'"
            return ProbeResult("failed", f"the library for its keys is not installed: {command}")
        return await asyncio.to_thread(_look, services.timeline, section)

    return probe


def _look(timeline: Timeline, section: MeshSection) -> ProbeResult:
    """Each relay and the host of the manifest. What cannot be reached is named with the reason."""
    try:
        relays = {row[0]: row[1:] for row in timeline.query("SELECT url, state, error, seen FROM mesh_relay")}
        hosts = {row[0]: row[1:] for row in timeline.query("SELECT host, state, error FROM mesh_registration")}
    except sqlite3.OperationalError:
        return ProbeResult("degraded", "the mesh has not started")
    parts = tuple(_show_relay(url, *relays.get(url, ("away", "not connected yet", None))) for url in section.relays)
    away = [f"{one.name}: {one.error}" for one in parts if one.state != "ok"]
    if section.mode == "client":
        state, error = hosts.get(section.host, ("waiting", None))
        if state != "registered":
            away.append(f"{section.host}: {error or state}")
    return ProbeResult("degraded", "; ".join(away), parts) if away else ProbeResult("ok", None, parts)


def _show_relay(url: str, state: str, error: str | None, seen: float | None) -> PartState:
    at = None if seen is None else to_moment(seen)
    is_well = state == "ok" and error is None
    return PartState(url, "ok", at, None) if is_well else PartState(url, "degraded", at, error or state)
