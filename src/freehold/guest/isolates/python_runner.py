"""Runs requests in a Python isolate: compiles, executes, and sends values, pictures and files back."""

# ruff: noqa: S102, S307, PTH123, PTH207

from __future__ import annotations

import ast
import builtins
import glob
import json
import linecache
import os
import sys
import traceback
from time import perf_counter

from freehold.guest.isolates.fork_server import read_exactly, read_request, write_record
from freehold.guest.isolates.records import ITEM, RESULT
from freehold.guest.isolates.walls import WallError, Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_TEXT = 64 * 1024
MAX_ROWS = 1000
MAX_TRACE = 8 * 1024
MAX_MESSAGE = 4 * 1024
MAX_FRAMES = 20
REFUSED = 70
"""The exit status of an isolate whose walls could not be built."""


class PythonRunner:
    """One isolate. Its variables live as long as it does."""

    def __init__(self, walls: Walls) -> None:
        self._walls = walls
        self._sealed = False
        self._count = 0
        self._space: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins, "__doc__": None}
        self._space["display"] = display

    def rehearse(self) -> None:
        tree = ast.parse("x = [1]; str(x)\nx", "<warm>")
        exec(compile(tree, "<warm>", "exec"), {})
        json.dumps(json.loads('{"code": "1", "limits": {"memory": 1}}'))

    def answer(self) -> None:
        """Read one request, run it, and send its records."""
        request = json.loads(read_request())
        inputs = [(str(name), read_exactly(size)) for name, size in request.get("inputs", ())]
        if not self._sealed:
            self._seal(request)
        for name, content in inputs:
            with open(name, "wb") as target:
                target.write(content)
        began = perf_counter()
        result: dict[str, Any] = {}
        try:
            try:
                value = self._execute(request["code"], request.get("name"))
                if value is not None:
                    self._space["_"] = value
                    send_value(value, "value")
                send_figures()
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
        write_record(RESULT, json.dumps(result).encode())

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
            write_record(RESULT, json.dumps({"refused": str(error)}).encode())
            os._exit(REFUSED)
        sys.path.insert(0, "")
        self._sealed = True

    def _execute(self, code: str, name: str | None) -> Any:
        """Run the code; the value of its last expression, or None."""
        self._count += 1
        name = name or f"<cell {self._count}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            exec(compile(tree, name, "exec", dont_inherit=True), self._space)
        if isinstance(last, ast.Expr):
            return eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), self._space)
        return None


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def describe_exception(error: BaseException) -> list[str]:
    """Name, message and traceback, without the frames of this module."""
    name = type(error).__name__
    try:
        message = str(error)[:MAX_MESSAGE]
        below = error.__traceback__
        while below is not None and below.tb_frame.f_code.co_filename == __name__:
            below = below.tb_next
        trace = "".join(traceback.format_exception(type(error), error, below, limit=MAX_FRAMES))[-MAX_TRACE:]
    except BaseException:  # foreign exceptions may raise in __str__
        return [name, "", ""]
    return [name, message, trace]


def display(value: Any) -> None:
    """Show a value in the result: a figure as a picture, a data frame as a table, anything else as text."""
    send_value(value, "display")


def send_value(value: Any, role: str) -> None:
    kind, content = encode_value(value)
    _send_item({"role": role, "type": kind}, content)


def encode_value(value: Any) -> tuple[str, bytes]:
    """Type and bytes. JSON values as they are; bytes as bytes; then tables and pictures; else what `repr` says."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", bytes(value)
    table = _as_table(value)
    if table is not None:
        return "table", json.dumps(table, default=_plain).encode()
    picture = _as_picture(value)
    if picture is not None:
        return picture
    try:
        return "json", json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return "text", repr(value)[:MAX_TEXT].encode("utf-8", "backslashreplace")


def _as_table(value: Any) -> dict[str, Any] | None:
    """A data frame (of pandas, polars or anything like them) as columns and rows. The first thousand rows are sent."""
    if type(value).__name__ not in ("DataFrame", "Series") or not hasattr(value, "shape"):
        return None
    frame = value.to_frame() if type(value).__name__ == "Series" else value
    head = frame.head(MAX_ROWS)
    rows = head.rows() if hasattr(head, "rows") else head.itertuples(index=False, name=None)
    table = {"columns": [str(name) for name in frame.columns], "rows": [list(map(_plain, row)) for row in rows]}
    table["total"] = int(frame.shape[0])
    if hasattr(head, "index"):
        table["index"] = [_plain(label) for label in head.index]
    return table


def _plain(value: Any) -> Any:
    """A cell as JSON knows it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, (bool, int)):
        return value if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return str(value)


def _as_picture(value: Any) -> tuple[str, bytes] | None:
    for method, kind in (("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_svg_", "image/svg+xml")):
        found = getattr(type(value), method, None)
        content = found(value) if callable(found) else None
        if isinstance(content, str):
            content = content.encode()
        if isinstance(content, bytes):
            return kind, content
    if hasattr(type(value), "savefig"):
        return "image/png", _draw(value)
    return None


def _draw(figure: Any) -> bytes:
    from io import BytesIO

    target = BytesIO()
    figure.savefig(target, format="png", bbox_inches="tight")
    return target.getvalue()


def send_figures() -> None:
    """Every open figure of matplotlib, as a notebook shows them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        _send_item({"role": "display", "type": "image/png"}, _draw(pyplot.figure(number)))
    pyplot.close("all")


def send_files(patterns: Iterable[str]) -> None:
    """Files of the isolate's folder whose names match."""
    for pattern in patterns:
        for name in sorted(glob.glob(pattern, recursive=True)):
            if os.path.isfile(name):  # noqa: PTH113
                with open(name, "rb") as source:
                    _send_item({"role": "file", "name": name}, source.read())


def _send_item(head: dict[str, Any], content: bytes) -> None:
    write_record(ITEM, json.dumps(head).encode() + b"\n" + content)
