"""Stores the words of running messages while they are written, for all sessions together and at most twice a second.

However many pieces agents send, that is one short transaction in a thread, and no character is written more than once.
"""

import asyncio
import logging
from contextlib import suppress

from freehold.agents.sessions.transcript import TranscriptBuilder
from freehold.agents.sessions.unfinished_store import MessagePart, UnfinishedStore
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError

SAVE_INTERVAL = 0.5
"""Seconds between two writes. What was shown within them may be lost when the gateway is killed."""

log = logging.getLogger("freehold.agents")


class UnfinishedMessage:
    """The message that the agent of one session is writing, and how much of it is stored."""

    def __init__(self, session: str, transcript: TranscriptBuilder) -> None:
        self._session = session
        self._transcript = transcript
        self._number = 0
        self._length = 0

    def read_part(self, turn: int) -> MessagePart | None:
        """What is not stored yet."""
        found = self._transcript.open_message(self._number, self._length)
        if found is None:
            return None
        number, is_open = found.number, self._transcript.is_open
        return MessagePart(
            self._session, turn, number, found.kind, found.id, found.at, found.text, lambda: is_open(number)
        )

    def mark_stored(self, part: MessagePart) -> None:
        self._number, self._length = part.number, part.at + len(part.text)


class UnfinishedMessages:
    """`run` must run as long as sessions do. It stores what is left when it is cancelled."""

    def __init__(self, store: UnfinishedStore) -> None:
        self._store = store
        self._grown: dict[UnfinishedMessage, int] = {}
        """Messages with words that are not stored, and their turns."""
        self._has_grown = asyncio.Event()
        self._is_failing = False

    def note_growth(self, message: UnfinishedMessage, turn: int) -> None:
        """Does not block, and costs nothing much: it is called for every piece."""
        self._grown[message] = turn
        self._has_grown.set()

    async def run(self) -> None:
        try:
            while True:
                await self._has_grown.wait()
                await self._try_save()
                await asyncio.sleep(SAVE_INTERVAL)
        finally:
            with suppress(FreeholdError):
                await self._save()

    async def _try_save(self) -> None:
        try:
            await self._save()
        except FreeholdError as error:  # the disk may be full: agents work on, and it is tried again
            if not self._is_failing:
                log.warning("the words of unfinished messages cannot be stored: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False

    async def _save(self) -> None:
        grown = dict(self._grown)
        read = [(message, message.read_part(turn)) for message, turn in grown.items()]
        parts = [(message, part) for message, part in read if part is not None]
        if parts:
            await run_blocking(self._store.add, [part for _, part in parts])
        for message, part in parts:
            message.mark_stored(part)
        for message in grown:
            if message.read_part(0) is None:
                self._grown.pop(message, None)
        if not self._grown:
            self._has_grown.clear()
