"""Answers the calls of `history.calls`: for the keeper's socket, for its HTTP routes and for the command line.

Paths in replies are written as `names.show_name` writes them. Long lists are cut, so that every reply fits on the wire.
"""

import base64
import json
import sqlite3
import stat
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from freehold.errors import FreeholdError
from freehold.history import calls, copy_calls
from freehold.history.diff import FileDiff, diff_change
from freehold.history.fates import (
    DONE_WORDS,
    PLANNED_WORDS,
    FateGroup,
    count_fates,
    list_planned_fates,
    summarize_fates,
)
from freehold.history.history import History
from freehold.history.model import (
    CollectionResult,
    PathChange,
    PathFate,
    RestorePlan,
    RestoreResult,
    RevertConflict,
    SessionTurn,
    SnapshotResult,
    StoreSize,
)
from freehold.history.names import show_name
from freehold.history.restore_plan import describe_version
from freehold.history.snapshot import explain_store_error
from freehold.history.stream import FileChangeBatch
from freehold.strict_json import encode
from freehold.typed_call import NoResult, TypedCall, decode_request

Reply = TypeVar("Reply")
T = TypeVar("T")
R = TypeVar("R")

MAX_LISTED_PATHS = 5000
MAX_LISTED_ENTRIES = 1000
MAX_SHOWN_BYTES = 4 << 20
MAX_PART_BYTES = 1 << 20
MAX_PART_FILES = 500
MAX_REPLY_CHARS = 4 << 20
"""Characters of JSON in the list of one reply. Names and files chosen by an attacker can be long; the reply must still arrive."""


