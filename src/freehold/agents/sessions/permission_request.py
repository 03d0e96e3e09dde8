"""A permission request: what the agent wants to do, whole and with nothing hidden."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.call_input import MAX_PATH, MAX_PATHS, CallInput, read_input
from freehold.agents.sessions.patch_headers import find_patched_paths
from freehold.agents.sessions.real_paths import RealPath, absolute_path, lexical_path
from freehold.agents.sessions.request_parts import PartsBuilder, PathMarks, RequestPart
from freehold.agents.sessions.self_running_files import describe_self_running, find_self_running_words
from freehold.agents.sessions.tool_call import MAX_ID, read_kind
from freehold.agents.visible_text import make_visible
from freehold.computer.contract.conventions import WORKSPACE

MAX_SHOWN_TITLE = 500
MAX_AGENT_OPTIONS = 20
MAX_OPTION_NAME = 300
_FILE_KINDS = frozenset({"read", "edit", "delete", "move", "search"})
_READING_KINDS = frozenset({"read", "search"})
_KNOWN_FIELDS = frozenset({"title", "kind", "locations", "content", "rawInput", "_meta"})
_ODD_PATH = re.compile(r"^~[^/]|^\$|\\")
"""The home of another user, a variable, or a separator of other systems: some programs replace these."""

_META_LABELS = frozenset({"toolName", "parentToolUseId", "progressToken", "timestamp"})


@dataclass(frozen=True)
class PermissionRequest:
    """One action to allow. `digest` identifies it: a call that changes in anything becomes another request.

    Permission rules match `subjects`: the command, or each path and the place where it leads. They are empty when no
    rule can cover the whole call. Of `exact_only` a rule must name each by itself: no pattern covers it. Rules that
    deny or ask look at `aliases` as well.
    """

    kind: str
    title: str
    details: Json
    subjects: tuple[str, ...]
    digest: str
    tool: str | None = None
    exact_only: frozenset[str] = frozenset()
    aliases: tuple[str, ...] = ()
    parts: tuple[RequestPart, ...] = ()
    hidden_bytes: int = 0
    names_nothing: bool = False
    runs_by_itself: bool = False
    asked_again: bool = False
    lasting: bool = True
    agent_options: tuple[Json, ...] = ()

    def as_json(self) -> Json:
        """What is stored and shown."""
        return {
            "tool": self.tool,
            "kind": self.kind,
            "title": self.title,
            "details": self.details,
            "digest": self.digest,
            "parts": [part.as_json() for part in self.parts],
            "complete": self.hidden_bytes == 0,
            "hidden_bytes": self.hidden_bytes,
            "names_nothing": self.names_nothing,
            "runs_by_itself": self.runs_by_itself,
            "asked_again": self.asked_again,
            "agent_options": list(self.agent_options),
        }


@dataclass(frozen=True)
class AskedCall:
    """A tool call as it is at one moment, and what the request about it carries beside it."""

    tool: str
    whole: Mapping[str, Any]
    more: Mapping[str, Any] = field(default_factory=dict)
    options: object = None
    folder: str = WORKSPACE
    """Where the agent works."""

    @property
    def kind(self) -> str:
        return read_kind(self.whole) or "other"

    @property
    def title(self) -> str:
        title = self.whole.get("title")
        return title if isinstance(title, str) else ""

    @cached_property
    def input(self) -> CallInput:
        return read_input(self.whole.get("rawInput"), self.folder)

    @property
    def blocks(self) -> list[Any]:
        content = self.whole.get("content")
        return content if isinstance(content, list) else []

    @cached_property
    def diffs(self) -> list[Json]:
        return [one for one in self.blocks if _is_diff(one)]

    @property
    def changed_paths(self) -> list[Any]:
        """Of every change, also of one that cannot be drawn."""
        return [one.get("path") for one in self.blocks if isinstance(one, dict) and one.get("type") == "diff"]

    def find_absolute(self, path: str) -> str:
        return absolute_path(path, absolute_path(self.input.folder or "."))

    def list_paths(self) -> tuple[list[str], bool]:
        """Every path of the call as the agent wrote it, and whether these are all."""
        given = self.input
        places = self.whole.get("locations")
        located = [one.get("path") for one in places if isinstance(one, dict)] if isinstance(places, list) else []
        named = [*self.changed_paths, *located, *given.paths]
        patched: list[str | None] = []
        for one in self.blocks:
            if isinstance(one, dict) and one.get("type") == "content" and self.kind not in ("execute", *_READING_KINDS):
                patched += find_patched_paths(_block_text(one.get("content")) or "")
        named += patched
        paths = list(dict.fromkeys(path for path in named if isinstance(path, str) and path))
        is_read = not given.opaque and None not in patched
        whole = is_read and len(paths) <= MAX_PATHS and all(len(path) <= MAX_PATH for path in paths)
        return [path for path in paths[:MAX_PATHS] if len(path) <= MAX_PATH], whole


@dataclass(frozen=True)
class NamedPath:
    """A path of a call: as the agent wrote it, from the root, and where it leads (None: not found out)."""

    written: str
    absolute: str
    real: RealPath | None
    marks: PathMarks


@dataclass(frozen=True)
class NamedPaths:
    """The paths of a call. `complete` is false when it names more than are listed."""

    paths: tuple[NamedPath, ...]
    complete: bool

    def find(self, absolute: str) -> PathMarks:
        return next((one.marks for one in self.paths if one.absolute == absolute), PathMarks())

    @property
    def run_by_themselves(self) -> bool:
        return any(one.marks.runs_by_itself for one in self.paths)


def describe_paths(call: AskedCall, real: Sequence[RealPath | None]) -> NamedPaths:
    """`real` says where each of `call.list_paths` leads."""
    reads_only = call.kind in _READING_KINDS and not call.changed_paths and call.input.command is None
    written, complete = call.list_paths()
    found = []
    for path, place in zip(written, real, strict=True):
        absolute = call.find_absolute(path)
        found.append(NamedPath(path, absolute, place, _describe_path(path, absolute, place, reads_only=reads_only)))
    return NamedPaths(tuple(found), complete)


def build_request(call: AskedCall, named: NamedPaths, *, asked_again: bool) -> PermissionRequest:
    """The permission request of a call. Takes time for a large one: use a thread."""
    given = call.input
    builder = PartsBuilder()
    _add_command(builder, given)
    names_nothing = given.command is None and not named.paths and named.complete and not _names_address(given)
    if len(call.title) > MAX_SHOWN_TITLE or names_nothing:
        # Some agents describe the action in the title only.
        builder.add_text("text", "Title", call.title)
    _add_paths(builder, call, named)
    _add_content(builder, call, given)
    options, hidden = _read_options(call.options)
    subjects, exact_only = _find_subjects(call, given, named)
    details: Json = {}
    if given.command is not None:
        details["command"] = builder.parts[0].text
        if given.folder is not None:
            details["folder"] = make_visible(given.folder)
    return PermissionRequest(
        call.kind,
        make_visible(call.title, lines=False)[:MAX_SHOWN_TITLE],
        details,
        subjects,
        _digest(call, named),
        call.tool,
        exact_only=exact_only,
        aliases=_find_aliases(given, named),
        parts=tuple(builder.parts),
        hidden_bytes=builder.hidden_bytes + hidden,
        names_nothing=names_nothing,
        runs_by_itself=named.run_by_themselves or any(part.runs_by_itself for part in builder.parts),
        asked_again=asked_again,
        # Whatever is written later into a file that runs by itself would be allowed as well.
        lasting=not named.run_by_themselves,
        agent_options=options,
    )


def make_text_request(
    kind: str,
    title: str,
    text: str,
    subjects: tuple[str, ...] = (),
    *,
    details: Json | None = None,
    scope: str | None = None,
) -> PermissionRequest:
    """A request of a host tool, which says in words what it is for. An API token says yes only with this `scope`.

    Several scopes are separated by a space: all of them are needed.
    """
    if scope is not None:
        details = {**(details or {}), "scope": scope}
    builder = PartsBuilder()
    builder.add_text("text", "Request", text)
    identity = json.dumps([kind, title, text, details], sort_keys=True)
    return PermissionRequest(
        kind,
        make_visible(title, lines=False)[:MAX_SHOWN_TITLE],
        details or {},
        subjects,
        hashlib.sha256(identity.encode()).hexdigest(),
        parts=tuple(builder.parts),
        hidden_bytes=builder.hidden_bytes,
    )


def _digest(call: AskedCall, named: NamedPaths) -> str:
    """Of everything that the call carries, and of where its paths lead."""
    led = [None if one.real is None else [one.real.place, one.real.names] for one in named.paths]
    identity = json.dumps([dict(call.whole), dict(call.more), led, call.options], sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()


def _find_subjects(call: AskedCall, given: CallInput, named: NamedPaths) -> tuple[tuple[str, ...], frozenset[str]]:
    """What rules must cover, all of it. Nothing when a part of the call has no form that a rule can name."""
    is_plain = named.complete and all(map(_is_plain, call.blocks)) and not _find_odd_options(call.options)
    if not is_plain or _says_more(call):
        return (), frozenset()
    if call.kind == "execute":
        subject = None if call.diffs or named.run_by_themselves else given.subject
        if subject is None:
            return (), frozenset()
        marked = any(True for _ in find_self_running_words(subject))
        return (subject,), frozenset((subject,)) if marked else frozenset()
    has_other_input = call.kind not in _FILE_KINDS and call.whole.get("rawInput") is not None
    if given.command is not None or given.unread or has_other_input or _is_ambiguous(given, named):
        return (), frozenset()
    subjects: dict[str, None] = {}
    exact_only: set[str] = set()
    for one in named.paths:
        if one.real is None:
            return (), frozenset()
        both = (lexical_path(one.absolute), one.real.place)
        subjects.update(dict.fromkeys(both))
        if one.marks.runs_by_itself is not None:
            exact_only.update(both)
    return tuple(subjects), frozenset(exact_only)


def _says_more(call: AskedCall) -> bool:
    """Whether the call, or the request beside it, has a field that no rule speaks of."""
    known = all(
        name in _KNOWN_FIELDS and (name in ("rawInput", "_meta") or _is_readable(name, value))
        for name, value in call.whole.items()
    )
    return not known or not call.more.keys() <= {"_meta"} or not all(map(_is_plain_meta, (call.whole, call.more)))


def _is_plain_meta(holder: Mapping[str, Any]) -> bool:
    """Whether the metadata says no more than the name of the tool, as Claude and Qwen do."""
    meta = holder.get("_meta")
    return meta is None or (isinstance(meta, dict) and all(_is_label(name, value) for name, value in meta.items()))


def _is_label(name: str, value: object) -> bool:
    if name == "claudeCode" and isinstance(value, dict):
        return all(_is_label(inner, each) for inner, each in value.items())
    return value is None or (name in _META_LABELS and isinstance(value, str | int))


def _is_ambiguous(given: CallInput, named: NamedPaths) -> bool:
    """Agents disagree about where a relative path begins when a folder is given with it, and about odd spellings."""
    if any(_ODD_PATH.search(one.written) for one in named.paths):
        return True
    if given.folder is None or lexical_path(absolute_path(given.folder)) == WORKSPACE:
        return False
    return not all(one.written.startswith(("/", "~/", "file:///")) for one in named.paths)


def _find_aliases(given: CallInput, named: NamedPaths) -> tuple[str, ...]:
    names = [given.command] if given.command is not None else []
    for one in named.paths:
        names += [one.written, lexical_path(one.absolute), *([one.real.place] if one.real is not None else [])]
    return tuple(dict.fromkeys(names))


def _describe_path(path: str, absolute: str, place: RealPath | None, *, reads_only: bool) -> PathMarks:
    runs = None if reads_only else describe_self_running(lexical_path(absolute))
    if place is None:
        return PathMarks(None, runs, "Freehold could not find out where this path leads")
    plain = (path, f"{WORKSPACE}/{path.removeprefix('./')}")
    resolved = None if place.place in plain else place.place
    if reads_only:
        return PathMarks(resolved)
    runs = runs or describe_self_running(place.place)
    warning = None
    if place.names > 1:
        warning = f"This file has {place.names} names (hard links). A change under one name changes all of them"
        runs = runs or "a file that also has another name, and that may be one that runs by itself"
    return PathMarks(resolved, runs, warning)


def _add_command(builder: PartsBuilder, given: CallInput) -> None:
    if given.command is None:
        return
    found = dict(find_self_running_words(given.subject or ""))
    marked = "; ".join(f"{make_visible(word, lines=False)[:200]} is {what}" for word, what in list(found.items())[:5])
    builder.add_text("command", "Command", given.command, runs_by_itself=marked or None)
    if given.folder is not None:
        builder.add_text("folder", "Folder", given.folder)
    if given.environment not in (None, {}, []):
        builder.add_text("environment", "Environment", given.environment_text)
    if given.stdin:
        builder.add_text("stdin", "Standard input", given.stdin)


def _add_paths(builder: PartsBuilder, call: AskedCall, named: NamedPaths) -> None:
    """Paths and changes. Those that run by themselves come first: nothing before them can use up the space."""
    changed = {call.find_absolute(one["path"]) for one in call.diffs}
    alone = [one for one in named.paths if one.absolute not in changed]
    for path in sorted(alone, key=lambda one: one.marks.runs_by_itself is None):
        builder.add_path("Path", path.written, path.marks)
    marked = [(one, named.find(call.find_absolute(one["path"]))) for one in call.diffs]
    for one, marks in sorted(marked, key=lambda pair: pair[1].runs_by_itself is None):
        builder.add_diff(one["path"], one.get("oldText"), one["newText"], marks)
        more = {name: value for name, value in one.items() if name not in _DIFF_FIELDS}
        if more:
            builder.add_text("meta", "More about this change", _as_text(more))


def _add_content(builder: PartsBuilder, call: AskedCall, given: CallInput) -> None:
    for one in call.blocks:
        if _is_diff(one):
            continue
        text = _block_text(one.get("content")) if _is_text(one) else None
        if text is not None:
            builder.add_text("text", "Message of the agent", text)
        elif isinstance(one, dict) and one.get("type") == "terminal":
            builder.add_text("terminal", "Terminal", _as_text(one))
        else:
            builder.add_text("resource", "Attachment", _as_text(one))
    if given.rest:
        label = "Input" if given.command is None else "Other input"
        builder.add_text("input", label, _as_text(given.rest))
    other = {name: value for name, value in call.whole.items() if name not in _KNOWN_FIELDS}
    for name in ("kind", "title", "locations", "content"):
        if not _is_readable(name, call.whole.get(name)):
            other[name] = call.whole[name]
    for label, value in (
        ("Other fields", other),
        ("Metadata of the call", call.whole.get("_meta")),
        ("Beside the call", dict(call.more)),
        ("More in the agent's answers", _find_odd_options(call.options)),
    ):
        if value is not None and value != {} and value != []:
            builder.add_text("meta", label, _as_text(value))


_DIFF_FIELDS = frozenset({"type", "path", "oldText", "newText"})
_DIFF_META = tuple({"kind": kind} for kind in ("add", "modify", "delete"))
_OPTION_FIELDS = frozenset({"optionId", "name", "kind"})
_OPTION_KINDS = frozenset({"allow_once", "allow_always", "reject_once", "reject_always"})


def _is_readable(name: str, value: object) -> bool:
    """Whether the other parts show all of this field."""
    if value is None or (name == "title" and isinstance(value, str)):
        return True
    if name == "kind":
        return read_kind({"kind": value}) is not None
    if name == "content":
        return isinstance(value, list)
    if name != "locations" or not isinstance(value, list):
        return False
    return all(
        isinstance(one, dict)
        and isinstance(one.get("path"), str)
        and one.keys() <= {"path", "line"}
        and (one.get("line") is None or isinstance(one["line"], int))
        for one in value
    )


def _is_diff(one: object) -> bool:
    """Whether this is a change that can be drawn: old and new are texts."""
    return (
        isinstance(one, dict)
        and one.get("type") == "diff"
        and isinstance(one.get("path"), str)
        and isinstance(one.get("newText"), str)
        and (one.get("oldText") is None or isinstance(one["oldText"], str))
    )


def _is_text(one: object) -> bool:
    return (
        isinstance(one, dict)
        and one.get("type") == "content"
        and one.keys() <= {"type", "content"}
        and _block_text(one.get("content")) is not None
    )


def _is_plain(one: object) -> bool:
    """Whether this content says no more than a text or a change does. Gemini says the kind of a change in `_meta`."""
    if not isinstance(one, dict) or not _is_diff(one):
        return _is_text(one)
    return one.keys() <= _DIFF_FIELDS | {"_meta"} and one.get("_meta") in (None, *_DIFF_META)


def _block_text(block: object) -> str | None:
    """The text of a content block that has nothing else; None for every other block."""
    if isinstance(block, dict) and isinstance(block.get("text"), str) and block.keys() <= {"type", "text"}:
        return str(block["text"]) if block.get("type", "text") == "text" else None
    return None


def _names_address(given: CallInput) -> bool:
    return any(isinstance(given.rest.get(name), str) and "://" in given.rest[name] for name in ("url", "uri"))


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"input"} and isinstance(value["input"], str):
        return str(value["input"])
    return json.dumps(value, ensure_ascii=False, indent=1)


def _read_options(options: object) -> tuple[tuple[Json, ...], int]:
    """The agent's own answers, and the bytes of them that are not shown."""
    if not isinstance(options, list):
        return (), 0
    sent = {find_option(options, "allow_once"): "allow", find_option(options, "reject_once"): "reject"}
    found: list[Json] = []
    for one in options[:MAX_AGENT_OPTIONS]:
        if isinstance(one, dict):
            name = one.get("name") if isinstance(one.get("name"), str) else str(one.get("optionId"))
            shown = make_visible(str(name), lines=False)
            hidden = len(shown[MAX_OPTION_NAME:].encode("utf-8", "surrogatepass"))
            number = one.get("optionId")
            sent_for = sent.pop(number, None) if isinstance(number, str) else None
            kind = make_visible(str(one.get("kind")), lines=False)[:40]
            found.append({"name": shown[:MAX_OPTION_NAME], "kind": kind, "sent_for": sent_for, "hidden": hidden})
    left = len(json.dumps(options[MAX_AGENT_OPTIONS:])) if len(options) > MAX_AGENT_OPTIONS else 0
    return tuple(found), left + sum(one.pop("hidden") for one in found)


def _find_odd_options(options: object) -> list[object]:
    """The agent's answers that carry more than is shown of each answer."""
    if not isinstance(options, list):
        return [] if options is None else [options]
    return [one for one in options[:MAX_AGENT_OPTIONS] if not _is_option(one)]


def _is_option(one: object) -> bool:
    if not isinstance(one, dict):
        return False
    filled = {name: value for name, value in one.items() if value is not None}
    is_known = filled.keys() <= _OPTION_FIELDS and all(isinstance(value, str) for value in filled.values())
    return is_known and filled.get("kind") in _OPTION_KINDS and len(filled.get("optionId", "")) <= MAX_ID


def find_option(options: object, kind: str) -> str | None:
    """The agent's id for an answer. The agent never gets a lasting yes: Freehold keeps the permission rules."""
    for one in options if isinstance(options, list) else []:
        if isinstance(one, dict) and one.get("kind") == kind and isinstance(one.get("optionId"), str):
            return str(one["optionId"])
    return None
