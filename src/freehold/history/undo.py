"""Undo, redo, restore and revert: plan, take what is not yet taken, write, and say what came of it."""

import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.contents import ContentReader, Contents
from freehold.history.database import transaction
from freehold.history.entries import EntryWriter
from freehold.history.ignoring import Ignored
from freehold.history.model import UNKNOWN, Change, Entry, Interrupted, Kind, Outcome, Plan, Step, Turn, Version, Who
from freehold.history.names import show_name
from freehold.history.planning import plan_places, plan_restore
from freehold.history.restoring import MEANWHILE, TEMPORARY, Restorer
from freehold.history.revert import Choice, Reverting, Wanted, alike, never
from freehold.history.snapshots import Snapshots
from freehold.history.staging import Staging
from freehold.history.states import Places

NamePath = tuple[bytes, ...]
ROUNDS = 3


class Undoing:
    """Used under the caller's lock."""

    def __init__(
        self,
        db: sqlite3.Connection,
        roots: Mapping[bytes, Path],
        snapshots: Snapshots,
        contents: Contents,
        staging: Staging,
        ignored: Ignored | None,
    ) -> None:
        self._db = db
        self._roots = roots
        self._snapshots = snapshots
        self._contents = contents
        self._staging = staging
        self._ignored = ignored
        self._entries = EntryWriter(db)
        self._places = Places(db)
        self._reader = ContentReader(db, contents.folder)

    # Where each verb leads.

    def undo_target(self, entry: int | None) -> tuple[int, int]:
        """The entry that is undone, and the one whose state comes back."""
        undone = entry if entry is not None else self._entries.get(self._head()).equals
        self._entries.get(undone)
        target = self._entries.before(undone)
        if target is None:
            raise FreeholdError(
                "history.nothing-to-undo",
                f"Entry {undone} is the oldest one: there is nothing before it to go back to",
                hint="freehold log lists the entries",
            )
        return undone, target

    def redo_target(self) -> tuple[int, int | None, int | None]:
        """The entry whose state comes back, and the way forward from there."""
        target, further = self._entries.redo(self._head())
        if target is None:
            raise FreeholdError(
                "history.nothing-to-redo",
                "There is nothing to redo: the last entry is not an undo",
                hint="Any earlier state is in the log: freehold restore ENTRY",
            )
        after, after_next = self._entries.redo(further) if further is not None else (None, None)
        return target, after, after_next

    def _head(self) -> int:
        head = self._entries.newest()
        if head == 0:
            raise FreeholdError(
                "history.empty",
                "There is no entry in the history yet",
                hint="The first one is made when Freehold starts",
            )
        return head

    # Plans.

    def steps_to(self, target: int, paths: Sequence[NamePath] = ()) -> list[Step]:
        steps = plan_restore(self._places, target, self._entries.newest(), paths)
        return [step for step in steps if not self._is_ignored(step)] if self._ignored is not None else steps

    def _is_ignored(self, step: Step) -> bool:
        """Of an ignored path nothing is known any more, so nothing is done to it."""
        version = step.live or step.target
        assert self._ignored is not None
        assert version is not None
        above = range(2, len(step.path))
        return self._ignored(step.path, version.mode) or any(self._ignored(step.path[:n], stat.S_IFDIR) for n in above)

    def _is_only_moved(self, step: Step) -> bool:
        """A folder whose own time alone differs: whoever writes something ignored in it meanwhile moves that."""
        return self._ignored is not None and step.fate == "time" and step.live is not None and step.live.is_folder

    def plan(self, kind: Kind, target: int, paths: Sequence[NamePath] = ()) -> Plan:
        self._entries.get(target)
        return Plan(kind, target, tuple(self.steps_to(target, paths)))

    def plan_revert(
        self, entry: int, choose: Mapping[NamePath, Choice], since: int | None = None, of: Turn | None = None
    ) -> tuple[Plan, Wanted]:
        _, before = self.undo_target(entry)
        if since is not None:
            if not since < entry:
                raise FreeholdError(
                    "history.bad-request", f"Entry {since} does not come before {entry}", hint="Give an earlier one"
                )
            before = self._entries.get(since).id
        for path, choice in choose.items():
            if choice not in ("old", "mine"):
                raise FreeholdError(
                    "history.bad-choice",
                    f"'{choice}' is no choice for {show_name(b'/'.join(path)) or 'a conflict'}",
                    hint="Choose old or mine",
                )
        try:
            with transaction(self._db):
                work = Reverting(self._places, self._reader, self._contents.put)
                of = of if since is not None else None
                changes, between = self._changes(before, entry, of)
                wanted, conflicts = work.work_out(before, changes, choose, between)
                self._contents.flush()
                self._contents.sync()
        except BaseException:
            self._contents.reload()
            raise
        steps = plan_places(self._places, wanted.items())
        taken = self._entries.between(before, entry) if of is not None else []
        shared = of is not None and any(of.made(each.who) and each.who.beside for each in taken)
        return Plan("revert", before, tuple(steps), tuple(conflicts), shared), wanted

    def _changes(self, before: int, entry: int, of: Turn | None) -> tuple[list[Change], set[int]]:
        """What changed from one entry to the other, or what one turn did of it; and the places others changed in its midst."""
        if of is None:
            return self._places.changes(before, entry), set()
        found: dict[int, Change] = {}
        between: set[int] = set()
        for each in self._entries.between(before, entry):
            if not of.made(each.who):
                continue
            for change in self._places.changes(self._entries.before(each.id) or 0, each.id):
                place = (change.old or change.new or never()).place
                first = found.get(place)
                if first is not None and not alike(first.new, change.old):
                    between.add(place)
                found[place] = change if first is None else replace(change, old=first.old)
        return list(found.values()), between

    # Carrying them out.

    def undo(self, entry: int | None, who: Who) -> Outcome:
        head = self._entries.get(self._head())
        undone, target = self.undo_target(entry)
        redo_to, _ = self._entries.redo(head.id)

        def complete(new: int) -> None:
            further = head.id if redo_to is not None else None
            self._entries.stand_for(new, self._entries.get(target).equals, head.equals, further)

        return self._carry_out("undo", target, lambda: self.steps_to(target), who, f"undo of entry {undone}", complete)

    def redo(self, who: Who) -> Outcome:
        target, after, after_next = self.redo_target()

        def complete(new: int) -> None:
            self._entries.stand_for(new, target, after, after_next)

        return self._carry_out("redo", target, lambda: self.steps_to(target), who, f"redo of entry {target}", complete)

    def restore(self, entry: int, paths: Sequence[NamePath], who: Who) -> Outcome:
        self._entries.get(entry)
        named = ", ".join(show_name(b"/".join(path)) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
        why = f"restore of entry {entry}" + (f": {named}" if paths else "")
        return self._carry_out("restore", entry, lambda: self.steps_to(entry, paths), who, why, paths=paths)

    def revert(
        self,
        entry: int,
        choose: Mapping[NamePath, Choice],
        who: Who,
        since: int | None = None,
        of: Turn | None = None,
    ) -> Outcome:
        plan, wanted = self.plan_revert(entry, choose, since, of)
        if plan.conflicts:
            first = show_name(b"/".join(plan.conflicts[0].path))
            raise FreeholdError(
                "history.conflicts",
                f"{len(plan.conflicts)} of the paths that entry {entry} changed were changed again later ({first}: {plan.conflicts[0].reason}); nothing was written",
                hint=f"freehold revert {entry} --dry-run shows them; choose with --choose {first}=old or =mine, or --choose old for all",
            )
        return self._carry_out(
            "revert", plan.target, lambda: plan_places(self._places, wanted.items()), who, f"revert of entry {entry}"
        )

    def recover(self, *, finish: bool, who: Who) -> Outcome:
        """After a restore that never ended: go on to where it was going, or back to where it came from."""
        found = self._entries.interrupted()
        if found is None:
            raise FreeholdError(
                "history.nothing-interrupted", "No restore was interrupted", hint="freehold log lists the entries"
            )
        intent, token = found
        self._snapshots.take("snapshot", UNKNOWN, f"as the interrupted {intent.kind} left it")
        target = intent.target if finish else intent.before
        paths = tuple(tuple(path.split(b"/")) for path in intent.paths)
        litter = self._db.execute(
            "SELECT id FROM place WHERE name >= ? AND name < ?",
            (TEMPORARY + token.encode(), TEMPORARY + token.encode() + b"\xff"),
        )
        leftovers: list[tuple[int, Version | None]] = [(row[0], None) for row in litter]

        def steps() -> list[Step]:
            some = {step.place: step for step in [*self.steps_to(target, paths), *plan_places(self._places, leftovers)]}
            return sorted(some.values(), key=lambda step: step.path)

        why = f"{intent.kind} that was interrupted, {'finished' if finish else 'taken back'}"
        return self._carry_out("restore", target, steps, who, why, paths=paths)

    def _carry_out(
        self,
        kind: Kind,
        target: int,
        plan: Callable[[], list[Step]],
        who: Who,
        why: str,
        complete: Callable[[int], None] = lambda entry: None,
        paths: Sequence[NamePath] = (),
    ) -> Outcome:
        token = secrets.token_hex(6)
        self._intend(
            Interrupted(kind, time.time(), self._entries.newest(), target, tuple(b"/".join(path) for path in paths)),
            token,
        )
        steps = plan()
        done = 0
        failed: dict[NamePath, str] = {}
        seen = {step.path for step in steps}
        trusted = {}

        def around() -> list[NamePath]:
            """Where to look when nobody watches: these paths, and the folders they are in, whose times were put back."""
            if self._snapshots.watcher is not None:
                return []
            return sorted(seen | {path[:-1] for path in seen if len(path) > 1})

        pump = self._snapshots.watcher.pump if self._snapshots.watcher is not None else lambda: None
        for round_ in range(ROUNDS):
            with Restorer(self._roots, self._staging, self._reader, self._places, token, target) as restorer:
                restorer.apply(steps, pump)
            done += restorer.done
            failed = restorer.failed
            trusted.update(restorer.trusted)
            if MEANWHILE not in failed.values() or round_ == ROUNDS - 1:
                break
            # Whatever was written meanwhile goes into history before it is replaced.
            self._snapshots.take(
                "snapshot", UNKNOWN, f"written while a {kind} was under way", only=around(), trusted=trusted
            )
            steps = plan()
            seen.update(step.path for step in steps)

        def settle(entry: int) -> None:
            self._entries.settled()
            complete(entry)

        mark = self._snapshots.take(kind, who, why, always=True, only=around(), trusted=trusted, complete=settle)
        unsettled = tuple(
            (b"/".join(step.path), failed.get(step.path) or step.detail or "it differs")
            for step in plan()
            if step.path in failed or not self._is_only_moved(step)
        )
        return Outcome(self._entry(mark.entry), done, unsettled)

    def _entry(self, entry: int) -> Entry:
        return self._entries.get(entry)

    def _intend(self, intent: Interrupted, token: str) -> None:
        """On disk before the first write to the tree, together with all that was taken into history before."""
        self._db.execute("PRAGMA synchronous = FULL")
        try:
            with transaction(self._db):
                self._entries.intend(intent, token)
        finally:
            self._db.execute("PRAGMA synchronous = NORMAL")
