"""What a client tells its host about itself, and nothing more."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from freehold import __version__
from freehold.gateway.services import Services


@dataclass(frozen=True)
class ClientFacts:
    """`image` is the digest of the lock of its image; None when it uses the system of its machine.

    `contracts` are the versions of its slots, `load` the load of its machine for each processor, and `capabilities` what
    works there: some of `slots`, `work` and `relay`.
    """

    version: str
    image: str | None
    contracts: Mapping[str, int]
    capabilities: tuple[str, ...]
    load: float
    health: str = "ok"


def read_facts(services: Services, is_relay: bool, health: str) -> ClientFacts:
    """Of this Freehold. Blocks."""
    lock = services.home.image_lock
    slots = services.slots.list()
    working = {slot.name: slot for slot in slots if slot.status.state == "ok"}
    orchestrator = working.pop("orchestrator", None)
    takes_work = orchestrator is not None and orchestrator.implementation == "local"
    able = {"slots": bool(working), "work": takes_work, "relay": is_relay}
    capabilities = tuple(name for name, is_able in able.items() if is_able)
    image = hashlib.sha256(lock.read_bytes()).hexdigest() if lock.is_file() else None
    contracts: dict[str, int] = {slot.name: slot.contract.version for slot in slots if slot.contract.calls}
    load = round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
    return ClientFacts(__version__, image, contracts, capabilities, load, health)
