"""History for other processes: one shape of questions and answers, the same over the keeper's socket, HTTP and the command line.

Everything in and out is plain JSON. Paths are spelled as `names.show_name` spells them.
"""

import base64
import sqlite3
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Literal, TypeVar, get_args

from freehold.errors import FreeholdError
from freehold.history.diffing import FileDiff
from freehold.history.history import History
from freehold.history.model import By, Change, Conflict, Entry, Kind, Outcome, Plan, Step, Turn, Who
from freehold.history.names import show_name
from freehold.history.planning import describe
from freehold.history.snapshots import explained
from freehold.history.stream import Changes

Json = dict[str, Any]
T = TypeVar("T")

MAX_LISTED = 5000
MAX_WORDS = 4000
MAX_SHOWN = 4 << 20
MAX_TEXT = 4 << 20
"""Characters in one answer's list: hostile names and files are long, and the owner's answer is to arrive all the same."""


class Fields:
    """A strict reader of one question: a wrong type or an unknown field is refused by name."""

    def __init__(self, method: str, params: Mapping[str, Any]) -> None:
        self._method = method
        self._left = dict(params)

    def take(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        value = self._left.pop(name, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self._refused(f"'{name}' is not {kind.__name__}")
        return value

    def need(self, name: str, kind: type[T]) -> T:
        value = self.take(name, kind)
        if value is None:
            raise self._refused(f"'{name}' is missing")
        return value

    def one_of(self, name: str, known: tuple[str, ...], default: str) -> Any:
        value = self.take(name, str, default)
        if value not in known:
            raise self._refused(f"'{name}' is {value!r}, not one of {', '.join(known)}")
        return value

    def text(self, name: str) -> str | None:
        """Free words, of which the beginning is enough."""
        value = self.take(name, str)
        return value if value is None or len(value) <= MAX_WORDS else value[:MAX_WORDS] + "…"

    def texts(self, name: str) -> list[str]:
        value = self.take(name, list, [])
        if not all(isinstance(each, str) for each in value or []):
            raise self._refused(f"'{name}' is not a list of strings")
        return value or []

    def who(self) -> Who:
        inner = Fields(self._method, self.take("who", dict, {}) or {})
        who = Who(
            by=inner.one_of("by", get_args(By), "unknown"),
            agent=inner.take("agent", str),
            session=inner.take("session", str),
            turn=inner.take("turn", str),
            prompt=inner.text("prompt"),
            terminal=inner.take("terminal", str),
        )
        inner.end()
        return who

    def turn(self, name: str) -> Turn | None:
        given = self.take(name, dict)
        if given is None:
            return None
        inner = Fields(self._method, given)
        found = Turn(inner.need("session", str), str(inner.need("turn", int)))
        inner.end()
        return found

    def end(self) -> None:
        if self._left:
            raise self._refused(f"'{next(iter(self._left))}' is not known")

    def _refused(self, what: str) -> FreeholdError:
        return FreeholdError("history.bad-request", f"{self._method}: {what}")


class HistoryService:
    """`handle` blocks as long as the work takes: call it from a thread. Raises FreeholdError only."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._methods: dict[str, Callable[[Fields], Json]] = {
            "history.status": self._status,
            "history.mark": self._mark,
            "history.note": self._note,
            "history.forget": self._forget,
            "history.snapshot": self._snapshot,
            "history.log": self._log,
            "history.changes": self._changes,
            "history.diff": self._diff,
            "history.compare": self._compare,
            "history.show": self._show,
            "history.undo": self._undo,
            "history.redo": self._redo,
            "history.restore": self._restore,
            "history.revert": self._revert,
            "history.recover": self._recover,
            "history.good": self._good,
            "history.verify": self._verify,
            "history.size": self._size,
            "history.collect": self._collect,
            "history.files": self._files,
        }

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self._methods)

    def handle(self, method: str, params: Mapping[str, Any]) -> Json:
        action = self._methods.get(method)
        if action is None:
            raise FreeholdError(
                "history.no-such-method",
                f"There is no method '{method}'",
                hint=f"The methods are: {', '.join(self._methods)}",
            )
        try:
            return action(Fields(method, params))
        except (sqlite3.OperationalError, OSError) as error:
            raise explained(error) from error

    def _status(self, fields: Fields) -> Json:
        fields.end()
        interrupted = self._history.interrupted()
        return {
            "newest": self._history.newest(),
            "watching": self._history.degraded is None,
            "degraded": self._history.degraded,
            "interrupted": None
            if interrupted is None
            else {
                "kind": interrupted.kind,
                "began": interrupted.began,
                "before": interrupted.before,
                "target": interrupted.target,
            },
            "notices": [asdict(notice) for notice in self._history.notices()],
            "sequence": self._history.stream.sequence,
            "roots": {show_name(name): str(path) for name, path in self._history.roots.items()},
        }

    def _mark(self, fields: Fields) -> Json:
        phase: Literal["before", "after"] = fields.one_of("phase", ("before", "after"), "")
        kind: Kind = fields.one_of("kind", ("turn", "command"), "turn")
        who, why = fields.who(), fields.text("why") or ""
        fields.end()
        return asdict(self._history.mark(phase, kind, who, why))

    def _note(self, fields: Fields) -> Json:
        phase: Literal["before", "during", "after"] = fields.one_of("phase", ("before", "during", "after"), "")
        who, why = fields.who(), fields.text("why") or ""
        fields.end()
        self._history.note(phase, who, why)
        return {}

    def _forget(self, fields: Fields) -> Json:
        by: By = fields.one_of("by", get_args(By), "")
        fields.end()
        self._history.forget_doers(by)
        return {}

    def _snapshot(self, fields: Fields) -> Json:
        who, why = fields.who(), fields.text("why") or ""
        fields.end()
        return asdict(self._history.snapshot("snapshot", who, why))

    def _log(self, fields: Fields) -> Json:
        path, limit, before = fields.take("path", str), fields.take("limit", int, 50), fields.take("before", int)
        fields.end()
        entries = self._history.log(path, limit=max(1, min(limit or 50, 1000)), before=before)
        return {"entries": [entry_json(entry) for entry in entries]}

    def _changes(self, fields: Fields) -> Json:
        entry, limit = fields.need("entry", int), fields.take("limit", int, 1000) or 1000
        fields.end()
        changes = [change for change in self._history.changes(entry) if not change.only_folder_time]
        return {
            "entry": entry_json(self._history.entry(entry)),
            "changes": bounded(changes[: min(limit, MAX_LISTED)], change_json),
            "total": len(changes),
        }

    def _diff(self, fields: Fields) -> Json:
        entry, path = fields.need("entry", int), fields.take("path", str)
        limit = min(fields.take("limit", int, 200) or 200, MAX_LISTED)
        fields.end()
        diffs, total = self._history.diff(entry, path, limit=limit)
        return {
            "entry": entry_json(self._history.entry(entry)),
            "files": bounded(diffs, diff_json),
            "total": total,
        }

    def _compare(self, fields: Fields) -> Json:
        """Between the states of two entries: `old`, the last known good one, or the one before `new`; and `new`."""
        new, old, good = fields.need("new", int), fields.take("old", int), fields.take("good", bool, False)
        path, limit = fields.take("path", str), min(fields.take("limit", int, 200) or 200, MAX_LISTED)
        fields.end()
        if old is None:
            old = self._history.last_good() if good else self._history.before(new)
        diffs, total = self._history.compare(old, new, path, limit=limit)
        return {
            "old": entry_json(self._history.entry(old)) if old else None,
            "new": entry_json(self._history.entry(new)),
            "files": bounded(diffs, diff_json),
            "total": total,
        }

    def _show(self, fields: Fields) -> Json:
        """A file as it was, at most MAX_SHOWN bytes from `offset` on; `more` says whether to ask again."""
        entry, path, offset = fields.need("entry", int), fields.need("path", str), fields.take("offset", int, 0) or 0
        fields.end()
        version = self._history.version(entry, path)
        if version is None:
            raise FreeholdError(
                "history.unknown-path",
                f"{path} was not there in entry {entry}",
                hint=f"freehold log {path} lists the entries that have it",
            )
        found: Json = {
            "path": path,
            "what": describe(version),
            "mode": stat.S_IMODE(version.mode),
            "mtime": version.mtime,
            "size": version.size,
        }
        if version.content is not None:
            data = self._history.read_range(version.content, max(0, offset), MAX_SHOWN)
            found |= {
                "base64": base64.b64encode(data).decode(),
                "offset": offset,
                "more": offset + len(data) < version.size,
            }
        return found

    def _undo(self, fields: Fields) -> Json:
        entry, dry_run, who = fields.take("entry", int), fields.take("dry_run", bool, False), fields.who()
        fields.end()
        if dry_run:
            return plan_json(self._history.plan_undo(entry))
        return outcome_json(self._history.undo(entry, who))

    def _redo(self, fields: Fields) -> Json:
        dry_run, who = fields.take("dry_run", bool, False), fields.who()
        fields.end()
        return plan_json(self._history.plan_redo()) if dry_run else outcome_json(self._history.redo(who))

    def _restore(self, fields: Fields) -> Json:
        entry, paths = fields.need("entry", int), fields.texts("paths")
        dry_run, who = fields.take("dry_run", bool, False), fields.who()
        fields.end()
        if dry_run:
            return plan_json(self._history.plan_restore(entry, paths))
        return outcome_json(self._history.restore(entry, paths, who))

    def _revert(self, fields: Fields) -> Json:
        entry, choose = fields.need("entry", int), fields.take("choose", dict, {}) or {}
        since, dry_run, who = fields.take("since", int), fields.take("dry_run", bool, False), fields.who()
        of = fields.turn("of")
        fields.end()
        choices = {str(path): str(choice) for path, choice in choose.items()}
        if dry_run:
            return plan_json(self._history.plan_revert(entry, choices, since, of))
        return outcome_json(self._history.revert(entry, choices, who, since, of))

    def _recover(self, fields: Fields) -> Json:
        finish, who = fields.need("finish", bool), fields.who()
        fields.end()
        return outcome_json(self._history.recover(finish=finish, who=who))

    def _good(self, fields: Fields) -> Json:
        entry, good = fields.take("entry", int), fields.take("good", bool, True)
        fields.end()
        return {"entry": entry_json(self._history.set_good(entry, good=good is not False))}

    def _verify(self, fields: Fields) -> Json:
        fields.end()
        found = self._history.verify()
        damages = [
            {
                "content": damage.content,
                "reason": damage.reason,
                "touches": [
                    {"path": show_name(each.path), "first": each.first, "last": each.last} for each in damage.touches
                ],
            }
            for damage in found.damages
        ]
        return {"contents": found.contents, "bytes": found.bytes_read, "damages": damages}

    def _size(self, fields: Fields) -> Json:
        fields.end()
        return asdict(self._history.size())

    def _collect(self, fields: Fields) -> Json:
        fields.end()
        return asdict(self._history.collect())

    def _files(self, fields: Fields) -> Json:
        """File changes after a sequence number, at once or within `wait` seconds; see `stream.Changes`."""
        after, wait = fields.need("after", int), fields.take("wait", float, 0.0) or 0.0
        fields.end()
        return changes_json(self._history.stream.read(after, min(wait, 30.0)))


def bounded(items: Iterable[T], to_json: Callable[[T], Json]) -> list[Json]:
    found: list[Json] = []
    room = MAX_TEXT
    for item in items:
        made = to_json(item)
        room -= sum(len(value) for value in made.values() if isinstance(value, str))
        if room < 0 and found:
            break
        found.append(made)
    return found


def changes_json(changes: Changes) -> Json:
    items = [{"sequence": item.sequence, "path": show_name(item.path), "word": item.word} for item in changes.items]
    return {"sequence": changes.sequence, "relist": changes.relist, "items": items}


def entry_json(entry: Entry) -> Json:
    return asdict(entry) | {
        "who": {key: value for key, value in asdict(entry.who).items() if value is not None},
        "notes": list(entry.notes),
    }


def change_json(change: Change) -> Json:
    either = change.new or change.old
    return {"path": show_name(change.path), "word": change.word, "what": describe(either) if either else ""}


def diff_json(diff: FileDiff) -> Json:
    return asdict(diff) | {"path": show_name(diff.path), "text": diff.text.decode("utf-8", "backslashreplace")}


def step_json(step: Step) -> Json:
    return {"path": show_name(b"/".join(step.path)), "fate": step.fate, "detail": step.detail}


def conflict_json(conflict: Conflict) -> Json:
    return {"path": show_name(b"/".join(conflict.path)), "reason": conflict.reason}


def plan_json(plan: Plan) -> Json:
    """A folder whose time alone is put back is nothing an owner would call changed."""
    steps = [step for step in plan.steps if not (step.fate == "time" and step.live is not None and step.live.is_folder)]
    return {
        "kind": plan.kind,
        "target": plan.target,
        "steps": bounded(steps[:MAX_LISTED], step_json),
        "total": len(steps),
        "conflicts": bounded(plan.conflicts[:MAX_LISTED], conflict_json),
        "shared": plan.shared,
    }


def outcome_json(outcome: Outcome) -> Json:
    unsettled = bounded(outcome.unsettled[:MAX_LISTED], lambda each: {"path": show_name(each[0]), "reason": each[1]})
    return {
        "entry": entry_json(outcome.entry),
        "done": outcome.done,
        "unsettled": unsettled,
        "total_unsettled": len(outcome.unsettled),
    }
