"""Structured log lines with the standard library's logging: JSON, or one readable line."""

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
from freehold.observe.secrets import MASK, is_secret_name, mask_secrets

LogFormat = Literal["json", "human"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogValue = bool | int | float | str | list["LogValue"] | dict[str, "LogValue"] | None

MAX_LINE = 16 * 1024
MAX_TEXT = 4 * 1024
MAX_TRACEBACK = 8 * 1024
MAX_FIELDS = 32
MAX_DEPTH = 4

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}
_COLORS = {"debug": "2", "info": "36", "warning": "33", "error": "31", "critical": "31;1"}


def configure_logging(
    level: LogLevel = "info", format: LogFormat = "human", program: str = "freehold", stream: TextIO | None = None
) -> None:
    """Send all log lines of this process to `stream` (default: stderr). A second call replaces the first.

    Extra fields come from `extra={...}`. Values of type `Secret`, fields with the name of a secret, and text that looks
    like a key are masked everywhere, also in tracebacks.
    """
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    handler.setFormatter(
        JsonLogFormatter(program) if format == "json" else HumanLogFormatter(program, color=target.isatty())
    )
    root = logging.getLogger()
    for old in [known for known in root.handlers if isinstance(known.formatter, _LogFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


def log_unexpected(error: BaseException, message: str = "an unexpected error occurred", **fields: object) -> str:
    """Log the traceback with a new error id and return the id, the only part that a caller may see."""
    error_id = secrets.token_hex(6)
    logging.getLogger("freehold").error(message, exc_info=error, extra={**fields, "error_id": error_id})
    return error_id


class _LogFormatter(logging.Formatter):
    def __init__(self, program: str) -> None:
        super().__init__()
        self.program = program

    def make_line(self, record: logging.LogRecord) -> dict[str, LogValue]:
        line: dict[str, LogValue] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "program": self.program,
            "logger": record.name,
            "message": _truncate(mask_secrets(_message(record)), MAX_TEXT),
        }
        extra = {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
        error_id = extra.pop("error_id", None)
        fields = {name: _to_log_value(name, value, 0) for name, value in list(extra.items())[:MAX_FIELDS]}
        if fields:
            line["fields"] = fields
        if error_id is not None:
            line["error_id"] = str(error_id)
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = _format_traceback(record.exc_info[1])
        return line


class JsonLogFormatter(_LogFormatter):
    """One JSON object a line, at most `LINE_LIMIT` bytes."""

    def format(self, record: logging.LogRecord) -> str:
        line = self.make_line(record)
        text = json.dumps(line, ensure_ascii=True)
        for name in ("fields", "traceback"):
            if len(text) > MAX_LINE and line.pop(name, None) is not None:
                line["dropped"] = f"{name} was too long"
                text = json.dumps(line, ensure_ascii=True)
        if len(text) > MAX_LINE:  # every character of the message was escaped
            line["message"] = str(line["message"])[: MAX_TEXT // 6]
            text = json.dumps(line, ensure_ascii=True)
        return text


class HumanLogFormatter(_LogFormatter):
    """Time, level, program, message and fields on one line, then the indented traceback."""

    def __init__(self, program: str, *, color: bool) -> None:
        super().__init__(program)
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        line = self.make_line(record)
        level = str(line["level"])
        shown = f"\x1b[{_COLORS.get(level, '0')}m{level:<7}\x1b[0m" if self._color else f"{level:<7}"
        text = f"{str(line['time'])[11:19]} {shown} {self.program}: {_printable(str(line['message']))}"
        fields = line.get("fields")
        if isinstance(fields, dict):
            text += "".join(f" {name}={_value(value)}" for name, value in fields.items())
        if "error_id" in line:
            text += f" error_id={line['error_id']}"
        text = _truncate(text, MAX_LINE - MAX_TRACEBACK)
        if "traceback" in line:
            text += "".join("\n    " + _printable(row) for row in str(line["traceback"]).splitlines())
        return text


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # The standard library would print the arguments unmasked.
        return f"{record.msg} (its arguments do not match)"


def _to_log_value(name: str, value: object, depth: int) -> LogValue:
    if is_secret_name(name):
        return MASK
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {str(key): _to_log_value(str(key), item, depth + 1) for key, item in list(value.items())[:MAX_FIELDS]}
    if depth < MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [_to_log_value("", item, depth + 1) for item in list(value)[:MAX_FIELDS]]
    if isinstance(value, FreeholdError):
        return {"code": value.code, "message": mask_secrets(value.message)}
    return _truncate(mask_secrets(str(value)), MAX_TEXT // 2)


def _format_traceback(error: BaseException) -> str:
    """The traceback; only its end, which has the cause, when it is too long."""
    text = mask_secrets("".join(traceback.format_exception(error)))
    return text if len(text) <= MAX_TRACEBACK else "…" + text[-MAX_TRACEBACK:]


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 40]}… ({len(text)} characters)"


def _printable(text: str) -> str:
    """Control characters escaped: text from the computer must not control the owner's terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _value(value: LogValue) -> str:
    if isinstance(value, str) and value and " " not in value and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else f'"{_printable(value)}"'
