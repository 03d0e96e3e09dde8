"""Reads what a tool call is about to do from its input: the command with all that changes its meaning, or the paths.

Agents agree on no form. Every key is either understood here or left in `rest`, and nothing is dropped.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.computer.contract.conventions import WORKSPACE

MAX_PATH = 4096
MAX_PATHS = 2_000
_COMMAND = ("command", "cmd")
_ARGUMENTS = ("args", "arguments", "argv")
_FOLDER = ("cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "directory", "dir_path")
_ENVIRONMENT = ("env", "environment", "env_vars", "environmentVariables")
_STDIN = ("stdin", "standard_input", "input")
_INERT = frozenset(
    [
        "approval_id",
        "available_decisions",
        "background",
        "call_id",
        "callId",
        "command_actions",
        "conversation_id",
        "description",
        "explanation",
        "is_background",
        "justification",
        "parsed_cmd",
        "process_id",
        "proposed_execpolicy_amendment",
        "reason",
        "run_in_background",
        "started_at_ms",
        "thread_id",
        "timeout",
        "timeout_ms",
        "timeoutMs",
        "title",
        "tool_use_id",
        "turn_id",
    ]
)
"""Keys beside a command that do not change what it does."""

_TEXT_KEYS = frozenset(
    [
        "code",
        "content",
        "contents",
        "description",
        "diff",
        "explanation",
        "file_text",
        "insert_text",
        "justification",
        "new",
        "new_str",
        "new_string",
        "new_text",
        "newString",
        "newText",
        "old",
        "old_str",
        "old_string",
        "old_text",
        "oldString",
        "oldText",
        "patch",
        "pattern",
        "prompt",
        "query",
        "reason",
        "regex",
        "text",
        "title",
        "unified_diff",
    ]
)
"""Keys whose text is content and names no file, except the headers of a patch."""

_PATH_KEY = re.compile(r"path|file|dir|folder|dest|target|source|location|notebook|changes|^(from|to|src|dst)$", re.I)
_PATCH_HEADER = re.compile(
    r"^(?:\+\+\+ |--- |rename (?:from|to) |copy (?:from|to) |\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: )(.+)$",
    re.M,
)


@dataclass(frozen=True)
class CallInput:
    """The input of one call. `paths` are as the agent wrote them. `opaque`: there are more paths than are listed."""

    command: str | None = None
    folder: str | None = None
    environment: Any = None
    stdin: str | None = None
    paths: tuple[str, ...] = ()
    rest: Json = field(default_factory=dict)
    opaque: bool = False

    @property
    def subject(self) -> str | None:
        """The command with everything that changes its meaning, as one line of shell. Rules match this.

        A pattern for the command alone does not match when there is a folder, a variable, an input or an unknown key:
        no `*` stands for the characters that they add.
        """
        if self.command is None:
            return None
        text = self.command
        if self.environment not in (None, {}, []):
            text = f"env {_write_environment(self.environment, ' ', quoted=True)} {text}"
        if self.folder is not None and self.folder.rstrip("/") != WORKSPACE:
            text = f"cd {shlex.quote(self.folder)} && {text}"
        if self.stdin:
            text += f" <<< {shlex.quote(self.stdin)}"
        acting = {key: value for key, value in self.rest.items() if key not in _INERT}
        if acting:
            text += f" # {{{json.dumps(acting, sort_keys=True, ensure_ascii=False)}}}"
        return text

    @property
    def environment_text(self) -> str:
        return _write_environment(self.environment, "\n", quoted=False)

    def differs_from(self, allowed: "CallInput") -> bool:
        """Whether this does something that the allowed call did not name."""
        mine = (self.command, self.folder, self.environment or None, self.stdin or None)
        theirs = (allowed.command, allowed.folder or WORKSPACE, allowed.environment or None, allowed.stdin or None)
        changed = any(new is not None and new != old for new, old in zip(mine, theirs, strict=True))
        return changed or not set(self.paths) <= set(allowed.paths)


def read_input(raw: object) -> CallInput:
    """Never fails: what has no known form is in `rest`."""
    if not isinstance(raw, dict):
        return CallInput(rest={} if raw is None else {"input": raw})
    rest = dict(raw)
    command = _take_command(rest)
    if command is None:
        paths: list[str] = []
        for path in _find_paths("", raw):
            if len(path) > MAX_PATH or len(paths) >= MAX_PATHS:
                return CallInput(paths=tuple(paths), rest=rest, opaque=True)
            paths.append(path)
        return CallInput(paths=tuple(dict.fromkeys(paths)), rest=rest)
    folder = _take(rest, _FOLDER, str)
    environment = _take(rest, _ENVIRONMENT, dict, list, str)
    return CallInput(command, folder, environment, _take(rest, _STDIN, str), rest=rest)


def _take_command(rest: Json) -> str | None:
    """Removes the command and its arguments from the rest. A list becomes a line of shell with the same words."""
    name = next((name for name in _COMMAND if _is_command(rest.get(name))), None)
    if name is None:
        return None
    given = rest.pop(name)
    command = given if isinstance(given, str) else shlex.join(given)
    more = next((each for each in _ARGUMENTS if _is_words(rest.get(each))), None)
    return command if more is None else " ".join((command, *map(shlex.quote, rest.pop(more))))


def _is_command(given: object) -> bool:
    return (isinstance(given, str) or _is_words(given)) and bool(given)


def _is_words(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(word, str) for word in given)


def _take(rest: Json, names: tuple[str, ...], *kinds: type) -> Any:
    for name in names:
        if isinstance(rest.get(name), kinds):
            return rest.pop(name)
    return None


def _write_environment(given: object, between: str, *, quoted: bool) -> str:
    if not isinstance(given, Mapping):
        return json.dumps(given, ensure_ascii=False)
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{shlex.quote(name)}={shlex.quote(text)}" if quoted else f"{name}={text}")
    return between.join(lines)


def _find_paths(key: str, value: object) -> Iterator[str]:
    """Every text that could name a file: by its key, by how it begins, or in the header of a patch."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name.startswith(("/", "~/", "./", "../")) or (_PATH_KEY.search(key) and ("." in name or "/" in name)):
                yield name
            yield from _find_paths(name, inside)
    elif isinstance(value, list):
        for each in value:
            yield from _find_paths(key, each)
    elif isinstance(value, str) and value:
        if key in _TEXT_KEYS:
            yield from find_patched_paths(value)
        elif value.startswith(("/", "~/", "./", "../", "file:")) or (
            _PATH_KEY.search(key) and "://" not in value and "\n" not in value
        ):
            yield value


def find_patched_paths(text: str) -> Iterator[str]:
    """The files that the headers of a patch name."""
    for header in _PATCH_HEADER.findall(text):
        path = header.split("\t")[0].strip()
        if path and path != "/dev/null":
            yield path.removeprefix("a/").removeprefix("b/") if path.startswith(("a/", "b/")) else path
