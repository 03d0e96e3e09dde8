"""Every escape attempt of `freehold doctor`, on every node of a fleet."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from freehold.agents.visible_text import make_visible
from freehold.computer.escapes import Verdict
from freehold.errors import FreeholdError
from freehold.fleet.fleet_client import ask_fleet
from freehold.fleet.place import SOCKET
from freehold.fleet.status import FleetStatus
from freehold.home import Home
from freehold.strict_json import WrongShape, decode


@dataclass(frozen=True)
class NodeExamination:
    """What was seen on a node. It says so itself: one that was taken over can say anything. `trouble` is why it did not."""

    node: str
    attempts: tuple[Verdict, ...]
    trouble: str

    @property
    def ok(self) -> bool:
        return bool(self.attempts) and all(one.outcome == "refused" for one in self.attempts)


@dataclass(frozen=True)
class _Answer:
    attempts: tuple[Verdict, ...]


def examine_nodes(home: Home, *, quick: bool) -> Iterator[NodeExamination]:
    """One node after the other. Raises `fleet.not-running` and `fleet.none-configured`."""
    path = home.run / SOCKET
    nodes = decode(FleetStatus, asyncio.run(ask_fleet(path, "status"))).nodes
    if not nodes:
        raise FreeholdError(
            "fleet.none-configured", "No machine has joined the fleet", hint="Make a code: freehold fleet up"
        )
    for node in nodes:
        try:
            found = decode(_Answer, asyncio.run(ask_fleet(path, "escapes", node=node.name, quick=quick)))
        except FreeholdError as error:
            yield NodeExamination(node.name, (), error.message)
        except WrongShape:
            yield NodeExamination(node.name, (), "Its answer is not a list of attempts")
        else:
            yield NodeExamination(node.name, tuple(_make_printable(one) for one in found.attempts), "")


def _make_printable(one: Verdict) -> Verdict:
    name, claim, seen = (make_visible(words, lines=False) for words in (one.name, one.claim, one.seen))
    return Verdict(name, claim, one.outcome, seen)
