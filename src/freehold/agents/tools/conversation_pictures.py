"""Pictures that host tools answer with, shown in the conversation for every agent alike."""

from collections.abc import Callable

from freehold.agents.sessions.rows import SessionEventRow
from freehold.agents.sessions.store import SessionStore
from freehold.agents.threads import run_blocking
from freehold.agents.tools.tool import ToolAnswer

MAX_WORDS = 1_000


class ConversationPictures:
    """`publish` tells who reads the session."""

    def __init__(self, store: SessionStore, publish: Callable[[str, list[SessionEventRow]], None]) -> None:
        self._store = store
        self._publish = publish

    async def show(self, session: str, answer: ToolAnswer) -> None:
        """Nothing when no turn of the session runs."""
        turn = await run_blocking(self._store.turns.find_running, session)
        if turn is None:
            return
        pictures = [(one.type, one.content) for one in answer.pictures]
        events = await run_blocking(
            self._store.turns.add_pictures, session, turn, answer.text[:MAX_WORDS], pictures, who=f"session:{session}"
        )
        self._publish(session, events)
