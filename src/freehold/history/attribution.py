"""Tracks who is active in the folders, so that each entry gets an author, and names others who were active at the same time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from freehold.history.model import UNKNOWN, Author

MAX_ACTIVITY_SECONDS = 6 * 3600.0
"""An activity that never ended counts as over after this time."""

NOTE_SECONDS = 600.0
"""How long a noted activity may be the author of changes that are found later."""

MAX_NAMED = 3

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Activity:
    """One author who is active, or was active since the last entry."""

    who: Author
    why: str
    until: float
    """By the monotonic clock: later changes are not attributed to it."""

    @property
    def name(self) -> str:
        """As `Author.beside` spells it."""
        if self.who.by == "agent":
            return f"agent:{self.who.session}:{self.who.turn}"
        return self.who.by


class Attribution:
    """The caller holds the lock. An author is active from `begin_activity` to `end_activity`, or shortly after `note_activity`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._active: dict[Key, Activity] = {}
        self._since: dict[Key, Activity] = {}
        """All activities since the last entry, the oldest first."""
        self._noted: list[str] = []

    def begin_activity(self, who: Author, why: str) -> None:
        if who != UNKNOWN:
            activity = Activity(who, why, self._clock() + MAX_ACTIVITY_SECONDS)
            self._active[_key(who, why)] = self._since[_key(who, why)] = activity

    def end_activity(self, who: Author, why: str) -> None:
        self._active.pop(_key(who, why), None)

    def note_activity(self, who: Author, why: str) -> None:
        self._since[_key(who, "")] = Activity(who, why, self._clock() + NOTE_SECONDS)
        if why and why not in self._noted:
            self._noted.append(why)

    def forget_activities(self, by: str) -> None:
        """Forget activities of this kind, because the process that ran them has restarted."""
        for key in [key for key in self._active if key[0] == by]:
            del self._active[key]

    def is_anyone_active(self) -> bool:
        self._drop_old()
        return bool(self._active)

    def find_author(self, why: str) -> tuple[Author, str]:
        """The author and reason of an entry that was made automatically: an agent with a turn first, else any other activity."""
        self._drop_old()
        found = sorted(self._since.values(), key=lambda activity: activity.who.by != "agent")
        if not found:
            return UNKNOWN, why
        first = found[0]
        if first.who.by != "agent" and self._noted and not self._active:
            more = len(self._noted) - MAX_NAMED
            why = ", ".join(self._noted[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        elif first.who.by != "agent":
            why = first.why or why
        return self.add_concurrent(first.who), why

    def add_concurrent(self, who: Author) -> Author:
        """The author with `beside` set to all others who were active since the last entry."""
        self._drop_old()
        mine = Activity(who, "", 0.0).name
        others = sorted({activity.name for activity in self._since.values()} - {mine})
        return replace(who, beside=" ".join(others)[:1000]) if others else who

    def reset(self) -> None:
        """Called after an entry: all earlier changes are recorded."""
        self._since = dict(self._active)
        self._noted.clear()

    def _drop_old(self) -> None:
        now = self._clock()
        for among in (self._active, self._since):
            for key in [key for key, activity in among.items() if activity.until < now]:
                del among[key]


def _key(who: Author, why: str) -> Key:
    """A session has only one turn at a time, so its reason is not part of the key."""
    return who.by, who.session or who.terminal or who.connection or "", "" if who.by == "agent" else why
