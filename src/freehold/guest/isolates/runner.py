"""What every isolate that is written in Python does with a request: seal itself, run, and send records back."""

# ruff: noqa: PTH123, PTH207

from __future__ import annotations

import glob
import json
import os
import sys
import traceback
from time import perf_counter

from freehold.guest.isolates.fork_server import read_exactly, read_request, records
from freehold.guest.isolates.records import ITEM, RESULT
from freehold.guest.isolates.walls import WallError, Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_TRACE = 8 * 1024
MAX_MESSAGE = 4 * 1024
MAX_FRAMES = 20
REFUSED = 70
"""The exit status of an isolate whose walls could not be built."""


class NamedFailure(Exception):
    """The code failed in a way that is no exception of Python. It has a name, and no traceback."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class IsolateRunner:
    """One isolate. What `execute` keeps lives as long as it does."""

    def __init__(self, walls: Walls) -> None:
        self._walls = walls
        self._sealed = False

    def execute(self, request: dict[str, Any]) -> None:
        """Run the code of the request, and send its value. Whatever is raised here is the code's."""
        raise NotImplementedError

    def seal_early(self, limits: bytes) -> None:
        """While it is parked: for a request with exactly these limits and without any grant."""
        if limits:
            self._seal({"limits": json.loads(limits)})

    def receive(self) -> dict[str, Any]:
        """Read one request, without its input files."""
        request: dict[str, Any] = json.loads(read_request())
        return request

    def answer(self) -> None:
        """Read one request, run it, and send its records."""
        request = self.receive()
        inputs = [(str(name), read_exactly(size)) for name, size in request.get("inputs", ())]
        if not self._sealed:
            self._seal(request)
        for name, content in inputs:
            with open(name, "wb") as target:
                target.write(content)
        self.run(request)

    def run(self, request: dict[str, Any]) -> None:
        """Run it, and send its records. The walls must stand."""
        began = perf_counter()
        result: dict[str, Any] = {}
        try:
            try:
                self.execute(request)
                send_files(request.get("outputs", ()))
            except SystemExit as error:
                result["exit"] = _exit_code(error)
            except BaseException as error:  # foreign code may raise anything
                result["error"] = describe_exception(error)
                if isinstance(error, MemoryError):
                    result["limit"] = "memory"
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        except BaseException as error:  # its own display methods and streams as well, and a late interrupt
            result.setdefault("error", [type(error).__name__, "", ""])
        result["seconds"] = perf_counter() - began
        records.write(RESULT, json.dumps(result).encode())

    def _seal(self, request: dict[str, Any]) -> None:
        limits = request["limits"]
        try:
            self._walls.build(
                limits["memory"],
                limits["file_size"],
                limits["open_files"],
                request.get("grants", ()),
                bool(request.get("network")),
            )
            os.chdir(request.get("folder") or "/")
        except (WallError, OSError) as error:
            records.write(RESULT, json.dumps({"refused": str(error)}).encode())
            os._exit(REFUSED)
        self._sealed = True


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def describe_exception(error: BaseException) -> list[str]:
    """Name, message and traceback, without the frames of the guest's own modules."""
    name = type(error).__name__
    try:
        message = str(error)[:MAX_MESSAGE]
        if isinstance(error, NamedFailure):
            return [error.name, message, ""]
        below = error.__traceback__
        while below is not None and _is_own(below.tb_frame.f_code.co_filename):
            below = below.tb_next
        trace = "".join(traceback.format_exception(type(error), error, below, limit=MAX_FRAMES))[-MAX_TRACE:]
    except BaseException:  # foreign exceptions may raise in __str__
        return [name, "", ""]
    return [name, message, trace]


def _is_own(filename: str) -> bool:
    return filename == "guest" or filename.startswith("freehold.guest.")


def send_files(patterns: Iterable[str]) -> None:
    """Files of the isolate's folder whose names match."""
    for pattern in patterns:
        for name in sorted(glob.glob(pattern, recursive=True)):
            if os.path.isfile(name):  # noqa: PTH113
                with open(name, "rb") as source:
                    send_item({"role": "file", "name": name}, source.read())


def send_item(head: dict[str, Any], content: bytes) -> None:
    """What was written before comes before. The value of the code is its last item, and its result follows at once."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    records.write(ITEM, json.dumps(head).encode() + b"\n" + content, may_wait=head["role"] == "value")
