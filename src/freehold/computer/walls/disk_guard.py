"""Measures the disk use of the persistent folders from the host, and enforces its limits without file system quotas.

A full scan runs only if free space or inodes of the file system went down, or if the computer was busy for a while. At
the limit no file inside can grow, and deleting still works. Processes that go beyond it nevertheless (with empty files,
or by filling holes through a mapping) are killed. Files that were deleted and are still open count too
(deleted_files.py), and so does every name of a file. Reserving blocks without writing is refused by seccomp.py.
"""

import contextlib
import os
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from freehold.computer.contract.report import LimitEvent
from freehold.computer.contract.spec import GIB, MIB, Limits
from freehold.computer.walls.deleted_files import DeletedFiles, measure_deleted
from freehold.computer.walls.processes import WriteControl
from freehold.computer.walls.project_quota import ProjectQuota

MAX_DEPTH = 256
WARNING_SHARE = 0.8
RELEASE_SHARE = 0.95
SHORT_PAUSE, LONG_PAUSE = 0.1, 0.5
MAX_BLIND_SECONDS = 1.0
IDLE_CPU_SECONDS = 0.02

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

# A scan uses a descriptor per level and a whole core, so one at a time runs for all computers.
_scan_lock = threading.Lock()


@dataclass(frozen=True)
class DiskUsage:
    """`size` includes `deleted`: what deleted files use that processes keep open. `inodes` counts names.

    `uncountable` says why there may be more; empty if everything was counted.
    """

    size: int = 0
    inodes: int = 0
    too_deep: bool = False
    deleted: int = 0
    uncountable: str = ""


