"""The files in the computer: `home.files`."""

from typing import Any

from freehold.client._async.connection import AsyncConnection
from freehold.errors import FreeholdError


class AsyncFiles:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def exists(self, path: str) -> bool:
        """Whether there is a file or folder; a relative path is below /workspace. Needs the scope `files`."""
        try:
            await self._connection.get("/v1/files/stat", dict[str, Any], {"path": path})
        except FreeholdError as error:
            if error.code not in ("files.not-found", "files.not-a-folder"):
                raise
            return False
        return True
