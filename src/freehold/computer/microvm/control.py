"""The control port of a virtual machine: one request, one answer, as lines of JSON. Blocking, from any thread."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from freehold.errors import FreeholdError

MAX_ANSWER = 1024 * 1024
ANSWER_TIMEOUT = 20.0


class ControlPort:
    """What it answers comes from inside the virtual machine: it is checked, and never trusted for the host's own sake."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._lock = threading.Lock()
        self._inbox = b""
        self._last = 0

    def wait_hello(self, timeout: float, is_alive: Callable[[], bool]) -> bool:
        """Whether the machine has booted in time."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and is_alive():
            try:
                if self._read_line(time.monotonic() + 0.05) is not None:
                    return True
            except TimeoutError:
                continue
        return False

    def ask(self, what: str, timeout: float = ANSWER_TIMEOUT, **values: object) -> dict[str, Any]:
        """Raises `computer.unresponsive`, or `computer.no-isolation` with what the machine says."""
        deadline = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise _unresponsive("another request waits")
        try:
            self._last += 1
            self._set_deadline(deadline)
            self._socket.sendall(json.dumps({"id": self._last, "do": what, **values}).encode() + b"\n")
            answer = self._read_line(deadline)
            while answer is not None and answer.get("id") != self._last:  # the answer to a request that was given up
                self._set_deadline(deadline)
                answer = self._read_line(deadline)
        except OSError as error:
            raise _unresponsive(str(error)) from None
        finally:
            self._lock.release()
        if answer is None:
            raise FreeholdError("computer.ended", "The virtual machine has ended")
        if "error" in answer:
            raise FreeholdError(
                "computer.no-isolation",
                f"The virtual machine could not {what}: {str(answer['error'])[:500]}",
                hint="freehold doctor --backend microvm tries it",
            )
        return answer

    def wake(self) -> None:
        """Give it the time of this machine, and randomness of its own."""
        self.ask("wake", time=time.time(), seed=os.urandom(64).hex())

    def _set_deadline(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)

    def _read_line(self, deadline: float) -> dict[str, Any] | None:
        """None at the end, and for what cannot be an answer. However slowly it comes, the deadline holds."""
        while b"\n" not in self._inbox:
            self._set_deadline(deadline)
            data = self._socket.recv(65536)
            if not data or len(self._inbox) > MAX_ANSWER:
                return None
            self._inbox += data
        line, _, self._inbox = self._inbox.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            return None
        return answer if isinstance(answer, dict) else None

    def close(self) -> None:
        self._socket.close()


def _unresponsive(why: str) -> FreeholdError:
    return FreeholdError("computer.unresponsive", f"The virtual machine does not answer: {why}", hint="freehold down")
