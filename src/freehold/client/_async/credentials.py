"""Sign-ins and API tokens: `home.sign_ins` and `home.tokens`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.models import Ended, SignInInfo, TokenInfo
from freehold.client.topic_protocol import quote_segment


class AsyncSignIns:
    """The signed-in browsers."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[SignInInfo, ...]:
        """All sign-ins, the most recently used first."""
        return await self._connection.get("/v1/sign-ins", tuple[SignInInfo, ...])

    async def end(self, sign_in: str) -> None:
        """Sign out one browser by its id. Its sockets and streams are closed at once."""
        await self._connection.delete(f"/v1/sign-ins/{quote_segment(sign_in)}", Ended)

    async def end_all(self) -> int:
        """Sign out all browsers. Returns how many there were."""
        return (await self._connection.delete("/v1/sign-ins", Ended)).ended


class AsyncTokens:
    """The API tokens. A token cannot create another token; only a browser can."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[TokenInfo, ...]:
        return await self._connection.get("/v1/tokens", tuple[TokenInfo, ...])

    async def revoke(self, name: str) -> None:
        await self._connection.delete(f"/v1/tokens/{quote_segment(name)}", Ended)
