"""Structured log lines on the standard library's logging: JSON for programs, or one line for people."""

import json
import logging
import math
import secrets
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TextIO

from freehold.errors import FreeholdError
from freehold.observe.secrets import MASK, mask, names_a_secret

LogFormat = Literal["json", "human"]
Level = Literal["debug", "info", "warning", "error"]
Plain = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None

LINE_LIMIT = 16 * 1024
TEXT_LIMIT = 4 * 1024
TRACE_LIMIT = 8 * 1024
FIELD_LIMIT = 32
DEPTH_LIMIT = 4

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}
_COLORS = {"debug": "2", "info": "36", "warning": "33", "error": "31", "critical": "31;1"}


def configure_logging(
    level: Level = "info", format: LogFormat = "human", program: str = "freehold", stream: TextIO | None = None
) -> None:
    """Sends every log line of this process to `stream` (default: stderr). Calling it again replaces what was set.

    Extra fields come from `extra={...}`. Values of type `Secret`, fields whose name says so, and text that looks
    like a key are masked wherever they stand, tracebacks included.
    """
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    handler.setFormatter(JsonLines(program) if format == "json" else HumanLines(program, color=target.isatty()))
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known.formatter, _Lines)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


def log_unexpected(error: BaseException, message: str = "something unexpected happened", **fields: object) -> str:
    """Writes the traceback beside a new error id, and gives the id: the only thing an outsider may see of it."""
    error_id = secrets.token_hex(6)
    logging.getLogger("freehold").error(message, exc_info=error, extra={**fields, "error_id": error_id})
    return error_id


class _Lines(logging.Formatter):
    def __init__(self, program: str) -> None:
        super().__init__()
        self.program = program

    def parts(self, record: logging.LogRecord) -> dict[str, Plain]:
        line: dict[str, Plain] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "program": self.program,
            "logger": record.name,
            "message": _short(mask(_message(record)), TEXT_LIMIT),
        }
        extra = {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        error_id = extra.pop("error_id", None)
        fields = {name: _plain(name, value, 0) for name, value in list(extra.items())[:FIELD_LIMIT]}
        if fields:
            line["fields"] = fields
        if error_id is not None:
            line["error_id"] = str(error_id)
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = _trace(record.exc_info[1])
        return line


class JsonLines(_Lines):
    """One JSON object a line, at most `LINE_LIMIT` bytes."""

    def format(self, record: logging.LogRecord) -> str:
        line = self.parts(record)
        text = json.dumps(line, ensure_ascii=True)
        for name in ("fields", "traceback"):
            if len(text) > LINE_LIMIT and line.pop(name, None) is not None:
                line["dropped"] = f"{name} was too long"
                text = json.dumps(line, ensure_ascii=True)
        if len(text) > LINE_LIMIT:  # each character of the message became an escape
            line["message"] = str(line["message"])[: TEXT_LIMIT // 6]
            text = json.dumps(line, ensure_ascii=True)
        return text


class HumanLines(_Lines):
    """Time, level, program, message, fields; a traceback follows, indented."""

    def __init__(self, program: str, *, color: bool) -> None:
        super().__init__(program)
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        line = self.parts(record)
        level = str(line["level"])
        shown = f"\x1b[{_COLORS.get(level, '0')}m{level:<7}\x1b[0m" if self._color else f"{level:<7}"
        text = f"{str(line['time'])[11:19]} {shown} {self.program}: {_printable(str(line['message']))}"
        fields = line.get("fields")
        if isinstance(fields, dict):
            text += "".join(f" {name}={_value(value)}" for name, value in fields.items())
        if "error_id" in line:
            text += f" error_id={line['error_id']}"
        text = _short(text, LINE_LIMIT - TRACE_LIMIT)
        if "traceback" in line:
            text += "".join("\n    " + _printable(row) for row in str(line["traceback"]).splitlines())
        return text


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # The standard library would print the arguments as they are, secrets and all.
        return f"{record.msg} (its arguments do not fit)"


def _plain(name: str, value: object, depth: int) -> Plain:
    if names_a_secret(name):
        return MASK
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < DEPTH_LIMIT and isinstance(value, Mapping):
        return {str(key): _plain(str(key), item, depth + 1) for key, item in list(value.items())[:FIELD_LIMIT]}
    if depth < DEPTH_LIMIT and isinstance(value, list | tuple | set | frozenset):
        return [_plain("", item, depth + 1) for item in list(value)[:FIELD_LIMIT]]
    if isinstance(value, FreeholdError):
        return {"code": value.code, "message": mask(value.message)}
    return _short(mask(str(value)), TEXT_LIMIT // 2)


def _trace(error: BaseException) -> str:
    """The end of the traceback, which says what went wrong, when all of it is too long."""
    text = mask("".join(traceback.format_exception(error)))
    return text if len(text) <= TRACE_LIMIT else "…" + text[-TRACE_LIMIT:]


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 40]}… ({len(text)} characters)"


def _printable(text: str) -> str:
    """What came out of the computer may hold control codes; on the owner's terminal they are shown, not obeyed."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _value(value: Plain) -> str:
    if isinstance(value, str) and value and " " not in value and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else f'"{_printable(value)}"'
