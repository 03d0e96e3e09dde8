"""What Ray's sandbox says to the head, as types. Whoever has Ray's token can say anything there."""

import json
from dataclasses import dataclass
from typing import Literal

from freehold.errors import FreeholdError
from freehold.strict_json import WrongShape, decode

MAX_AMOUNT = 2.0**62


@dataclass(frozen=True)
class RayStarted:
    """It can be asked now."""

    ready: Literal[True]


@dataclass(frozen=True)
class RoomFound:
    """There is room for the computer `placed` on `node`. `number` is that of the request."""

    placed: str
    number: int
    node: str


@dataclass(frozen=True)
class MachinesAsked:
    """Something that Ray's autoscaler, or a task that stands for it, asks for."""

    asked: object
    number: int


@dataclass(frozen=True)
class NodesSeen:
    """Each row is a name and six amounts, which a node has chosen itself."""

    nodes: list[object]


RayAnswer = RayStarted | RoomFound | MachinesAsked | NodesSeen


def read_answer(line: bytes) -> RayAnswer:
    """One line. Raises `fleet.bad-message`."""
    try:
        found: RayAnswer = decode(RayAnswer, json.loads(line))  # type: ignore[arg-type]  # a union is a type here
    except (ValueError, RecursionError) as error:
        raise FreeholdError("fleet.bad-message", "It said something that is no answer, and is started again") from error
    return found


def read_amounts(row: object) -> tuple[str, list[float]] | None:
    """The name of a node and what it has. None for a row that is not valid: one node must not end Ray for all."""
    if not isinstance(row, list) or len(row) != 7 or not isinstance(row[0], str):
        return None
    amounts = row[1:]
    if any(type(one) not in (int, float) or not 0 <= one <= MAX_AMOUNT for one in amounts):
        return None
    return row[0], [float(one) for one in amounts]


@dataclass(frozen=True)
class ListMachines:
    do: Literal["list"]


@dataclass(frozen=True)
class LaunchMachines:
    """`request` is how Ray recognises what it has asked for."""

    do: Literal["launch"]
    kind: str
    count: int
    request: str


@dataclass(frozen=True)
class TerminateMachine:
    do: Literal["terminate"]
    name: str


MachineRequest = ListMachines | LaunchMachines | TerminateMachine


def read_machine_request(body: object) -> MachineRequest:
    """Raises `fleet.bad-message`."""
    try:
        found: MachineRequest = decode(MachineRequest, body)  # type: ignore[arg-type]  # a union is a type here
    except WrongShape as error:
        raise FreeholdError("fleet.bad-message", "Ray asks for something that is no request about machines") from error
    return found
