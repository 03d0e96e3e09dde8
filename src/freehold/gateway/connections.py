"""What is open right now, and for whom: so that a revoked session loses its sockets and streams at once."""

import asyncio
from dataclasses import dataclass

from freehold.gateway.needs import Kind
from freehold.identity.sessions import Session, Sessions
from freehold.identity.tokens import Token, Tokens

LOOK_EVERY = 0.25
# Sessions and tokens also end by themselves; nobody announces that.
LOOK_FOR_EXPIRED_EVERY = 40


@dataclass(eq=False, slots=True)
class Connection:
    """One request or socket under way. `revoked` is set before its task is cancelled."""

    kind: Kind
    session: Session | None
    token: Token | None
    task: asyncio.Task[object]
    noticed: bool = False
    revoked: bool = False


class LiveConnections:
    """Every request and socket of an owner's credential, from its first byte to its last."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, kind: Kind, session: Session | None, token: Token | None) -> Connection:
        """Note that a request or socket has begun, in the task that serves it; `close` must follow."""
        task = asyncio.current_task()
        assert task is not None
        connection = Connection(kind, session, token, task)
        if session is not None or token is not None:
            self._open.add(connection)
        return connection

    def close(self, connection: Connection) -> None:
        self._open.discard(connection)

    def end_revoked(self, sessions: Sessions, tokens: Tokens) -> bool:
        """Cancel whatever belongs to a session or token that no longer lives; says whether to look again soon.

        A request is given until the next look: most are about to answer, the one that signs out among them.
        """
        known: dict[tuple[str, str], bool] = {}
        for connection in list(self._open):
            key = ("session", connection.session.id) if connection.session else ("token", _id(connection.token))
            if key not in known:
                known[key] = sessions.alive(key[1]) if key[0] == "session" else tokens.alive(key[1])
            if known[key] or connection.revoked:
                continue
            if connection.kind == "http" and not connection.noticed:
                connection.noticed = True
                continue
            connection.revoked = True
            connection.task.cancel()
        return any(connection.noticed and not connection.revoked for connection in self._open)


def _id(token: Token | None) -> str:
    assert token is not None  # only connections with a credential are kept
    return token.id


async def end_revoked_connections(live: LiveConnections, sessions: Sessions, tokens: Tokens) -> None:
    """Runs as long as the gateway: within half a second of a revocation its connections are gone."""
    known = sessions.revision()
    rounds = 0
    again = False
    while True:
        await asyncio.sleep(LOOK_EVERY)
        rounds += 1
        current = sessions.revision()
        if again or current != known or rounds % LOOK_FOR_EXPIRED_EVERY == 0:
            known = current
            again = live.end_revoked(sessions, tokens)
