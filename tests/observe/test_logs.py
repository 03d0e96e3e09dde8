"""Log lines are structured, bounded, safe for a terminal, and contain no secret."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from freehold.errors import FreeholdError
from freehold.observe.logs import MAX_LINE, JsonLogFormatter, LogFormat, configure_logging, log_unexpected
from freehold.observe.secrets import Secret

log = logging.getLogger("freehold.test")


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def configured(format: LogFormat = "json") -> io.StringIO:
    stream = io.StringIO()
    configure_logging("info", format, "gateway", stream=stream)
    return stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_has_time_level_program_message_and_fields() -> None:
    stream = configured()
    log.warning("port %d is busy", 3000, extra={"port": 3000, "hosts": ("a", "b"), "deep": {"x": None}})
    log.debug("not shown")
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "program": "gateway",
        "logger": "freehold.test",
        "message": "port 3000 is busy",
        "fields": {"port": 3000, "hosts": ["a", "b"], "deep": {"x": None}},
    }


@pytest.mark.parametrize("format", ["json", "human"])
def test_no_secret_reaches_a_line_in_any_place(format: LogFormat) -> None:
    stream = configured(format)
    secret = Secret("by-type-secret")
    log.info("key %s and %r", secret, secret, extra={"key": secret, "deep": [{"key": secret}], "pair": (1, secret)})
    log.info("sent Bearer by-shape-secret-1", extra={"header": "Bearer by-shape-secret-2", "x": ["sk-by-shape-secret"]})
    log.info("named", extra={"access_token": "by-name-secret", "headers": {"Cookie": "by-name-secret"}})
    log.info(
        "object",
        extra={"error": FreeholdError("x.y", "fh_by-shape-secret-3"), "other": ValueError("fh_by-shape-secret")},
    )
    try:
        raise ValueError("refused Bearer by-trace-secret")
    except ValueError as error:
        log_unexpected(error, key=secret)
    printed = stream.getvalue()
    assert "-secret" not in printed
    assert printed.count("•••") + printed.count("\\u2022" * 3) >= 12


def test_an_unexpected_error_is_found_under_its_id() -> None:
    stream = configured()
    try:
        dict[str, int]()["missing"]
    except KeyError as error:
        error_id = log_unexpected(error, path="/v1/x")
    (line,) = lines(stream)
    assert line["error_id"] == error_id
    assert line["level"] == "error"
    assert line["fields"] == {"path": "/v1/x"}
    assert "KeyError: 'missing'" in line["traceback"]


def test_lines_are_bounded_whatever_is_logged() -> None:
    stream = configured()
    log.info("é" * 100_000, extra={f"field{n}": "ü" * 10_000 for n in range(100)})
    log.info("x", extra={"deep": {"a": [{"b": [{"c": [1]}]}]}, "many": list(range(1000))})
    try:
        raise ValueError("z" * 100_000)
    except ValueError as error:
        log_unexpected(error)
    for text in stream.getvalue().splitlines():
        assert len(text.encode()) <= MAX_LINE
        json.loads(text)
    assert "fields was too long" in stream.getvalue()


def test_one_event_is_one_line_without_control_characters() -> None:
    for format in ("json", "human"):
        stream = configured("json" if format == "json" else "human")
        log.info("first\nsecond\x1b[2J", extra={"text": "a\r\nb\x07"})
        assert stream.getvalue().count("\n") == 1
        assert "\x1b" not in stream.getvalue()
        assert "\x07" not in stream.getvalue()


def test_a_line_with_wrong_arguments_is_still_logged() -> None:
    # Given to the formatter itself: pytest's own handler would raise on such a line.
    made = {"msg": "count %d", "args": ("sk-not-a-number-but-secret",), "ratio": float("nan")}
    line = json.loads(JsonLogFormatter("gateway").format(logging.makeLogRecord(made)))
    assert line["message"] == "count %d (its arguments do not match)"
    assert line["fields"] == {"ratio": "nan"}
    assert "secret" not in str(line)


def test_a_readable_line() -> None:
    stream = configured("human")
    log.error("no room", extra={"path": "/tmp/x", "why": "disk full"})
    assert stream.getvalue().endswith(' error   gateway: no room path=/tmp/x why="disk full"\n')


def test_configuring_again_replaces_the_handler() -> None:
    first, second = configured(), configured()
    log.info("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1
