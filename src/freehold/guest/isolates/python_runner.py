"""Runs Python: compiles, executes, and sends values, tables and pictures back."""

# ruff: noqa: S102, S307

from __future__ import annotations

import ast
import builtins
import json
import linecache
import sys

from freehold.guest.isolates.runner import IsolateRunner, send_item
from freehold.guest.isolates.walls import Walls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_TEXT = 64 * 1024
MAX_ROWS = 1000
_REHEARSAL = '{"code": "x = [1]\\nstr(x)", "limits": {"memory": 1}, "keep": false}'


class PythonRunner(IsolateRunner):
    """Its variables live as long as it does."""

    def __init__(self, walls: Walls) -> None:
        super().__init__(walls)
        self._count = 0
        self._space: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins, "__doc__": None}
        self._space["display"] = display

    def execute(self, request: dict[str, Any]) -> None:
        sys.argv = [request.get("name") or "", *request.get("arguments", ())]
        value = self._execute(request["code"], request.get("name"))
        if value is not None:
            self._space["_"] = value
            send_value(value, "value")
        send_figures()

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


def rehearse_python(walls: Walls) -> None:
    """A first pass through everything that a request needs. Leaves nothing that code could see."""
    PythonRunner(walls).run(json.loads(_REHEARSAL))
    linecache.cache.clear()
    sys.argv = [""]


def display(value: Any) -> None:
    """Show a value in the result: a figure as a picture, a data frame as a table, anything else as text."""
    send_value(value, "display")


def send_value(value: Any, role: str) -> None:
    kind, content = encode_value(value)
    send_item({"role": role, "type": kind}, content)


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
        send_item({"role": "display", "type": "image/png"}, _draw(pyplot.figure(number)))
    pyplot.close("all")