class HistoryService:
    """`answer` blocks as long as the work takes: call it from a thread. Raises FreeholdError only."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._answers: dict[type[TypedCall[Any]], Callable[[Any], object]] = {
            calls.GetHistoryStatus: self._status,
            calls.MarkFiles: self._mark,
            calls.NoteAuthor: self._note,
            calls.ForgetAuthors: self._forget,
            calls.TakeSnapshot: self._snapshot,
            calls.ListEntries: self._log,
            calls.ListEntryChanges: self._changes,
            calls.DiffEntry: self._diff,
            calls.CompareEntries: self._compare,
            calls.ShowFile: self._show,
            calls.PlanUndo: self._plan_undo,
            calls.UndoChanges: self._undo,
            calls.PlanRedo: self._plan_redo,
            calls.RedoChanges: self._redo,
            calls.PlanRestore: self._plan_restore,
            calls.RestoreEntry: self._restore,
            calls.PlanRevert: self._plan_revert,
            calls.RevertEntry: self._revert,
            calls.RecoverRestore: self._recover,
            copy_calls.CheckOutFolder: self._check_out,
            copy_calls.FindFolder: self._find_folder,
            copy_calls.CollectCopy: self._collect_copy,
            copy_calls.CompareChangeSet: self._compare_change_set,
            copy_calls.ReadChangeSet: self._read_change_set,
            copy_calls.MergeChangeSet: self._merge,
            copy_calls.DropCopy: self._drop_copy,
            calls.ListRestores: self._restores,
            calls.CancelRestore: self._cancel,
            calls.SetEntryGood: self._good,
            calls.VerifyHistory: self._verify,
            calls.MeasureHistory: self._size,
            calls.CollectGarbage: self._collect,
        }

    @property
    def call_types(self) -> tuple[type[TypedCall[Any]], ...]:
        return tuple(self._answers)

    def release_memory(self) -> None:
        """After a long call: give back the memory that it needed."""
        self._history.release_memory()

    def answer(self, call: TypedCall[Reply]) -> Reply:
        try:
            return cast("Reply", self._answers[type(call)](call))
        except (sqlite3.OperationalError, OSError) as error:
            raise explain_store_error(error) from error

    def read_call(self, method: str, params: Mapping[str, Any]) -> TypedCall[Any]:
        """The call that a method's name and its JSON parameters describe."""
        for shape in self._answers:
            if shape.method == method:
                return decode_request(shape, dict(params), "history.bad-request")
        raise FreeholdError(
            "history.no-such-method",
            f"There is no method '{method}'",
            hint=f"The methods are: {', '.join(shape.method for shape in self._answers)}",
        )

    def handle(self, method: str, params: Mapping[str, Any]) -> Any:
        """`answer` in plain JSON."""
        return encode(self.answer(self.read_call(method, params)))

    def _status(self, _: calls.GetHistoryStatus) -> calls.HistoryStatus:
        found = self._history.interrupted()
        interrupted = None
        if found is not None:
            interrupted = calls.InterruptedState(found.kind, found.began, found.before, found.target, found.who)
        return calls.HistoryStatus(
            newest=self._history.newest(),
            watching=self._history.degraded is None,
            degraded=self._history.degraded,
            interrupted=interrupted,
            notices=tuple(self._history.notices()),
            sequence=self._history.stream.sequence,
            roots={show_name(name): str(path) for name, path in self._history.roots.items()},
        )

    def _mark(self, call: calls.MarkFiles) -> SnapshotResult:
        return self._history.mark(call.phase, call.kind, call.who.as_author(), calls.shorten(call.why))

    def _note(self, call: calls.NoteAuthor) -> NoResult:
        self._history.note(call.phase, call.who.as_author(), calls.shorten(call.why))
        return NoResult()

    def _forget(self, call: calls.ForgetAuthors) -> NoResult:
        self._history.forget_activities(call.by)
        return NoResult()

    def _snapshot(self, call: calls.TakeSnapshot) -> SnapshotResult:
        return self._history.snapshot("snapshot", call.who.as_author(), calls.shorten(call.why))

    def _log(self, call: calls.ListEntries) -> calls.EntryList:
        limit = max(1, min(call.limit, MAX_LISTED_ENTRIES))
        return calls.EntryList(tuple(self._history.log(call.path, limit=limit, before=call.before)))

    def _changes(self, call: calls.ListEntryChanges) -> calls.EntryChanges:
        changes = [change for change in self._history.changes(call.entry) if not change.is_only_time]
        shown = changes[: _limit_paths(call.limit)]
        return calls.EntryChanges(self._history.entry(call.entry), bound_list(shown, _changed_path), len(changes))

    def _diff(self, call: calls.DiffEntry) -> calls.EntryDiff:
        diffs, total = self._history.diff(call.entry, call.path, limit=_limit_paths(call.limit))
        return calls.EntryDiff(self._history.entry(call.entry), bound_list(diffs, _diff_text), total)

    def _compare(self, call: calls.CompareEntries) -> calls.EntryComparison:
        old = call.old
        if old is None:
            old = self._history.last_good() if call.good else self._history.before(call.new)
        limit, skip = _limit_paths(call.limit), max(0, call.skip)
        diffs, total = self._history.compare(old, call.new, call.path, limit=limit, skip=skip)
        return calls.EntryComparison(
            old=self._history.entry(old) if old else None,
            new=self._history.entry(call.new),
            files=bound_list(diffs, _diff_text),
            total=total,
        )

    def _show(self, call: calls.ShowFile) -> calls.FileVersion:
        """At most MAX_SHOWN_BYTES from `offset` on."""
        version = self._history.version(call.entry, call.path)
        if version is None:
            raise FreeholdError(
                "history.unknown-path",
                f"Entry {call.entry} has no {call.path}",
                hint=f"freehold log {call.path} lists the entries that have it",
            )
        content: str | None = None
        offset: int | None = None
        more = False
        if version.content is not None:
            offset = max(0, call.offset)
            data = self._history.read_range(version.content, offset, MAX_SHOWN_BYTES)
            content, more = base64.b64encode(data).decode(), offset + len(data) < version.size
        return calls.FileVersion(
            path=call.path,
            what=describe_version(version),
            mode=stat.S_IMODE(version.mode),
            mtime=version.mtime,
            size=version.size,
            base64=content,
            offset=offset,
            more=more,
        )

    def _plan_undo(self, call: calls.PlanUndo) -> calls.RestorePreview:
        return _preview(self._history.plan_undo(call.entry))

    def _undo(self, call: calls.UndoChanges) -> calls.RestoreReport:
        return _report(self._history.undo(call.entry, call.who.as_author(), restore_id=call.restore_id))

    def _plan_redo(self, _: calls.PlanRedo) -> calls.RestorePreview:
        return _preview(self._history.plan_redo())

    def _redo(self, call: calls.RedoChanges) -> calls.RestoreReport:
        return _report(self._history.redo(call.who.as_author(), restore_id=call.restore_id))

    def _plan_restore(self, call: calls.PlanRestore) -> calls.RestorePreview:
        return _preview(self._history.plan_restore(call.entry, call.paths))

    def _restore(self, call: calls.RestoreEntry) -> calls.RestoreReport:
        who = call.who.as_author()
        return _report(self._history.restore(call.entry, call.paths, who, restore_id=call.restore_id))

    def _plan_revert(self, call: calls.PlanRevert) -> calls.RestorePreview:
        return _preview(self._history.plan_revert(call.entry, call.choose, call.since, _session_turn(call.of)))

    def _revert(self, call: calls.RevertEntry) -> calls.RestoreReport:
        turn, who = _session_turn(call.of), call.who.as_author()
        return _report(self._history.revert(call.entry, call.choose, who, call.since, turn, restore_id=call.restore_id))

    def _recover(self, call: calls.RecoverRestore) -> calls.RestoreReport:
        who = call.who.as_author()
        return _report(self._history.recover(finish=call.finish, who=who, restore_id=call.restore_id))

    def _check_out(self, call: copy_calls.CheckOutFolder) -> copy_calls.WorkingCopyReply:
        made = self._history.check_out(call.name, call.folder, call.entry)
        return copy_calls.WorkingCopyReply(made.name, made.base)

    def _find_folder(self, call: copy_calls.FindFolder) -> calls.EntryReply:
        return calls.EntryReply(self._history.find_folder(call.folder, call.entry))

    def _collect_copy(self, call: copy_calls.CollectCopy) -> copy_calls.ChangeSetReply:
        done = self._history.collect_copy(call.name)
        words = [change.word for change in _list_files(self._history.read_change_set(call.name)[1])]
        counts = (words.count("added"), words.count("changed"), words.count("removed"))
        return copy_calls.ChangeSetReply(call.name, *counts, done.skipped)

    def _compare_change_set(self, call: copy_calls.CompareChangeSet) -> copy_calls.ChangeSetDiff:
        changes = _list_files(self._history.read_change_set(call.name)[1])
        conflicts = self._history.plan_merge(call.name).conflicts
        diffs = [diff_change(change, self._history.read) for change in changes[: _limit_paths(call.limit)]]
        return copy_calls.ChangeSetDiff(bound_list(diffs, _diff_text), len(changes), bound_list(conflicts, _conflict))

    def _read_change_set(self, call: copy_calls.ReadChangeSet) -> copy_calls.ChangeSetPart:
        changes = _list_files(self._history.read_change_set(call.name)[1])
        index, offset, room = max(0, call.index), max(0, call.offset), MAX_PART_BYTES
        files: list[copy_calls.ChangeSetFile] = []
        while index < len(changes) and room > 0 and len(files) < MAX_PART_FILES:
            change = changes[index]
            new = change.new
            if new is None or new.content is None:
                index, offset = index + 1, 0
                continue
            data = self._history.read_range(new.content, offset, room)
            text = base64.b64encode(data).decode()
            files.append(copy_calls.ChangeSetFile(show_name(change.path), new.mode, new.size, offset, text))
            room -= len(data)
            offset += len(data)
            if offset >= new.size or not data:
                index, offset = index + 1, 0
        return copy_calls.ChangeSetPart(tuple(files), index if index < len(changes) else None, offset)

    def _merge(self, call: copy_calls.MergeChangeSet) -> copy_calls.MergeReply:
        result = self._history.merge(call.name, call.who.as_author(), calls.shorten(call.why), force=call.force)
        if result is not None:
            return copy_calls.MergeReply(result.entry.id)
        return copy_calls.MergeReply(self._history.read_change_set(call.name)[0].merged or 0)

    def _drop_copy(self, call: copy_calls.DropCopy) -> NoResult:
        self._history.drop_copy(call.name)
        return NoResult()

    def _restores(self, _: calls.ListRestores) -> calls.ActiveRestores:
        return calls.ActiveRestores(self._history.list_restores())

    def _cancel(self, call: calls.CancelRestore) -> calls.RestoreCancellation:
        return calls.RestoreCancellation(self._history.cancel_restore(call.restore_id))

    def _good(self, call: calls.SetEntryGood) -> calls.EntryReply:
        return calls.EntryReply(self._history.set_good(call.entry, good=call.good))

    def _verify(self, _: calls.VerifyHistory) -> calls.VerificationReport:
        found = self._history.verify()
        damages = tuple(
            calls.ContentDamageReport(
                damage.content,
                damage.reason,
                tuple(calls.DamagedPath(show_name(each.path), each.first, each.last) for each in damage.touches),
            )
            for damage in found.damages
        )
        return calls.VerificationReport(found.contents, found.bytes_read, damages)

    def _size(self, _: calls.MeasureHistory) -> StoreSize:
        return self._history.size()

    def _collect(self, _: calls.CollectGarbage) -> CollectionResult:
        return self._history.collect()


