# made from _async/credentials.py by python -m tools.generate
"""Who is signed in, and with what: `home.sign_ins` and `home.tokens`."""

from freehold.client._sync.connection import SyncConnection, segment
from freehold.client.answers import Ended, SignIn, Token


class SyncSignIns:
    """The browsers that are signed in."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[SignIn, ...]:
        """The last used first."""
        return self._connection.get("/v1/sign-ins", tuple[SignIn, ...])

    def end(self, sign_in: str) -> None:
        """Sign one browser out, by its id. Its sockets and streams close at once."""
        self._connection.delete(f"/v1/sign-ins/{segment(sign_in)}", Ended)

    def end_all(self) -> int:
        """Sign out everywhere; says how many browsers that were."""
        return (self._connection.delete("/v1/sign-ins", Ended)).ended


class SyncTokens:
    """The API tokens. Only a browser can make one: a token cannot make another."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[Token, ...]:
        return self._connection.get("/v1/tokens", tuple[Token, ...])

    def revoke(self, name: str) -> None:
        self._connection.delete(f"/v1/tokens/{segment(name)}", Ended)
