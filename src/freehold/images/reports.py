"""What the commands of `freehold build` print as JSON."""

from dataclasses import dataclass

from freehold.images.artifacts import ImageRecord
from freehold.images.lock import LockChange


@dataclass(frozen=True)
class BuiltImage(ImageRecord):
    """What one build made, and the folder that has it."""

    folder: str


@dataclass(frozen=True)
class ChosenLock:
    """The digest of the new lock, how many bytes of unused packages were removed, and what changed."""

    lock: str
    freed: int
    changes: tuple[LockChange, ...]
