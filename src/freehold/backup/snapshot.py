"""One backup: when it was made, of what, and where its list of files is."""

import json
from dataclasses import asdict, dataclass, field

from freehold.backup.age import CannotDecrypt
from freehold.strict_json import EpochSeconds, decode

FORMAT = 1


@dataclass(frozen=True)
class TimelineAnchor:
    """The last event of the timeline in this backup. A timeline that does not have it any more was cut or changed."""

    seq: int
    hash: str


@dataclass(frozen=True)
class TrackedFolder:
    """A folder that history records: its owner and mode, and the history entry of this backup."""

    uid: int
    gid: int
    mode: int


@dataclass(frozen=True)
class BackupSnapshot:
    """`listing` has the blobs of the list of files; `previous` the digest of the backup before it.

    `total` is the size of what it restores, `read` how much was read for it, `added` how much was stored.
    """

    format: int
    number: int
    previous: str
    at: EpochSeconds
    host: str
    home: str
    freehold: str
    listing: tuple[str, ...]
    files: int
    total: int
    read: int
    added: int
    history_entry: int | None = None
    timeline: TimelineAnchor | None = None
    folders: dict[str, TrackedFolder] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()


def decode_snapshot(text: bytes) -> BackupSnapshot:
    """Raises CannotDecrypt: what is sealed by our key and yet malformed is of another version."""
    try:
        return decode(BackupSnapshot, json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise CannotDecrypt(f"it has another format: {error}") from error
