"""Writes with an idempotency key that have begun. After a crash it tells whether such a write has happened.

Documents are kept in files or on a server, and answers in the timeline's database: no transaction holds both. So what a
document was and what it will be is noted before it is written, and removed together with the answer.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from freehold.slots.answers import KEPT_SECONDS, digest_request, wrong_request
from freehold.slots.contract import CallContext, SlotCaller, SlotWrite
from freehold.slots.errors import SlotError
from freehold.slots.pods.contract import DocumentInfo
from freehold.slots.statement import Steps, ask
from freehold.timeline import Timeline

ABSENT = ""
"""The version of a document that does not exist."""


@dataclass(frozen=True)
class BegunWrite:
    """`after` is None when only the store knows what the document will be."""

    before: str
    after: str | None

    def has_happened(self, now: str, path: str, *, is_whole: bool) -> bool:
        """Whether it was carried out, when the document is as it is now. Raises `pods.conflict` when nobody can tell.

        `is_whole`: it writes the whole document, so that it can be done again, also over what a server has half written.
        """
        if now == self.after:
            return True
        if now == self.before or is_whole:
            return False
        raise SlotError(
            "pods",
            "conflict",
            f"The first answer for this idempotency key was lost, and {path[:200]!a} has changed since",
            hint="Read it: the change may be there already. If it is not, send it with a new key",
        )


class WriteJournal:
    """Blocking."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def find(self, request: SlotWrite[Any], caller: SlotCaller) -> BegunWrite | None:
        """The write of this key that has begun and has no answer. Raises `pods.conflict` for another request."""
        rows = self._timeline.query(
            "SELECT digest, before, after FROM pods_begun WHERE caller = ? AND key = ?", (caller.name, request.key)
        )
        if not rows:
            return None
        digest, before, after = rows[0]
        if digest != digest_request(request):
            raise wrong_request("pods")
        return BegunWrite(before, after)

    def note(self, request: SlotWrite[Any], caller: SlotCaller, begun: BegunWrite, now: float) -> None:
        """On the disk when it returns. Replaces what was noted for an earlier try."""
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM pods_begun WHERE at < ?", (now - KEPT_SECONDS,))
            tx.execute(
                "INSERT INTO pods_begun (caller, key, digest, before, after, at) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (caller, key) DO UPDATE SET before = excluded.before, after = excluded.after",
                (caller.name, request.key, digest_request(request), begun.before, begun.after, now),
            )

    def remove(self, request: SlotWrite[Any], caller: SlotCaller) -> None:
        """What was refused has not happened, and may be tried again."""
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM pods_begun WHERE caller = ? AND key = ?", (caller.name, request.key))


def forget_begun(request: SlotWrite[Any], context: CallContext) -> Steps[None]:
    """In the transaction that stores the answer."""
    if request.key is not None:
        yield from ask("DELETE FROM pods_begun WHERE caller = ? AND key = ?", context.caller.name, request.key)


def version_of(found: tuple[DocumentInfo, bytes] | None) -> str:
    """The same content of the same type is the same version. What others write like it counts as it."""
    if found is None:
        return ABSENT
    info, content = found
    return content_version(info.media or "", content)


def content_version(media: str, content: bytes) -> str:
    return hashlib.sha256(media.encode() + bytes(1) + content).hexdigest()
