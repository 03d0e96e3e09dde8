"""Who is signed in, and with what: `home.sign_ins` and `home.tokens`."""

from freehold.client._async.connection import AsyncConnection, segment
from freehold.client.answers import Ended, SignIn, Token


class AsyncSignIns:
    """The browsers that are signed in."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[SignIn, ...]:
        """The last used first."""
        return await self._connection.get("/v1/sign-ins", tuple[SignIn, ...])

    async def end(self, sign_in: str) -> None:
        """Sign one browser out, by its id. Its sockets and streams close at once."""
        await self._connection.delete(f"/v1/sign-ins/{segment(sign_in)}", Ended)

    async def end_all(self) -> int:
        """Sign out everywhere; says how many browsers that were."""
        return (await self._connection.delete("/v1/sign-ins", Ended)).ended


class AsyncTokens:
    """The API tokens. Only a browser can make one: a token cannot make another."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[Token, ...]:
        return await self._connection.get("/v1/tokens", tuple[Token, ...])

    async def revoke(self, name: str) -> None:
        await self._connection.delete(f"/v1/tokens/{segment(name)}", Ended)
