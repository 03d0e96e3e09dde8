"""Taking back only what one entry changed, and keeping what came after."""

import time
from collections.abc import Callable, Container, Iterable, Mapping

from freehold.history.contents import ContentReader
from freehold.history.merging import merge_lines
from freehold.history.model import Change, Conflict, Version
from freehold.history.states import Places

NamePath = tuple[bytes, ...]
Choice = str  # "old" (as before the entry) or "mine" (as it is now)
MIDST = "somebody else changed it in between"
_LARGEST_MERGED = 1 << 20

Wanted = dict[int, Version | None]


class Reverting:
    """Works out what each path should become. Nothing is written but merged contents into the store, through `put`."""

    def __init__(self, places: Places, reader: ContentReader, put: Callable[[bytes], int]) -> None:
        self._places = places
        self._reader = reader
        self._put = put

    def work_out(
        self,
        before: int,
        changes: Iterable[Change],
        choose: Mapping[NamePath, Choice],
        between: Container[int] = (),
    ) -> tuple[Wanted, list[Conflict]]:
        """`between`: places that somebody else changed in the midst of the changes; only the owner can say what stays."""
        wanted: Wanted = {}
        conflicts: list[Conflict] = []
        for change in changes:
            if change.only_folder_time:
                continue
            path = tuple(change.path.split(b"/"))
            place = (change.old or change.new or never()).place
            live = self._places.live(place)
            if alike(live, change.old):
                continue
            if alike(live, change.new) and place not in between:
                wanted[place] = change.old
                continue
            choice = choose.get(path) or choose.get(())
            if choice == "old":
                wanted[place] = change.old
            elif choice != "mine":
                merged = MIDST if place in between else self._merge(change.old, change.new, live)
                if isinstance(merged, str):
                    conflicts.append(Conflict(path, merged, place, change.old, change.new, live))
                else:
                    wanted[place] = merged
        self._keep_folders_in_use(wanted)
        self._bring_back_parents(wanted, before)
        return wanted, conflicts

    def _merge(self, old: Version | None, new: Version | None, live: Version | None) -> Version | str:
        if live is None:
            return "it was removed later"
        if old is None or new is None:
            return "it was changed later"
        sides = (old, new, live)
        if not all(side.is_file and side.content is not None and side.size <= _LARGEST_MERGED for side in sides):
            return "it was changed later"
        before, after, now = (self._reader.read(side.content or 0) for side in sides)
        if b"\0" in before + after + now:
            return "it is binary and was changed later"
        merged = merge_lines(after.splitlines(True), now.splitlines(True), before.splitlines(True))
        if merged is None:
            return "the same lines were changed later"
        data = b"".join(merged)
        mode = old.mode if live.mode == new.mode else live.mode
        return live._replace(content=self._put(data), size=len(data), mode=mode, mtime=time.time_ns(), flag=0, nlink=1)

    def _keep_folders_in_use(self, wanted: Wanted) -> None:
        """A folder the entry made stays when something newer lives in it."""
        folders = [
            place
            for place, target in wanted.items()
            if target is None and (live := self._places.live(place)) and live.is_folder
        ]
        for place in sorted(folders, key=lambda each: -len(self._places.path(each))):
            if any(
                child.place not in wanted or wanted[child.place] is not None
                for child in self._places.live_children(place)
            ):
                del wanted[place]

    def _bring_back_parents(self, wanted: Wanted, before: int) -> None:
        for place in [place for place, target in wanted.items() if target is not None]:
            path = self._places.path(place)
            for depth in range(1, len(path)):
                above = self._places.find(path[:depth])
                if above is not None and above not in wanted and self._places.live(above) is None:
                    wanted[above] = self._places.at(above, before)


def alike(one: Version | None, other: Version | None) -> bool:
    """The same but for times and the number of names."""
    if one is None or other is None:
        return one is other
    return (one.mode, one.content, one.size if not one.is_folder else 0) == (
        other.mode,
        other.content,
        other.size if not other.is_folder else 0,
    )


def never() -> Version:
    raise AssertionError("a change has an old or a new side")
