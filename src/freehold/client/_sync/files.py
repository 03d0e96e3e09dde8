# made from _async/files.py by python -m tools.generate
"""The files in the computer: `home.files`."""

from typing import Any

from freehold.client._sync.connection import SyncConnection
from freehold.errors import FreeholdError


class SyncFiles:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder; a relative path is below /workspace. Needs the scope `files`."""
        try:
            self._connection.get("/v1/files/stat", dict[str, Any], {"path": path})
        except FreeholdError as error:
            if error.code not in ("files.not-found", "files.not-a-folder"):
                raise
            return False
        return True
