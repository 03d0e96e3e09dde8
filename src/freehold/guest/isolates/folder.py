"""The private folder of an isolate: exists only if it has input files, result files, or a context that asks for one."""

# pathlib is too slow to import here
# ruff: noqa: PTH102

from __future__ import annotations

import errno
import os
import time

from freehold.guest import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from freehold.guest.loop import Loop

PARENT = b"/tmp"
ENTRY = 4096
"""Bytes that each entry counts beside its content: an empty file needs memory too."""
HIDDEN = (errno.EACCES, errno.ENAMETOOLONG)
"""What a folder answers that the code made so that nobody can look into it: unreadable, or too deep."""
REST = 3
"""Counting takes at most one part in `REST + 1` of the time."""


class IsolateFolder:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.path = PARENT + b"/isolate-" + os.urandom(12).hex().encode()
        os.mkdir(self.path, 0o700)
        self._used = 0
        self._counted_at = 0.0
        self._is_counting = False
        self._rests_until = 0.0

    def measure(self, most: int, since: float) -> int:
        """Bytes in its files at the last count, or more than `most`; 0 if that count began before `since`.

        Begins the next count, which runs beside other work.
        A file that was removed and is still open is not counted: only the size of /tmp holds it.
        """
        if not self._is_counting and time.monotonic() >= self._rests_until:
            self._is_counting = True
            self._loop.add_job(self._count(most))
        return self._used if self._counted_at >= since else 0

    def _count(self, most: int) -> Generator[bool, None, None]:
        began = time.monotonic()
        total = 0
        waiting = [self.path]
        try:
            while waiting and total <= most:
                try:
                    entries = os.scandir(waiting.pop())
                except OSError as error:
                    total += most + 1 if error.errno in HIDDEN else 0  # or it was removed meanwhile
                    continue
                with entries:
                    for entry in entries:
                        try:
                            found = entry.stat(follow_symlinks=False)
                            if entry.is_dir(follow_symlinks=False):
                                waiting.append(entry.path)
                        except OSError as error:
                            total += most + 1 if error.errno in HIDDEN else 0  # or it was removed meanwhile
                        else:
                            total += ENTRY + found.st_blocks * 512
                        if total > most:
                            break
                        yield False
        finally:
            self._used, self._counted_at = total, began
            self._is_counting = False
            ended = time.monotonic()
            self._rests_until = ended + REST * (ended - began)

    def remove(self) -> None:
        self._loop.add_job(self._remove())

    def _remove(self) -> Generator[bool, None, None]:
        try:
            yield from tree.remove_tree(self.path)
        except OSError:
            return
