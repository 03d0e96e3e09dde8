"""The host's side of an attachment: waits for a computer, judges its walls, and hands over what makes it a guest.

The folder of the link is shared with the computer, which sees it read-only. It holds the first program of the computer,
the guest and, until a computer has attached, one socket. The computer gets the listening socket of the link by that: no
path inside leads to the host afterwards.
"""

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.attached import start_program
from freehold.computer.attached.seal import find_missing_walls
from freehold.computer.attached.wall_report import WallReport, parse_status
from freehold.computer.contract.conventions import BASE_ENVIRONMENT, RESERVED_PORTS
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls.seccomp import compile_filters
from freehold.errors import FreeholdError
from freehold.strict_json import WrongShape, decode

PROGRAM, GUEST, SOCKET = "start.py", "guest.pyz", "handover"
ATTACH_TIMEOUT = 30.0
REPLY_TIMEOUT = 20.0
SETTLE_SECONDS = 1.0
"""A process of a computer that is just ending cannot hold a connection for so long: its pid 1 ends with its host."""
MAX_REPORT = 4 << 20
POLL_SECONDS = 0.2
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class AttachmentOrder:
    """What a computer must be, and what it gets. `listener` is the socket on which the guest accepts links."""

    spec: ComputerSpec
    listener: socket.socket
    guest: Path
    folder: Path
    uid: int


@dataclass(frozen=True)
class AttachedGuest:
    """The host's ends: `control` ends with the guest, and asks it to end; `errors` is its standard error."""

    control: socket.socket
    errors: int
    report: WallReport

    def close(self) -> None:
        self.control.close()
        os.close(self.errors)


def attach_computer(order: AttachmentOrder, is_cancelled: Callable[[], bool]) -> AttachedGuest:
    """Wait for a computer and make it the guest. Blocking. Raises `computer.no-isolation`."""
    _write_folder(order)
    with _listen(order.folder / SOCKET) as listener:
        deadline = time.monotonic() + ATTACH_TIMEOUT
        while True:
            connection = _accept(listener, deadline, is_cancelled)
            with connection:
                if _is_steady(connection):
                    return _admit(connection, order)


def _write_folder(order: AttachmentOrder) -> None:
    """The program and the guest, complete or not at all: a computer may be waiting for them."""
    try:
        _replace(order.folder / GUEST, order.guest.read_bytes())
        _replace(order.folder / PROGRAM, Path(start_program.__file__).read_bytes())
    except OSError as error:
        raise FreeholdError(
            "computer.no-isolation",
            f"The folder of the link, {order.folder}, cannot be written: {error.strerror}",
            hint="It is a volume that Freehold and the computer share: freehold deploy compose writes such a file",
        ) from error


def _replace(path: Path, content: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    draft.write_bytes(content)
    draft.chmod(0o444)
    draft.replace(path)


@contextlib.contextmanager
def _listen(path: Path) -> Iterator[socket.socket]:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o666)  # its peer is checked
        listener.listen(4)
        yield listener
    finally:
        listener.close()
        path.unlink(missing_ok=True)


def _accept(listener: socket.socket, deadline: float, is_cancelled: Callable[[], bool]) -> socket.socket:
    while not select.select([listener], [], [], POLL_SECONDS)[0]:
        if is_cancelled():
            raise FreeholdError("computer.ended", "The start was cancelled")
        if time.monotonic() > deadline:
            raise FreeholdError(
                "computer.no-isolation",
                f"No computer has attached within {ATTACH_TIMEOUT:.0f} s",
                hint="Look at its container: docker compose ps, docker compose logs computer",
            )
    return listener.accept()[0]


def _is_steady(connection: socket.socket) -> bool:
    """Whether its other end still exists after a while. What it has sent is not read."""
    poll = select.poll()
    poll.register(connection, 0)  # only the end is reported
    return not poll.poll(SETTLE_SECONDS * 1000)


def _admit(connection: socket.socket, order: AttachmentOrder) -> AttachedGuest:
    connection.settimeout(REPLY_TIMEOUT)
    peer = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    try:
        report = decode(WallReport, _receive(connection))
        missing = find_missing_walls(report, order.spec, order.uid, order.folder)
        if peer[1] != order.uid:
            missing.insert(0, f"the user {peer[1]} has connected and not {order.uid} (user)")
        if missing:
            _send(connection, {"refused": missing})
            raise FreeholdError(
                "computer.no-isolation",
                f"The attached computer is not sealed: {'; '.join(missing)[:2000]}",
                hint="Write the file again with freehold deploy compose, and start it: docker compose up -d",
            )
        return _hand_over(connection, order, report)
    except (OSError, ValueError, WrongShape) as error:
        raise FreeholdError(
            "computer.no-isolation",
            f"The computer attached and then said something else than was expected: {error}",
            hint="Look at its container: docker compose logs computer",
        ) from error


def _hand_over(connection: socket.socket, order: AttachmentOrder, report: WallReport) -> AttachedGuest:
    filters = compile_filters()
    errors, errors_inside = os.pipe2(os.O_CLOEXEC)
    control, control_inside = socket.socketpair()
    guest = AttachedGuest(control, errors, report)
    try:
        with os.fdopen(errors_inside, "wb", buffering=0), control_inside:
            answer = {
                "environment": {**BASE_ENVIRONMENT, **order.spec.environment},
                "filters": [program.hex() for program in filters],
                "held_ports": ",".join(map(str, RESERVED_PORTS)),
            }
            _send(connection, answer, [order.listener.fileno(), errors_inside, control_inside.fileno()])
        _check_filters(report.status, str(_receive(connection).get("status")), len(filters))
    except BaseException:
        guest.close()
        raise
    return guest


def _check_filters(before: str, after: str, added: int) -> None:
    """Kernels before 5.9 do not say how many filters there are."""
    counts = [parse_status(text).get("Seccomp_filters", "") for text in (before, after)]
    if all(count.isdigit() for count in counts) and int(counts[1]) < int(counts[0]) + added:
        raise ValueError(f"it has {counts[1]} filters of system calls instead of {int(counts[0]) + added}")


def _send(connection: socket.socket, message: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
    data = json.dumps(message).encode()
    socket.send_fds(connection, [len(data).to_bytes(4, "big")], list(descriptors))
    connection.sendall(data)


def _receive(connection: socket.socket) -> dict[str, object]:
    size = int.from_bytes(_receive_bytes(connection, 4), "big")
    if size > MAX_REPORT:
        raise ValueError(f"a message of {size} bytes")
    found = json.loads(_receive_bytes(connection, size))
    if not isinstance(found, dict):
        raise TypeError("a message that is no object")
    return found


def _receive_bytes(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ValueError("it ended")
        data += part
    return data
