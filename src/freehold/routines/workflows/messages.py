"""What a workflow's program says to the host. It comes from inside the computer: everything is checked."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.routines.workflows.records import StepKind
from freehold.strict_json import WrongShape, decode

MAX_LINE = 1024 * 1024
MAX_RESULT = 256 * 1024
"""Characters of the result of a step, as JSON."""
MAX_TITLE = 200
MAX_ERROR = 4_000
MAX_PROMPT = 100_000
MAX_QUESTION = 4_000
MAX_CHOICES = 20
MAX_CHOICE = 200
MAX_SLEEP = 10 * 366 * 86400.0
MAX_TIMEOUT = 7 * 86400.0
MAX_RETRIES = 20
_PLACE = re.compile(r"[1-9][0-9]{0,5}(\.[1-9][0-9]{0,3}\.[1-9][0-9]{0,5}){0,8}")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_EVENT = re.compile(r"[A-Za-z0-9_.-]{1,200}\*?")


@dataclass(frozen=True)
class StepAsked:
    """The program has come to a step."""

    place: str
    kind: StepKind
    title: str
    given: Mapping[str, Any]


@dataclass(frozen=True)
class StepRan:
    """The program has called the function of a step. `error` is None when it returned."""

    place: str
    result: object = None
    error: str | None = None


@dataclass(frozen=True)
class WentIdle:
    """Nothing is left to do before an answer comes. `got` counts the answers that it has read."""

    got: int


@dataclass(frozen=True)
class WorkflowEnded:
    result: object = None
    error: str | None = None


@dataclass(frozen=True)
class _AskedLine:
    do: str
    kind: StepKind
    title: str
    given: dict[str, object]


@dataclass(frozen=True)
class _RanLine:
    ran: str
    result: object = None
    error: str | None = None


@dataclass(frozen=True)
class _IdleLine:
    idle: int


@dataclass(frozen=True)
class _EndLine:
    end: str
    result: object = None
    error: str | None = None


@dataclass(frozen=True)
class RetryOptions:
    """`again`: it may be repeated when nobody knows whether it was done."""

    again: bool = False
    retries: int = 0
    delay: float = 10.0


@dataclass(frozen=True)
class FunctionInput(RetryOptions):
    function: str = ""
    arguments: object = None


@dataclass(frozen=True)
class CommandInput(RetryOptions):
    command: str = ""
    check: bool = True
    timeout: float = 3600.0


@dataclass(frozen=True)
class AgentInput:
    prompt: str
    timeout: float = 3600.0
    agent: str | None = None
    model: str | None = None
    session: str | None = None
    data: object = None


@dataclass(frozen=True)
class AskInput:
    question: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class SleepInput:
    seconds: float


@dataclass(frozen=True)
class EventInput:
    name: str


StepInput = FunctionInput | CommandInput | AgentInput | AskInput | SleepInput | EventInput
_INPUTS: dict[StepKind, type[StepInput]] = {
    "step": FunctionInput,
    "command": CommandInput,
    "agent": AgentInput,
    "ask": AskInput,
    "sleep": SleepInput,
    "event": EventInput,
}
_LINES: dict[str, type] = {"do": _AskedLine, "ran": _RanLine, "idle": _IdleLine, "end": _EndLine}


class LineBuffer:
    """Bytes of the program, cut into lines of a bounded length. The work is in proportion to the bytes, however they come."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete. Raises `workflow.bad-message`."""
        self._rest += data
        lines: list[bytes] = []
        if b"\n" in data:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
        if len(self._rest) > MAX_LINE or any(len(line) > MAX_LINE for line in lines):
            raise bad_message(f"a line is longer than {MAX_LINE} bytes")
        return lines


def read_message(line: bytes) -> StepAsked | StepRan | WentIdle | WorkflowEnded:
    """Raises `workflow.bad-message`."""
    try:
        value = _load(line)
        if not isinstance(value, dict) or not (names := _LINES.keys() & value.keys()):
            raise WrongShape("it says nothing that is known")
        message: object = decode(_LINES[min(names)], value)
    except (ValueError, RecursionError) as error:
        raise bad_message(str(error)) from None
    if isinstance(message, _AskedLine):
        _check_place(message.do)
        given = message.given
        read_input(message.kind, given)
        return StepAsked(message.do, message.kind, message.title[:MAX_TITLE], given)
    if isinstance(message, _RanLine):
        _check_place(message.ran)
        return StepRan(message.ran, message.result, _cut(message.error))
    if isinstance(message, _EndLine):
        return WorkflowEnded(message.result, _cut(message.error))
    assert isinstance(message, _IdleLine)
    return WentIdle(message.idle)


def _load(line: bytes) -> object:
    """What is no character is replaced, such as in a file name that is not UTF-8: neither SQLite nor the API can have it."""
    value: object = json.loads(line.decode("utf-8", "replace"))
    if _HALF.search(line):
        value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return value


def read_input(kind: StepKind, given: Mapping[str, Any]) -> StepInput:
    """What a step was given. Raises `workflow.bad-message`."""
    try:
        found = decode(_INPUTS[kind], dict(given))
        _check_input(found)
    except ValueError as error:
        raise bad_message(f"{kind}: {error}") from None
    return found


def _check_input(found: StepInput) -> None:
    """Raises ValueError."""
    if isinstance(found, RetryOptions):
        _check(0 <= found.retries <= MAX_RETRIES, f"retries must be from 0 to {MAX_RETRIES}")
        _check(1 <= found.delay <= 86400, "delay must be from 1 to 86400 seconds")
    if isinstance(found, CommandInput | AgentInput):
        _check(1 <= found.timeout <= MAX_TIMEOUT, f"timeout must be from 1 to {MAX_TIMEOUT:g} seconds")
    if isinstance(found, CommandInput):
        _check(bool(found.command.strip()) and "\0" not in found.command, "the command is empty")
        _check(len(found.command) <= MAX_PROMPT, f"a command has at most {MAX_PROMPT} characters")
    if isinstance(found, AgentInput):
        _check(bool(found.prompt.strip()), "the prompt is empty")
        _check(len(found.prompt) <= MAX_PROMPT, f"a prompt has at most {MAX_PROMPT} characters")
        _check(
            not found.prompt.lstrip().startswith("!"), "a prompt that begins with ! is a shell command: use command()"
        )
        _check(
            all(len(one or "") <= MAX_TITLE for one in (found.agent, found.model, found.session)), "a name is too long"
        )
    if isinstance(found, AskInput):
        _check(
            bool(found.question.strip()) and len(found.question) <= MAX_QUESTION, "the question is empty or too long"
        )
        _check(len(found.choices) <= MAX_CHOICES, f"a question has at most {MAX_CHOICES} choices")
        _check(all(0 < len(one) <= MAX_CHOICE for one in found.choices), f"a choice has 1 to {MAX_CHOICE} characters")
        _check(len(set(found.choices)) == len(found.choices), "two choices are the same")
    if isinstance(found, SleepInput):
        _check(0 <= found.seconds <= MAX_SLEEP, "the time must be from 0 seconds to 10 years")
    if isinstance(found, EventInput):
        _check(_EVENT.fullmatch(found.name) is not None, f"{found.name[:80]!r} is not the type of an event")


def _check(is_right: bool, words: str) -> None:
    if not is_right:
        raise ValueError(words)


def _check_place(place: str) -> None:
    if _PLACE.fullmatch(place) is None:
        raise bad_message("the number of a step is wrong")


def bad_message(words: str) -> FreeholdError:
    return FreeholdError("workflow.bad-message", f"The workflow's program said something that cannot be used: {words}")


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:MAX_ERROR]