def measure_disk(folders: Sequence[Path]) -> DiskUsage:
    """The disk use of the folders. Follows no link; counts the blocks of a hard-linked file once and each of its names."""
    count = _Count()
    with _scan_lock:
        for folder in folders:
            # A folder that was moved, or cannot be opened for lack of descriptors, is measured next time.
            with contextlib.suppress(OSError), _open_folder(str(folder), None, folder.lstat().st_mode) as inside:
                _walk(inside, 1, count)
    return DiskUsage(count.size, count.inodes, count.too_deep)


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
                count.inodes += 1
                if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
                    name = (found.st_dev, found.st_ino)
                    if name in count.linked:
                        continue
                    count.linked.add(name)
                count.size += found.st_blocks * 512
                if stat.S_ISDIR(found.st_mode):
                    if depth == MAX_DEPTH:
                        count.too_deep = True
                        continue
                    with contextlib.suppress(OSError), _open_folder(entry.name, descriptor, found.st_mode) as inside:
                        _walk(inside, depth + 1, count)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _open_folder(name: str, parent: int | None, mode: int) -> Iterator[int]:
    """Open a folder even if a program inside removed the owner's permission to read it.

    The caller closes the descriptor. The mode is restored when the caller is done, because listing needs it too.
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
    """`check` is called repeatedly by one thread. `use` is the last measurement."""

    def __init__(
        self,
        folders: Sequence[Path],
        limits: Limits,
        processes: WriteControl,
        quota: ProjectQuota | None = None,
    ) -> None:
        self._folders = folders
        self._quota = quota
        self._limits = limits
        self._processes = processes
        self._free = (0, 0)
        self._measured = 0.0
        self._took = 0.0
        self._ran = 0.0
        self._warned: set[str] = set()
        self._ceiling: DiskUsage | None = None
        self._was_uncountable = False
        self.use: DiskUsage | None = None

    @property
    def pause(self) -> float:
        """Seconds until the next check; short if little space is left."""
        if self.use is None or self._ceiling is not None:
            return SHORT_PAUSE
        near = self._limits.disk - self.use.size < 2 * GIB or self._limits.inodes - self.use.inodes < 100_000
        return SHORT_PAUSE if near else LONG_PAUSE

    def check(self, ran: float | None) -> Iterator[LimitEvent]:
        """Measure if something may have changed, and enforce the limits. `ran` is the CPU time used so far, None if unknown."""
        now = time.monotonic()
        if not self._is_due(now, ran is None or ran - self._ran > IDLE_CPU_SECONDS):
            return
        self._ran = ran or 0.0
        self._free = self._read_free_space()
        self.use = self._measure()
        self._measured = time.monotonic()
        self._took = self._measured - now
        yield from self._find_events(self.use)

    def _measure(self) -> DiskUsage:
        named = measure_disk(self._folders)
        # The first time only the guest runs, which has no such files, and the owner waits for the computer.
        deleted = DeletedFiles() if self.use is None else measure_deleted(self._processes, self._folders)
        # A socket may hold many descriptors for a moment: only what lasts counts.
        lasting = deleted.uncountable if self._was_uncountable and self._quota is None else ""
        self._was_uncountable = bool(deleted.uncountable) and self._quota is None
        size = max(named.size + deleted.size, self._quota.measure() if self._quota is not None else 0)
        return replace(named, size=size, deleted=deleted.size, uncountable=lasting)

    def _is_due(self, now: float, busy: bool) -> bool:
        if self.use is None or self._was_uncountable:
            return True
        space, inodes = (before - after for before, after in zip(self._free, self._read_free_space(), strict=True))
        room, places = self._limits.disk - self.use.size, self._limits.inodes - self.use.inodes
        if space >= room > 0:
            return True  # enough is gone to have reached the limit
        if now - self._measured < 5 * self._took:
            return False
        if self._ceiling is not None:
            return True
        if space > max(64 * 1024, min(room // 4, 256 * MIB)) or inodes > max(16, places // 4):
            return True
        # Other programs that free space on the same disk can hide writes, so measure once in a while anyway.
        return busy and now - self._measured > max(MAX_BLIND_SECONDS, 50 * self._took)

    def _read_free_space(self) -> tuple[int, int]:
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

    def _find_events(self, use: DiskUsage) -> Iterator[LimitEvent]:
        reached = []
        for limit, used, allowed in (
            ("disk", use.size, self._limits.disk),
            ("inodes", use.inodes, self._limits.inodes),
        ):
            share = used / allowed
            if share >= 1:
                reached.append((limit, used, allowed))
            elif share >= WARNING_SHARE and limit not in self._warned:
                self._warned.add(limit)
                yield LimitEvent("warning", limit, used, allowed, f"{share:.0%} of computer.limits.{limit} is used")
            elif share < WARNING_SHARE:
                self._warned.discard(limit)
        if use.too_deep:
            reached.append(("inodes", use.inodes, self._limits.inodes))
        if use.uncountable and not any(limit == "disk" for limit, _, _ in reached):
            reached.append(("disk", use.size, self._limits.disk))
        yield from self._enforce(use, reached)

    def _enforce(self, use: DiskUsage, reached: list[tuple[str, int, int]]) -> Iterator[LimitEvent]:
        if reached:
            self._processes.hold_writes()
        if reached and self._ceiling is None:
            self._ceiling = DiskUsage(
                use.size + max(self._limits.disk // 20, MIB), use.inodes + max(self._limits.inodes // 20, 64)
            )
            for limit, used, allowed in reached:
                why = _explain(limit, used, allowed, use)
                yield LimitEvent("reached", limit, used, allowed, f"{why}: files cannot grow until some are deleted")
        elif self._ceiling is not None and (use.size > self._ceiling.size or use.inodes > self._ceiling.inodes):
            killed = self._processes.kill_all_but_guest()
            ended = f"{killed} processes were killed" if killed else "everything inside was ended"
            limit, used, allowed = reached[0] if reached else ("disk", use.size, self._limits.disk)
            yield LimitEvent(
                "reached",
                limit,
                used,
                allowed,
                f"the folders grew beyond the limit: {ended}",
            )
        elif self._ceiling is not None and not use.too_deep and not use.uncountable:
            below = use.size < self._limits.disk * RELEASE_SHARE and use.inodes < self._limits.inodes * RELEASE_SHARE
            if below:
                self._ceiling = None
                self._processes.release_writes()


def _explain(limit: str, used: int, allowed: int, use: DiskUsage) -> str:
    if limit == "inodes" and use.too_deep:
        return f"folders are nested deeper than {MAX_DEPTH}"
    if limit == "disk" and use.uncountable:
        return f"{use.uncountable}, and their files cannot be counted"
    kept = f", {use.deleted} by deleted files that processes keep open" if limit == "disk" and use.deleted else ""
    return f"{used} of {allowed} are used{kept}"
