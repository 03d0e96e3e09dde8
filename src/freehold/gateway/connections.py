"""The open requests and sockets by credential, so that a revoked sign-in or token loses them at once."""

import asyncio
from dataclasses import dataclass

from freehold.gateway.route_scope import ConnectionKind
from freehold.identity.sign_ins import SignIn, SignIns
from freehold.identity.tokens import ApiToken, ApiTokens

CHECK_INTERVAL = 0.25
# Sign-ins and tokens also expire, and nothing announces that.
ROUNDS_BETWEEN_EXPIRY_CHECKS = 40


@dataclass(eq=False, slots=True)
class OpenConnection:
    """One open request or socket. `revoked` is set before its task is cancelled."""

    kind: ConnectionKind
    sign_in: SignIn | None
    token: ApiToken | None
    task: asyncio.Task[object]
    was_checked: bool = False
    revoked: bool = False


class OpenConnections:
    """Every open request and socket that has a credential."""

    def __init__(self) -> None:
        self._open: set[OpenConnection] = set()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, kind: ConnectionKind, sign_in: SignIn | None, token: ApiToken | None) -> OpenConnection:
        """Register the request or socket that the current task serves. `close` must follow."""
        task = asyncio.current_task()
        assert task is not None
        connection = OpenConnection(kind, sign_in, token, task)
        if sign_in is not None or token is not None:
            self._open.add(connection)
        return connection

    def close(self, connection: OpenConnection) -> None:
        self._open.discard(connection)

    def end_token(self, id: str) -> None:
        """Cancel what belongs to a token that was just revoked, without waiting for a check."""
        for connection in self._open:
            if connection.token is not None and connection.token.id == id and not connection.revoked:
                connection.revoked = True
                connection.task.cancel()

    def end_revoked(self, sign_ins: SignIns, tokens: ApiTokens) -> bool:
        """Cancel what belongs to a sign-in or token that has ended. Returns whether to check again soon.

        A request is cancelled only at the second check: most are about to answer, for example the one that signs out.
        """
        known: dict[tuple[str, str], bool] = {}
        for connection in list(self._open):
            key = ("sign-in", connection.sign_in.id) if connection.sign_in else ("token", _id(connection.token))
            if key not in known:
                known[key] = sign_ins.is_active(key[1]) if key[0] == "sign-in" else tokens.is_active(key[1])
            if known[key] or connection.revoked:
                continue
            if connection.kind == "http" and not connection.was_checked:
                connection.was_checked = True
                continue
            connection.revoked = True
            connection.task.cancel()
        return any(connection.was_checked and not connection.revoked for connection in self._open)


def _id(token: ApiToken | None) -> str:
    assert token is not None  # only connections with a credential are registered
    return token.id


async def end_revoked_connections(live: OpenConnections, sign_ins: SignIns, tokens: ApiTokens) -> None:
    """Runs as long as the gateway. Connections end within half a second of the revocation."""
    known = sign_ins.revocation_count()
    rounds = 0
    again = False
    while True:
        await asyncio.sleep(CHECK_INTERVAL)
        rounds += 1
        current = sign_ins.revocation_count()
        if again or current != known or rounds % ROUNDS_BETWEEN_EXPIRY_CHECKS == 0:
            known = current
            again = live.end_revoked(sign_ins, tokens)
