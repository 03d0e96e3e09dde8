"""What a node says on its control connection, as types. A node that was taken over can say anything there."""

from dataclasses import dataclass
from typing import Any, Literal

from freehold.computer.contract.report import LimitEvent
from freehold.errors import FreeholdError
from freehold.fleet.remote_spec import ReportedIsolation, decode_reported
from freehold.fleet.wire import read_error


@dataclass(frozen=True)
class NodeHello:
    """The first message. `ended` are the computers of `computers` that have ended, with their exit codes."""

    computers: tuple[str, ...]
    versions: dict[str, str]
    ended: dict[str, int]


@dataclass(frozen=True)
class NodePong:
    pong: Literal[True]


@dataclass(frozen=True)
class NodeReply:
    id: int
    result: object


@dataclass(frozen=True)
class NodeRefusal:
    id: int
    error: object


@dataclass(frozen=True)
class ComputerEnded:
    notice: Literal["ended"]
    computer: str
    code: int


@dataclass(frozen=True)
class ComputerWords:
    notice: Literal["words"]
    computer: str
    words: str


@dataclass(frozen=True)
class ComputerEvent:
    notice: Literal["event"]
    computer: str
    event: LimitEvent


@dataclass(frozen=True)
class PreparedRoom:
    """The reply to `prepare`: the digests of folders that must be sent."""

    missing: tuple[str, ...]


@dataclass(frozen=True)
class StartedThere:
    """The reply to `start`."""

    isolation: ReportedIsolation
    pid: int | None


@dataclass(frozen=True)
class StoppedThere:
    """The reply to `stop`."""

    code: int


NodeNotice = ComputerEnded | ComputerWords | ComputerEvent
NodeMessage = NodePong | NodeReply | NodeRefusal | NodeNotice


def read_hello(message: dict[str, Any]) -> NodeHello:
    """Raises `fleet.bad-message`, and the error that a node says instead."""
    if "error" in message:
        raise read_error(message["error"])
    found: NodeHello = decode_reported(NodeHello, message)
    return found


def read_node_message(message: dict[str, Any]) -> NodeMessage:
    """Raises `fleet.bad-message`."""
    if "id" not in message and "notice" not in message and "pong" not in message:
        raise FreeholdError("fleet.bad-message", "A node sent a message that is neither a reply nor a notice")
    found: NodeMessage = decode_reported(NodeMessage, message)
    return found
