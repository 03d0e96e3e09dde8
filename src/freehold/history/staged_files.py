"""The new files of a restore that are made one by one in staging, each under a name of its own, before the tree changes."""

from collections.abc import Callable, Iterator, Sequence

from freehold.history.contents import ContentReader
from freehold.history.model import RestoreStep
from freehold.history.new_files import NewFiles, Owner
from freehold.history.staging_area import StagedName, StagingArea, StagingLane
from freehold.history.tree_reader import WrittenFile

NamePath = tuple[bytes, ...]


class StagedFiles:
    """Files and symlinks by path. A name is `prefix` and the next of `numbers`."""

    def __init__(self, staging: StagingArea, prefix: bytes, numbers: Iterator[int]) -> None:
        self._staging = staging
        self._prefix = prefix
        self._numbers = numbers
        self._names: dict[NamePath, StagedName] = {}
        self._made: dict[int, WrittenFile] = {}

    def make(
        self,
        steps: Sequence[RestoreStep],
        readers: Sequence[ContentReader],
        owner: Owner | None,
        advance: Callable[[int], None],
    ) -> dict[NamePath, str]:
        """Make the new file or symlink of each step. For the arguments see `NewFiles.write`.

        Returns the paths that could not be made, with the reason.
        """
        files = NewFiles()
        files.write(steps, readers, self._open_lane, owner, advance)
        self._made.update(files.made)
        for path in files.failed:
            self._names.pop(path, None)
        return files.failed

    def take(self, step: RestoreStep) -> tuple[StagedName, WrittenFile | None] | None:
        """What was made for this step, once: where it is, and the file; a symlink has none. None when nothing was made."""
        staged = self._names.pop(step.path, None)
        return None if staged is None else (staged, self._made.pop(step.place, None))

    def _open_lane(self) -> "_Lane":
        return _Lane(StagingLane(self._staging), self._prefix, self._numbers, self._names)


class _Lane:
    """A `Destination`: the staging folder of one thread."""

    def __init__(
        self, lane: StagingLane, prefix: bytes, numbers: Iterator[int], names: dict[NamePath, StagedName]
    ) -> None:
        self._lane = lane
        self._prefix = prefix
        self._numbers = numbers
        self._names = names

    def locate(self, step: RestoreStep) -> tuple[int, bytes]:
        staged = self._lane.make_name(b"%s%d" % (self._prefix, next(self._numbers)))
        self._names[step.path] = staged
        return staged.folder, staged.name

    def note_creation_time(self, seconds: float) -> None:
        self._lane.note_creation_time(seconds)

    def close(self) -> None:
        return
