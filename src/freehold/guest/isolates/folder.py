"""The private folder of an isolate: exists only if it has input files, result files, or a context that asks for one."""

# pathlib is too slow to import here
# ruff: noqa: PTH102

from __future__ import annotations

import os

from freehold.guest import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from freehold.guest.loop import Loop

PARENT = b"/tmp"


class IsolateFolder:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.path = PARENT + b"/isolate-" + os.urandom(12).hex().encode()
        os.mkdir(self.path, 0o700)

    def measure(self, most: int) -> int:
        """Bytes in its files; stops counting beyond `most`."""
        total = 0
        waiting = [self.path]
        while waiting and total <= most:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        total += 256 + entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
            except OSError:
                continue  # it was removed meanwhile
        return total

    def remove(self) -> None:
        self._loop.add_job(self._remove())

    def _remove(self) -> Generator[bool, None, None]:
        try:
            yield from tree.remove_tree(self.path)
        except OSError:
            return
