"""The last event's number and hash, kept in the vault and authenticated.

Who can write the timeline's file can cut events off its end, and the note of the last event with them: the rest of the
chain is then still valid. The anchor is in another place, so the cut is found. It is written after the event, so a
program that is killed between the two leaves an anchor that is one event behind, and that is no fault.
"""

import contextlib
import fcntl
import hmac
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.private_file import make_private_file, read_private_file

log = logging.getLogger(__name__)

KEY_BYTES = 32
_SEQ_DIGITS = 20
_LENGTH = _SEQ_DIGITS + 1 + 64 + 1 + 64 + 1
LOCK_TRIES = 100
LOCK_PAUSE = 0.001


@dataclass(frozen=True)
class AnchoredHead:
    seq: int
    hash: str


class InvalidAnchor(Exception):
    """The anchor was not written with the key in the vault."""


class HeadAnchor:
    """The anchor of one timeline. A timeline in a folder without a vault has none."""

    def __init__(self, timeline: Path) -> None:
        self._folder = timeline.parent / "vault"
        self.path = self._folder / "timeline-head"
        self._key_path = self._folder / "timeline-key"
        self._file: int | None = None
        self._key: bytes | None = None

    def read(self) -> AnchoredHead | None:
        """None when there is none yet. Raises InvalidAnchor, or FreeholdError when the key is missing or exposed."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        return self._decode(text) if text else None

    def advance(self, connection: sqlite3.Connection, seq: int, chained: str) -> None:
        """Anchor this event, which is on disk. An anchor that the chain does not fit stays: it is the evidence.

        Never raises for want of the vault or of space: the event itself is stored.
        """
        try:
            with self._locked() as file:
                if file is None:
                    return
                text = os.pread(file, _LENGTH, 0)
                if text and not self._continues(connection, self._decode(text), seq):
                    return
                os.pwrite(file, self._encode(seq, chained), 0)
        except (OSError, InvalidAnchor, FreeholdError) as error:
            log.warning("the end of the timeline is not anchored: %s", error)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _continues(self, connection: sqlite3.Connection, anchored: AnchoredHead, seq: int) -> bool:
        if anchored.seq >= seq:
            return False
        found = connection.execute("SELECT hash FROM event WHERE seq = ?", (anchored.seq,)).fetchone()
        return found is not None and found[0] == anchored.hash

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int | None]:
        """The open file, or None without a vault."""
        if self._file is None:
            if not self._folder.is_dir():
                yield None
                return
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self.path, flags, 0o600)
        for attempt in range(LOCK_TRIES):
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:  # another process anchors its own event, or was stopped while it did
                if attempt == LOCK_TRIES - 1:
                    raise
                time.sleep(LOCK_PAUSE)
        try:
            yield self._file
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _encode(self, seq: int, chained: str) -> bytes:
        head = f"{seq:0{_SEQ_DIGITS}d} {chained}"
        if not self._key_path.exists():
            make_private_file(self._key_path, secrets.token_bytes(KEY_BYTES))
        return f"{head} {self._sign(head)}\n".encode()

    def _decode(self, text: bytes) -> AnchoredHead:
        head, _, signature = text.decode("ascii", "replace").rstrip("\n").rpartition(" ")
        if len(text) != _LENGTH or not hmac.compare_digest(self._sign(head).encode(), signature.encode()):
            raise InvalidAnchor(f"{self.path} was not written by this Freehold")
        seq, _, chained = head.partition(" ")
        return AnchoredHead(int(seq), chained)

    def _sign(self, head: str) -> str:
        if self._key is None:
            self._key = read_private_file(
                self._key_path, code="timeline.key", remedy=f"Run: chmod 600 {self._key_path}"
            )
        return hmac.digest(self._key, head.encode(), "sha256").hex()
