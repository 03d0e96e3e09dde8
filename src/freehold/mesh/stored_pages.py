"""Pages of the events that a relay has kept: the newest first, until there are no older ones."""

import logging

from freehold.mesh.nostr.event import NostrEvent

PAGE = 1_000
"""Events of one page: fewer than may come at once."""
MAX_EVENTS, MAX_PAGES = 20_000, 100
"""What is read at most, however much strangers have left at a relay."""

log = logging.getLogger("freehold.mesh")


class StoredPages:
    """`until` is the newest moment of the page that is read now; None for the first one.

    A relay may give fewer events than it was asked for, so only an empty page is the last. The oldest second of a page
    belongs to the next one too, which may have more of it. When a page is that second alone, the rest of it is left out.
    """

    def __init__(self) -> None:
        self.until: int | None = None
        self.count = 0
        """Events of this page."""
        self._oldest = 0
        self._read = self._pages = 0

    def note(self, event: NostrEvent) -> None:
        """An event of this page. One that is newer than what was asked for is none of it."""
        if self.until is None or event.created_at <= self.until:
            self._oldest = min(self._oldest, event.created_at) if self.count else event.created_at
            self.count += 1

    def turn(self, relay: str) -> bool:
        """Begins the next page. False when there is none."""
        if self.count == 0:
            return False
        self._read, self._pages = self._read + self.count, self._pages + 1
        if self._read >= MAX_EVENTS or self._pages >= MAX_PAGES:
            log.warning("a relay has kept more messages than are read", extra={"relay": relay, "read": self._read})
            return False
        self.until = self._oldest - (1 if self._oldest == self.until else 0)
        self.count = 0
        return self.until >= 0