def bound_list(items: Iterable[T], convert: Callable[[T], R]) -> tuple[R, ...]:
    """The first of the items, converted, of which the text fits into MAX_REPLY_CHARS; always one."""
    found: list[R] = []
    room = MAX_REPLY_CHARS
    for item in items:
        made = convert(item)
        room -= sum(len(json.dumps(value)) for value in vars(made).values() if isinstance(value, str))
        if room < 0 and found:
            break
        found.append(made)
    return tuple(found)


def list_changed_files(batch: FileChangeBatch) -> calls.ChangedFiles:
    items = tuple(calls.ChangedFile(item.sequence, show_name(item.path), item.word) for item in batch.items)
    return calls.ChangedFiles(batch.sequence, batch.relist, items)


def _list_files(changes: Iterable[PathChange]) -> list[PathChange]:
    """Without folders, which come and go with what is in them."""
    return [
        change for change in changes if not all(side is None or side.is_folder for side in (change.old, change.new))
    ]


def _limit_paths(limit: int) -> int:
    return max(1, min(limit, MAX_LISTED_PATHS))


def _session_turn(turn: calls.TurnReference | None) -> SessionTurn | None:
    return None if turn is None else SessionTurn(turn.session, str(turn.turn))


def _changed_path(change: PathChange) -> calls.ChangedPath:
    either = change.new or change.old
    return calls.ChangedPath(show_name(change.path), change.word, describe_version(either) if either else "")


