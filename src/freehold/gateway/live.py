"""What is open right now, and for whom: so that a revoked session loses its sockets and streams at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from freehold.identity.sessions import Session, Sessions
from freehold.identity.tokens import Token, Tokens


@dataclass(eq=False)
class Connection:
    """One request or socket under way. `revoked` is set before its task is cancelled."""

    session: Session | None
    token: Token | None
    task: asyncio.Task[object]
    revoked: bool = False


class LiveConnections:
    """Every request and socket of an owner's credential, from its first byte to its last."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def request(self, session: Session | None, token: Token | None) -> Iterator[Connection]:
        task = asyncio.current_task()
        assert task is not None
        connection = Connection(session, token, task)
        if session is None and token is None:
            yield connection
            return
        self._open.add(connection)
        try:
            yield connection
        finally:
            self._open.discard(connection)

    def end_revoked(self, sessions: Sessions, tokens: Tokens) -> int:
        """Cancel whatever belongs to a session or token that no longer lives; says how many."""
        ended = 0
        known: dict[tuple[str, str], bool] = {}
        for connection in list(self._open):
            key = ("session", connection.session.id) if connection.session else ("token", _id(connection.token))
            if key not in known:
                known[key] = sessions.alive(key[1]) if key[0] == "session" else tokens.alive(key[1])
            if not known[key]:
                connection.revoked = True
                connection.task.cancel()
                ended += 1
        return ended


def _id(token: Token | None) -> str:
    assert token is not None  # only connections with a credential are kept
    return token.id


async def end_revoked_connections(live: LiveConnections, sessions: Sessions, tokens: Tokens) -> None:
    """Runs as long as the gateway: within a quarter second of a revocation its connections are gone."""
    async for _revision in sessions.watch_revocations():
        live.end_revoked(sessions, tokens)
