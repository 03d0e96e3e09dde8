"""A context: an isolate that keeps its variables from one execution to the next."""

from __future__ import annotations

import time

from freehold.guest.isolates.execution import ExecutionLimits, read_grants
from freehold.guest.isolates.folder import IsolateFolder
from freehold.guest.spawn import OperationError, to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from freehold.guest.isolates.execution import Execution
    from freehold.guest.isolates.isolate import Isolate
    from freehold.guest.isolates.service import Isolates

MAX_LABEL = 200


class IsolateContext:
    """It stays known after its isolate has died, until it is reset or deleted."""

    def __init__(self, isolates: Isolates, identity: str, message: dict[str, Any]) -> None:
        self._isolates = isolates
        self.identity = identity
        self._message = message
        self.limits = ExecutionLimits(message["limits"])
        self.grants = read_grants(message)
        self.network = bool(message.get("network"))
        self.language = str(message["language"])
        self.label = to_bytes(message.get("label") or "").decode("utf-8", "replace")[:MAX_LABEL]
        self._keep = float(message.get("keep_idle", 3600.0))
        self.execution: Execution | None = None
        self.count = 0
        self._created = time.time()
        self._used_at = time.monotonic()
        self.folder: IsolateFolder | None = None
        self.isolate: Isolate
        self._start()

    def _start(self) -> None:
        folder = IsolateFolder(self._isolates.loop)
        try:
            self.isolate = self._isolates.take(self._message)
        except BaseException:
            folder.remove()
            raise
        self.folder = folder
        self._idle_processor = 0.0

    def check_free(self) -> None:
        if self.isolate.over:
            raise OperationError(
                "computer.context-ended", f"The context {self.identity} has ended; its variables are gone"
            )
        if self.execution is not None:
            raise OperationError("computer.busy", f"The context {self.identity} is busy with another execution")

    def finished(self) -> None:
        self.execution = None
        self.count += 1
        self._used_at = time.monotonic()
        self._idle_processor = self.isolate.processor_time()

    def check(self, now: float) -> bool:
        """Called often: what it left running in the background counts too. False when it was not used for too long."""
        if self.execution is None:
            if self.isolate.processor_time() - self._idle_processor > self.limits.processor:
                self.isolate.kill()
            return now - self._used_at < self._keep
        return True

    def reset(self) -> None:
        """A new isolate with the same settings: no variable and no file is left."""
        self.end()
        self.count = 0
        self._start()
        self._used_at = time.monotonic()

    def end(self) -> None:
        """Idempotent."""
        self.isolate.kill()
        if self.folder is not None:
            self.folder.remove()
            self.folder = None

    def describe(self) -> dict[str, Any]:
        state = "ended" if self.isolate.over else "busy" if self.execution is not None else "ready"
        return {
            "id": self.identity,
            "language": self.language,
            "label": self.label,
            "state": state,
            "created": self._created,
            "executions": self.count,
            "limits": vars(self.limits),
            "folder": "" if self.folder is None else self.folder.path.decode(),
        }
