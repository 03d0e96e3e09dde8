"""The monitor of QEMU: one request, one answer, as lines of JSON. Blocking, from one thread at a time."""

import json
import socket
import time
from collections.abc import Sequence
from typing import Any

from freehold.errors import FreeholdError

MAX_LINE = 1024 * 1024
ANSWER_TIMEOUT = 20.0
POLL_PAUSE = 0.002


class QmpPort:
    """QEMU is not trusted more than the machine that it runs: what it says only decides over this machine."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._inbox = b""

    def open(self, timeout: float = ANSWER_TIMEOUT) -> None:
        """Wait until QEMU is there."""
        self._read_line(time.monotonic() + timeout)
        self.ask("qmp_capabilities")

    def ask(self, what: str, files: Sequence[int] = (), /, **arguments: object) -> Any:
        """`files` are descriptors that go with the request. Raises `computer.unresponsive` for every failure."""
        deadline = time.monotonic() + ANSWER_TIMEOUT
        named = {name.replace("_", "-"): value for name, value in arguments.items()}
        line = json.dumps({"execute": what, "arguments": named}).encode() + b"\n"
        try:
            self._socket.settimeout(ANSWER_TIMEOUT)
            if files:
                socket.send_fds(self._socket, [line], files)
            else:
                self._socket.sendall(line)
        except OSError as error:
            raise _failed(what, str(error)) from None
        while True:
            answer = self._read_line(deadline)
            if "error" in answer:
                raise _failed(what, str(answer["error"])[:500])
            if "return" in answer:
                return answer["return"]

    def await_status(self, what: str, wanted: str, passing: Sequence[str], timeout: float) -> None:
        """Ask `what` until its status is `wanted`. `passing` are the words that are said until then."""
        deadline = time.monotonic() + timeout
        while True:
            found = self.ask(what)
            status = found.get("status") if isinstance(found, dict) else None
            if status == wanted:
                return
            if (status is not None and status not in passing) or time.monotonic() > deadline:
                raise _failed(what, str(found)[:500])
            time.sleep(POLL_PAUSE)

    def close(self) -> None:
        self._socket.close()

    def _read_line(self, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._inbox:
            left = deadline - time.monotonic()
            if left <= 0 or len(self._inbox) > MAX_LINE:
                raise _failed("answer", "in time")
            self._socket.settimeout(left)
            try:
                data = self._socket.recv(65536)
            except OSError as error:
                raise _failed("answer", str(error)) from None
            if not data:
                raise _failed("answer", "it has ended")
            self._inbox += data
        line, _, self._inbox = self._inbox.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise _failed("answer", "this is not JSON")
        return answer


def _failed(what: str, why: str) -> FreeholdError:
    return FreeholdError("computer.unresponsive", f"QEMU did not {what}: {why}", hint="freehold down")
