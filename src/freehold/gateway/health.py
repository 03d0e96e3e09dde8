"""What the gateway asks to know whether the house is well. Nothing is healthy because it was configured."""

import asyncio
from typing import Any

from freehold.errors import FreeholdError
from freehold.gateway.house import House
from freehold.home import Home
from freehold.keeper.seal import Seal, read_seal
from freehold.observe.probes import Answer, Changed, Component, Health, Probe

SLOTS = ("beads", "pods", "memory", "events", "orchestrator")


def find_seal(home: Home) -> Seal | None:
    """The keeper's word that every required program has answered; an unreadable one is none."""
    try:
        return read_seal(home)
    except FreeholdError:
        return None


def watch_health(house: House, changed: Changed) -> Health:
    async def timeline() -> None:
        await asyncio.to_thread(house.timeline.last)

    async def keeper() -> Answer | None:
        """Answers, and has every program it needs; the others are components of their own."""
        lost = [program["name"] for program in await programs(house) if program["required"] and _is_lost(program)]
        return Answer("degraded", f"not ready: {', '.join(lost)}") if lost else None

    async def history() -> Answer | None:
        """The seal asks for it; here the owner sees how it is. What is degraded still takes and undoes."""
        status = await house.keeper.call("history.status")
        if status["interrupted"] is not None:
            return Answer("degraded", f"{status['interrupted']['kind']} was interrupted; freehold history recover")
        return Answer("degraded", status["degraded"]) if status["degraded"] else None

    async def ssh() -> Answer | None:
        if not house.manifest.ssh.enabled:
            return Answer("off")
        for program in await programs(house):
            if program["name"] == "ssh" and program["state"] != "starting":
                return Answer("failed", program["last_error"] or program["state"]) if _is_lost(program) else None
        return Answer("starting")

    components = [
        Component("timeline", timeline),
        Component("keeper", keeper),
        Component("history", history, required=False),
        Component("computer", house.sealed.probe_computer),
        Component("egress", house.sealed.probe_egress, required=False),
        Component("ssh", ssh, required=False),
        *(Component(f"slot.{name}", _slot(house, name), required=_required(house, name)) for name in SLOTS),
    ]
    return Health(components, on_change=changed)


async def programs(house: House) -> list[dict[str, Any]]:
    """What the keeper says of every program but this one: while it still waits for us, that is no trouble."""
    status = await house.keeper.call("status")
    return [program for program in status["programs"] if program["name"] != "gateway"]


def _is_lost(program: dict[str, Any]) -> bool:
    return bool(program["state"] != "ready")


def _required(house: House, name: str) -> bool:
    return bool(getattr(house.manifest.slots, name).required)


def _slot(house: House, name: str) -> Probe:
    async def probe() -> Answer | None:
        mode = getattr(house.manifest.slots, name).mode
        if mode == "off":
            return Answer("off")
        raise FreeholdError("slot.not-built", f"slots.{name} is {mode}, and this version has no {name} slot")

    return probe
