"""Who is at work in the kept folders, so that an entry taken unasked has an author, and one taken while several worked says so."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from freehold.history.model import UNKNOWN, Who

LONGEST = 6 * 3600.0
"""Seconds after which one who never said that it was done is no longer taken to be at work."""

RECENT = 600.0
"""Seconds for which what was noted may be the cause of what is found."""

MAX_NAMED = 3

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Doer:
    who: Who
    why: str
    until: float
    """By the clock: after this nothing is taken to be its doing."""

    @property
    def name(self) -> str:
        """As `Who.beside` names it."""
        if self.who.by == "agent":
            return f"agent:{self.who.session}:{self.who.turn}"
        return self.who.by


class Doing:
    """Used under the caller's lock. Whoever is at work is there from `begin` to `end`; whoever is `note`d did something just now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._working: dict[Key, Doer] = {}
        self._since: dict[Key, Doer] = {}
        """Everybody who was at work since the last entry, the first to come first."""
        self._noted: list[str] = []

    def begin(self, who: Who, why: str) -> None:
        if who != UNKNOWN:
            doer = Doer(who, why, self._clock() + LONGEST)
            self._working[_key(who, why)] = self._since[_key(who, why)] = doer

    def end(self, who: Who, why: str) -> None:
        self._working.pop(_key(who, why), None)

    def note(self, who: Who, why: str) -> None:
        self._since[_key(who, "")] = Doer(who, why, self._clock() + RECENT)
        if why and why not in self._noted:
            self._noted.append(why)

    def forget(self, by: str) -> None:
        """Those who cannot be at work any more: the process that let them work has just begun."""
        for key in [key for key in self._working if key[0] == by]:
            del self._working[key]

    def is_anybody_at_work(self) -> bool:
        self._drop_old()
        return bool(self._working)

    def author(self, why: str) -> tuple[Who, str]:
        """Whose an entry is that nobody asked for: an agent's whose turn it is, else whoever else was at work."""
        self._drop_old()
        found = sorted(self._since.values(), key=lambda doer: doer.who.by != "agent")
        if not found:
            return UNKNOWN, why
        first = found[0]
        if first.who.by != "agent" and self._noted and not self._working:
            more = len(self._noted) - MAX_NAMED
            why = ", ".join(self._noted[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        elif first.who.by != "agent":
            why = first.why or why
        return self.beside(first.who), why

    def beside(self, who: Who) -> Who:
        """With everybody else who was at work since the last entry and may have written what is in this one."""
        self._drop_old()
        mine = Doer(who, "", 0.0).name
        others = sorted({doer.name for doer in self._since.values()} - {mine})
        return replace(who, beside=" ".join(others)[:1000]) if others else who

    def taken(self) -> None:
        """All that was done until now is in an entry."""
        self._since = dict(self._working)
        self._noted.clear()

    def _drop_old(self) -> None:
        now = self._clock()
        for among in (self._working, self._since):
            for key in [key for key, doer in among.items() if doer.until < now]:
                del among[key]


def _key(who: Who, why: str) -> Key:
    """A session has one turn at a time."""
    return who.by, who.session or who.terminal or "", "" if who.by == "agent" else why
