# made from _async/credentials.py by python -m tools.generate
"""Sign-ins and API tokens: `home.sign_ins` and `home.tokens`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.models import Ended, SignInInfo, TokenInfo
from freehold.client.topic_protocol import quote_segment


class SyncSignIns:
    """The signed-in browsers."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[SignInInfo, ...]:
        """All sign-ins, the most recently used first."""
        return self._connection.get("/v1/sign-ins", tuple[SignInInfo, ...])

    def end(self, sign_in: str) -> None:
        """Sign out one browser by its id. Its sockets and streams are closed at once."""
        self._connection.delete(f"/v1/sign-ins/{quote_segment(sign_in)}", Ended)

    def end_all(self) -> int:
        """Sign out all browsers. Returns how many there were."""
        return (self._connection.delete("/v1/sign-ins", Ended)).ended


class SyncTokens:
    """The API tokens. A token cannot create another token; only a browser can."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[TokenInfo, ...]:
        return self._connection.get("/v1/tokens", tuple[TokenInfo, ...])

    def revoke(self, name: str) -> None:
        self._connection.delete(f"/v1/tokens/{quote_segment(name)}", Ended)