def _diff_text(diff: FileDiff) -> calls.FileDiffText:
    text = diff.text.decode("utf-8", "backslashreplace")
    return calls.FileDiffText(**vars(diff) | {"path": show_name(diff.path), "text": text})


def _planned_fate(fate: PathFate) -> calls.ShownFate:
    return calls.ShownFate(show_name(fate.path), fate.fate, PLANNED_WORDS[fate.fate], fate.detail)


def _final_fate(fate: PathFate) -> calls.ShownFate:
    return calls.ShownFate(show_name(fate.path), fate.fate, DONE_WORDS[fate.fate], fate.detail)


def _conflict(conflict: RevertConflict) -> calls.PathReason:
    return calls.PathReason(show_name(b"/".join(conflict.path)), conflict.reason)


def _unsettled(pair: tuple[bytes, str]) -> calls.PathReason:
    return calls.PathReason(show_name(pair[0]), pair[1])


def _kept_path(pair: tuple[bytes, str]) -> calls.KeptPath:
    return calls.KeptPath(show_name(pair[0]), pair[1])


def _as_text_keys(counts: Mapping[FateGroup, int]) -> dict[str, int]:
    return {str(group): count for group, count in counts.items()}


def _preview(plan: RestorePlan) -> calls.RestorePreview:
    steps = list_planned_fates(plan)
    counts = count_fates(steps)
    return calls.RestorePreview(
        kind=plan.kind,
        target=plan.target,
        steps=bound_list(steps[:MAX_LISTED_PATHS], _planned_fate),
        total=len(steps),
        counts=_as_text_keys(counts),
        summary=summarize_fates(counts, planned=True),
        conflicts=bound_list(plan.conflicts[:MAX_LISTED_PATHS], _conflict),
        shared=plan.shared,
    )


def _report(result: RestoreResult) -> calls.RestoreReport:
    counts = count_fates(result.fates)
    return calls.RestoreReport(
        entry=result.entry,
        done=result.done,
        fates=bound_list(result.fates[:MAX_LISTED_PATHS], _final_fate),
        total=len(result.fates),
        counts=_as_text_keys(counts),
        summary=summarize_fates(counts, planned=False),
        unsettled=bound_list(result.unsettled[:MAX_LISTED_PATHS], _unsettled),
        total_unsettled=len(result.unsettled),
        set_aside=bound_list(result.set_aside[:MAX_LISTED_PATHS], _kept_path),
    )
