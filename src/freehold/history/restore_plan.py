"""The restore plan: what a restore would do to each path, before anything is written."""

import stat
from collections.abc import Iterable, Sequence

from freehold.history.model import FLAG_WORDS, Fate, PathVersion, RestoreStep
from freehold.history.slices import sort_in_slices
from freehold.history.states import Places

_SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def plan_restore(places: Places, target: int, now: int, paths: Sequence[tuple[bytes, ...]] = ()) -> list[RestoreStep]:
    """Steps from the state of the newest entry, `now`, to the state of `target`. The cost depends on what changed in between."""
    steps: list[RestoreStep] = []
    for place, path, live, wanted in places.compare(now, target):
        if paths and not any(path[: len(prefix)] == prefix for prefix in paths):
            continue
        steps.append(_step(path, place, live, wanted))
    return sort_in_slices(steps, lambda step: step.path)


def plan_places(places: Places, wanted: Iterable[tuple[int, PathVersion | None]]) -> list[RestoreStep]:
    """Steps from the live state to the wanted version of each place."""
    steps: list[RestoreStep] = []
    paths = places.begin_paths()
    for place, target in wanted:
        live = places.live(place)
        if live is target or (live is not None and target is not None and live.is_same_as(target)):
            continue
        steps.append(_step(paths.get_path(place), place, live, target))
    return sort_in_slices(steps, lambda step: step.path)


def _step(path: tuple[bytes, ...], place: int, live: PathVersion | None, target: PathVersion | None) -> RestoreStep:
    fate, detail = _fate(live, target)
    return RestoreStep(path, fate, place, live, target, detail)


def describe_version(version: PathVersion) -> str:
    if version.is_folder:
        return "a folder"
    if version.is_link:
        return "a symlink"
    if version.is_file:
        return f"a file that {FLAG_WORDS[version.flag]}" if version.flag else "a file"
    return _SPECIAL.get(stat.S_IFMT(version.mode), "a special file")


def _fate(live: PathVersion | None, target: PathVersion | None) -> tuple[Fate, str]:
    """The original always comes back. What history cannot bring back afterwards is kept, outside of the folders."""
    stands = live is not None and live.is_noted_only
    kept = f"in place of {describe_version(live)}, which is kept" if live is not None and stands else ""
    if target is None:
        if live is not None and stands and not live.is_file:
            return "keep", f"{describe_version(live)} is not stored in history"
        return "remove", f"{describe_version(live)}, which is kept" if live is not None and stands else ""
    if target.is_noted_only:
        return "keep", f"it was {describe_version(target)}, whose content was not stored"
    if target.is_folder:
        if live is None or not live.is_folder:
            return "folder", kept or ("" if live is None else f"in place of {describe_version(live)}")
        return ("mode", oct(stat.S_IMODE(target.mode))) if live.mode != target.mode else ("time", "")
    fate: Fate = "link" if target.group else "write"
    if live is None or stands:
        return fate, kept
    if stat.S_IFMT(live.mode) != stat.S_IFMT(target.mode):
        return fate, f"in place of {describe_version(live)}"
    if (live.content, live.size, live.group) == (target.content, target.size, target.group):
        return ("mode", oct(stat.S_IMODE(target.mode))) if live.mode != target.mode else ("time", "")
    return fate, ""
