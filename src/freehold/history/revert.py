"""A revert: which state each path must get so that one entry is taken back and later changes stay."""

import time
from collections.abc import Callable, Container, Iterable, Mapping

from freehold.history.contents import ContentReader
from freehold.history.merge import merge_lines
from freehold.history.model import PathChange, PathVersion, RevertConflict
from freehold.history.states import Places

NamePath = tuple[bytes, ...]
Choice = str  # "old" (as before the entry) or "mine" (as it is now)
CHANGED_IN_BETWEEN = "someone else changed it in between"
_LARGEST_MERGED = 1 << 20

Wanted = dict[int, PathVersion | None]


class RevertPlanner:
    """Finds the wanted version of each path. It writes only merged contents, and only to the store, through `add_content`."""

    def __init__(self, places: Places, reader: ContentReader, add_content: Callable[[bytes], int]) -> None:
        self._places = places
        self._reader = reader
        self._add_content = add_content

    def plan_revert(
        self,
        before: int,
        changes: Iterable[PathChange],
        choose: Mapping[NamePath, Choice],
        between: Container[int] = (),
    ) -> tuple[Wanted, list[RevertConflict]]:
        """`between` has the places that others changed between two of the changes; for these the owner must choose."""
        wanted: Wanted = {}
        conflicts: list[RevertConflict] = []
        for change in changes:
            if change.is_only_time:
                continue
            path = tuple(change.path.split(b"/"))
            place = get_place(change)
            live = self._places.live(place)
            if is_same_state(live, change.old):
                continue
            if is_same_state(live, change.new) and place not in between:
                wanted[place] = change.old
                continue
            choice = choose.get(path) or choose.get(())
            if choice == "old":
                wanted[place] = change.old
            elif choice != "mine":
                merged = CHANGED_IN_BETWEEN if place in between else self._merge(change.old, change.new, live)
                if isinstance(merged, str):
                    conflicts.append(RevertConflict(path, merged, place, change.old, change.new, live))
                else:
                    wanted[place] = merged
        self._keep_folders_in_use(wanted)
        self._restore_parents(wanted, before)
        return wanted, conflicts

    def _merge(self, old: PathVersion | None, new: PathVersion | None, live: PathVersion | None) -> PathVersion | str:
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
        return live._replace(
            content=self._add_content(data), size=len(data), mode=mode, mtime=time.time_ns(), flag=0, nlink=1
        )

    def _keep_folders_in_use(self, wanted: Wanted) -> None:
        """A folder that the entry created stays when newer files are in it."""
        folders = [
            place
            for place, target in wanted.items()
            if target is None and (live := self._places.live(place)) and live.is_folder
        ]
        paths = self._places.begin_paths()
        for place in sorted(folders, key=lambda each: -len(paths.get_path(each))):
            if any(
                child.place not in wanted or wanted[child.place] is not None
                for child in self._places.live_children(place)
            ):
                del wanted[place]

    def _restore_parents(self, wanted: Wanted, before: int) -> None:
        """A restored path needs its folders."""
        seen = {0}
        for place in [place for place, target in wanted.items() if target is not None]:
            above = self._places.find_parent(place)
            while above not in seen:
                seen.add(above)
                if above not in wanted and self._places.live(above) is None:
                    wanted[above] = self._places.at(above, before)
                above = self._places.find_parent(above)


def is_same_state(one: PathVersion | None, other: PathVersion | None) -> bool:
    """Whether two versions differ at most in their times and their number of hard links."""
    if one is None or other is None:
        return one is other
    return (one.mode, one.content, one.size if not one.is_folder else 0) == (
        other.mode,
        other.content,
        other.size if not other.is_folder else 0,
    )


def get_place(change: PathChange) -> int:
    version = change.old or change.new
    assert version is not None, "a change has an old or a new version"
    return version.place
