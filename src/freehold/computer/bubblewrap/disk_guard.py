"""The disk of the persistent folders: measured from the host, and held where no quota of the file system does it.

A full walk is paid for only when the file system says that space or inodes went, or when the computer was busy for long.
At the limit no file inside may grow any more, while deleting still works; what keeps growing all the same (new empty
files, holes filled through a mapping) is ended.
"""

import contextlib
import os
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from freehold.computer.backend import LimitEvent
from freehold.computer.population import Population
from freehold.computer.spec import GIB, MIB, Limits

DEEPEST = 256
NEAR = 0.8
RELEASE = 0.95
QUICK, CALM = 0.1, 0.5
LONGEST_UNSEEN = 1.0
IDLE = 0.02

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# A scan holds a descriptor for each level it is in and keeps a processor busy: one at a time is enough for all computers.
_scanning = threading.Lock()


@dataclass(frozen=True)
class DiskUse:
    size: int = 0
    inodes: int = 0
    too_deep: bool = False


def measure(folders: Sequence[Path]) -> DiskUse:
    """What the folders take on the disk. Follows no link, counts a hard-linked file once and a hole as nothing."""
    count = _Count()
    with _scanning:
        for folder in folders:
            # A folder that was moved away, or that a full table of files keeps closed, is looked at again next time.
            with contextlib.suppress(OSError), _opened(str(folder), None, folder.lstat().st_mode) as inside:
                _walk(inside, 1, count)
    return DiskUse(count.size, count.inodes, count.too_deep)


@dataclass
class _Count:
    size: int = 0
    inodes: int = 0
    too_deep: bool = False
    linked: set[tuple[int, int]] = field(default_factory=set)


def _walk(descriptor: int, depth: int, count: _Count) -> None:
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                    name = (found.st_dev, found.st_ino)
                    if name in count.linked:
                        continue
                    count.linked.add(name)
                count.inodes += 1
                count.size += found.st_blocks * 512
                if stat.S_ISDIR(found.st_mode):
                    if depth == DEEPEST:
                        count.too_deep = True
                        continue
                    with contextlib.suppress(OSError), _opened(entry.name, descriptor, found.st_mode) as inside:
                        _walk(inside, depth + 1, count)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _opened(name: str, parent: int | None, mode: int) -> Iterator[int]:
    """Opens a folder even when whoever lives inside took the owner's right to read it away, to hide what it holds.

    The descriptor is the caller's to close. The mode is put back when the caller is done, since looking at what is in
    a folder needs it as much as opening does.
    """
    if os.geteuid() == 0 or mode & 0o500 == 0o500:
        yield os.open(name, _FOLDER, dir_fd=parent)
        return
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    itself = Path(f"/proc/self/fd/{handle}")
    try:
        itself.chmod(stat.S_IMODE(mode) | 0o500)
        try:
            yield os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            itself.chmod(stat.S_IMODE(mode))
    finally:
        os.close(handle)


class DiskGuard:
    """Called again and again by one thread; keeps what it saw last."""

    def __init__(self, folders: Sequence[Path], limits: Limits, population: Population) -> None:
        self._folders = folders
        self._limits = limits
        self._population = population
        self._free = (0, 0)
        self._measured = 0.0
        self._took = 0.0
        self._ran = 0.0
        self._warned: set[str] = set()
        self._ceiling: DiskUse | None = None
        self.use: DiskUse | None = None

    @property
    def pause(self) -> float:
        """Seconds until the next look: short when there is little room left to overshoot into."""
        if self.use is None or self._ceiling is not None:
            return QUICK
        near = self._limits.disk - self.use.size < 2 * GIB or self._limits.inodes - self.use.inodes < 100_000
        return QUICK if near else CALM

    def look(self, ran: float | None) -> Iterator[LimitEvent]:
        """Measures if anything can have changed, and acts. `ran` is the processor time used so far, None if unknown."""
        now = time.monotonic()
        if not self._is_due(now, ran is None or ran - self._ran > IDLE):
            return
        self._ran = ran or 0.0
        self._free = self._free_now()
        self.use = measure(self._folders)
        self._measured = time.monotonic()
        self._took = self._measured - now
        yield from self._judge(self.use)

    def _is_due(self, now: float, busy: bool) -> bool:
        if self.use is None:
            return True
        if now - self._measured < 5 * self._took:
            return False
        if self._ceiling is not None:
            return True
        space, inodes = (before - after for before, after in zip(self._free, self._free_now(), strict=True))
        room, places = self._limits.disk - self.use.size, self._limits.inodes - self.use.inodes
        if space > max(64 * 1024, min(room // 4, 256 * MIB)) or inodes > max(16, places // 4):
            return True
        # Others who free space on the same disk can hide what was written here, so no silence is believed for long.
        return busy and now - self._measured > max(LONGEST_UNSEEN, 50 * self._took)

    def _free_now(self) -> tuple[int, int]:
        space = inodes = 0
        seen: set[int] = set()
        for folder in self._folders:
            with contextlib.suppress(FileNotFoundError):
                found = os.statvfs(folder)
                if found.f_fsid not in seen:
                    seen.add(found.f_fsid)
                    space += found.f_bfree * found.f_frsize
                    inodes += found.f_ffree
        return space, inodes

    def _judge(self, use: DiskUse) -> Iterator[LimitEvent]:
        reached = []
        for limit, used, allowed in (
            ("disk", use.size, self._limits.disk),
            ("inodes", use.inodes, self._limits.inodes),
        ):
            share = used / allowed
            if share >= 1:
                reached.append((limit, used, allowed))
            elif share >= NEAR and limit not in self._warned:
                self._warned.add(limit)
                yield LimitEvent("warning", limit, used, allowed, f"{share:.0%} of computer.limits.{limit} is used")
            elif share < NEAR:
                self._warned.discard(limit)
        if use.too_deep:
            reached.append(("inodes", use.inodes, self._limits.inodes))
        yield from self._hold(use, reached)

    def _hold(self, use: DiskUse, reached: list[tuple[str, int, int]]) -> Iterator[LimitEvent]:
        if reached:
            self._population.hold_writes()
        if reached and self._ceiling is None:
            self._ceiling = DiskUse(
                use.size + max(self._limits.disk // 20, MIB), use.inodes + max(self._limits.inodes // 20, 64)
            )
            for limit, used, allowed in reached:
                why = f"folders are nested deeper than {DEEPEST}" if use.too_deep else f"{used} of {allowed} are used"
                yield LimitEvent("reached", limit, used, allowed, f"{why}: files cannot grow until some are removed")
        elif self._ceiling is not None and (use.size > self._ceiling.size or use.inodes > self._ceiling.inodes):
            ended = self._population.end_all_but_guest()
            limit, used, allowed = reached[0] if reached else ("disk", use.size, self._limits.disk)
            yield LimitEvent(
                "reached",
                limit,
                used,
                allowed,
                f"the folders kept growing beyond the limit: {ended} processes were ended",
            )
        elif self._ceiling is not None and not use.too_deep:
            below = use.size < self._limits.disk * RELEASE and use.inodes < self._limits.inodes * RELEASE
            if below:
                self._ceiling = None
                self._population.release_writes()
