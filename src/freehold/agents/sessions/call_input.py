"""Reads what a tool call is about to do from its input: the command with all that changes its meaning, or the paths.

Agents agree on no form. Every key is either understood here or left in `rest`, and nothing is dropped.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.patch_headers import find_patched_paths
from freehold.agents.sessions.real_paths import absolute_path, lexical_path
from freehold.computer.contract.conventions import WORKSPACE

MAX_PATH = 4096
MAX_PATHS = 2_000
_COMMAND = ("command", "cmd")
_ARGUMENTS = ("args", "arguments", "argv")
_FOLDER = ("cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "directory", "dir_path")
_WORKING_FOLDER = frozenset(["cwd", "workdir", "working_dir", "working_directory", "workingDirectory"])
"""Of these, the keys that name where a call begins and never what it is about."""

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

_INERT_VALUES = {"source": frozenset(["agent", "unified_exec_interaction", "unified_exec_startup", "user_shell"])}
"""The same with these values only: Codex says where a command came from."""

_ADDED = "# with "

_TEXT_KEYS = frozenset(
    [
        "after",
        "before",
        "content",
        "contents",
        "diff",
        "file_text",
        "insert_text",
        "new",
        "new_source",
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
        "patch_text",
        "patchText",
        "regex",
        "text",
        "unified_diff",
    ]
)
"""Keys whose text is content and names no file, except the headers of a patch."""

_LABEL_KEYS = frozenset(
    [
        "approval_id",
        "call_id",
        "callId",
        "cell_id",
        "cell_type",
        "conversation_id",
        "description",
        "edit_mode",
        "explanation",
        "instruction",
        "justification",
        "output_mode",
        "reason",
        "thread_id",
        "title",
        "tool_use_id",
        "turn_id",
        "type",
    ]
)
"""Keys beside the path of a file whose text changes nothing, or only how it is shown."""

_FILTER_KEYS = frozenset(["exclude", "glob", "ignore", "include", "pattern", "query"])
"""Keys whose text chooses among the files of a folder. It names a place when it leads out of the folder."""

_NUMBER_KEYS = frozenset(["additions", "column", "deletions", "end_line", "limit", "line", "offset", "start_line"])
_KNOWN_KEYS = _TEXT_KEYS | _LABEL_KEYS | _FILTER_KEYS | _NUMBER_KEYS
_PATH_KEY = re.compile(
    r"path|file|dir|folder|dest|target|source|location|notebook|changes|root|^(from|to|src|dst|uri)$", re.I
)
_PATH_BEGIN = ("/", "~", "./", "../", "file:")
_IS_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class CallInput:
    """The input of one call. `paths` are as the agent wrote them, `opaque`: there are more than are listed.

    `unread`: a call without a command has a text of which Freehold does not know what the agent does with it.
    """

    command: str | None = None
    folder: str | None = None
    environment: Any = None
    stdin: str | None = None
    paths: tuple[str, ...] = ()
    rest: Json = field(default_factory=dict)
    opaque: bool = False
    unread: bool = False

    @property
    def subject(self) -> str | None:
        """The command with everything that changes its meaning, as shell. Rules match this.

        A pattern for the command alone does not match when there is a folder, a variable, an input or an unknown key:
        no `*` stands for the characters that they add.
        """
        if self.command is None:
            return None
        text = self.command
        added: Json = {}
        if isinstance(self.environment, Mapping):
            if self.environment:
                text = f"env {_write_environment(self.environment, ' ', quoted=True)} {text}"
        elif self.environment:
            added["env"] = self.environment
        if self.folder is not None and self.folder.rstrip("/") != WORKSPACE:
            text = f"cd {shlex.quote(self.folder)} && {text}"
        if self.stdin:
            added["stdin"] = self.stdin
        if self._acting:
            added["more"] = self._acting
        # It comes before the command, where no command can write it: at the end it could be a comment.
        if added or text.startswith(_ADDED):
            text = f"{_ADDED}{json.dumps(added, sort_keys=True)}\n{text}"
        return text

    @property
    def _acting(self) -> Json:
        return {key: value for key, value in self.rest.items() if not _is_inert(key, value)}

    @property
    def environment_text(self) -> str:
        return _write_environment(self.environment, "\n", quoted=False)

    def differs_from(self, allowed: "CallInput") -> bool:
        """Whether this does something that the allowed call did not name."""
        mine = (self.command, self.environment or None, self.stdin or None)
        theirs = (allowed.command, allowed.environment or None, allowed.stdin or None)
        changed = any(new is not None and new != old for new, old in zip(mine, theirs, strict=True))
        if self.folder is not None or self.command is not None:
            changed = changed or _find_place(self.folder) != _find_place(allowed.folder)
        return changed or self._says_other(allowed) or not set(self.paths) <= set(allowed.paths)

    def _says_other(self, allowed: "CallInput") -> bool:
        """A key that is new says something else too, unless it is the text of a file: some agents report it late."""
        known = allowed.rest
        new = self._acting.keys() - known.keys()
        if any(self.rest[key] != known[key] for key in self._acting.keys() & known.keys()):
            return True
        return bool(new) and (self.command is not None or read_input({key: self.rest[key] for key in new}).unread)


def _is_inert(key: str, value: object) -> bool:
    return key in _INERT or (isinstance(value, str) and value in _INERT_VALUES.get(key, ()))


def read_input(raw: object, base: str = WORKSPACE) -> CallInput:
    """Never fails: what has no known form is in `rest`. `base` is the folder in which the agent works.

    An agent that works elsewhere than in the workspace has a folder in every call, as if it had named it.
    """
    if raw is None:
        return CallInput(folder=_find_folder(None, base))
    rest = dict(raw) if isinstance(raw, dict) else {"input": raw}
    command = _take_command(rest)
    if command is None:
        return _read_file_input(rest, base)
    folder = _find_folder(_take(rest, _FOLDER, str), base)
    environment = _take(rest, _ENVIRONMENT, dict, list, str)
    return CallInput(command, folder, environment, _take(rest, _STDIN, str), rest=rest)


def _find_folder(given: str | None, base: str) -> str | None:
    return given if base == WORKSPACE else lexical_path(absolute_path(given or ".", base))


def _find_place(folder: str | None) -> str:
    """A call without a folder works in the workspace. Links are not followed, so `..` stays."""
    return absolute_path(folder or WORKSPACE).rstrip("/").removesuffix("/.")


def _read_file_input(rest: Json, base: str) -> CallInput:
    """The input of a call without a command. A relative path begins at the folder that is given with it."""
    folders = {name: value for name in _FOLDER if isinstance(value := rest.get(name), str) and value}
    finder = _PathFinder()
    finder.read_keys("", {name: value for name, value in rest.items() if name not in folders})
    for name, value in folders.items():
        if name not in _WORKING_FOLDER or lexical_path(absolute_path(value, base)) != base:
            finder.add(absolute_path(value, base))
    places = {lexical_path(absolute_path(value, base)) for value in folders.values()}
    unread = finder.unread or len(places) > 1
    folder = _find_folder(next(iter(folders.values()), None), base)
    return CallInput(None, folder, paths=tuple(finder.paths), rest=rest, opaque=finder.opaque, unread=unread)


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


class _PathFinder:
    """Collects every text that could name a file, and says whether there is a text that it does not understand."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.opaque = False
        self.unread = False

    def add(self, path: str | None) -> None:
        if path is None or len(path) > MAX_PATH or len(self.paths) >= MAX_PATHS:
            self.opaque = True
        else:
            self.paths[path] = None

    def read_keys(self, key: str, value: Mapping[str, object]) -> None:
        names_files = _PATH_KEY.search(key) is not None
        for name, inside in value.items():
            is_known = name in _KNOWN_KEYS or _PATH_KEY.search(name)
            if not _IS_NAME.fullmatch(name) or (names_files and not is_known):
                self.add(name)
            self._read(name, inside)

    def _read(self, key: str, value: object) -> None:
        if isinstance(value, dict):
            self.read_keys(key, value)
        elif isinstance(value, list):
            for each in value:
                self._read(key, each)
        elif isinstance(value, str) and value:
            self._read_text(key, value)

    def _read_text(self, key: str, value: str) -> None:
        for path in find_patched_paths(value):
            self.add(path)
        if key in _TEXT_KEYS or key in _LABEL_KEYS:
            return
        if key in _FILTER_KEYS:
            if value.startswith(_PATH_BEGIN) or ".." in value.split("/"):
                self.add(value)
        elif key in _FOLDER:
            self.unread = True
        elif _PATH_KEY.search(key):
            if value.startswith(("http://", "https://")):
                self.unread = True
            else:
                self.add(value)
        else:
            self.unread = True
            if value.startswith(_PATH_BEGIN) and "\n" not in value:
                self.add(value)
