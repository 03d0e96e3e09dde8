"""The files in the computer: `home.files`."""

from typing import Any
from urllib.parse import quote

from freehold.client._async.connection import AsyncConnection
from freehold.client.file_models import (
    ChangedPathInfo,
    FileContent,
    FileHits,
    FileInfo,
    FolderPage,
    FolderTree,
    SavedFile,
)
from freehold.errors import FreeholdError


class AsyncFiles:
    """A relative path is below /workspace. The token needs the scope `files`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        try:
            await self._connection.get("/v1/files/stat", dict[str, Any], {"path": path})
        except FreeholdError as error:
            if error.code not in ("files.not-found", "files.not-a-folder"):
                raise
            return False
        return True

    async def stat(self, path: str) -> FileInfo:
        """One file or folder. A link is followed inside the computer only."""
        return await self._connection.get("/v1/files/stat", FileInfo, {"path": path})

    async def list(self, path: str = ".", *, after: str = "", limit: int = 1000) -> FolderPage:
        """One page of the contents of a folder, by name."""
        return await self._connection.get("/v1/files/list", FolderPage, {"path": path, "after": after, "limit": limit})

    async def tree(self, path: str = ".", *, all: bool = False) -> FolderTree:
        """Everything below a folder. Without `all`, folders of git and package managers are skipped."""
        return await self._connection.get("/v1/files/tree", FolderTree, {"path": path, "all": all})

    async def search(
        self,
        query: str,
        path: str = ".",
        *,
        regex: bool = False,
        ignore_case: bool = True,
        all: bool = False,
        limit: int = 500,
    ) -> FileHits:
        """Lines of text files that contain the query. Without `all`, folders of git and package managers are skipped."""
        params = {"query": query, "path": path, "regex": regex, "ignore_case": ignore_case, "all": all, "limit": limit}
        return await self._connection.get("/v1/files/search", FileHits, params)

    async def read(self, path: str) -> FileContent:
        """The bytes of a file."""
        headers, content = await self._connection.download(_path(path))
        return FileContent(content, headers.get("etag", ""))

    async def write(
        self, path: str, content: bytes | str, *, if_match: str | None = None, is_new: bool = False
    ) -> SavedFile:
        """Write a whole file. With `if_match`, only when it still has that etag; with `is_new`, only when it is new."""
        headers = {"if-match": if_match, "if-none-match": "*" if is_new else None}
        raw = content.encode() if isinstance(content, str) else content
        return await self._connection.upload("PUT", _path(path), SavedFile, raw, headers)

    async def create_folder(self, path: str) -> ChangedPathInfo:
        """Create a folder and its missing parents."""
        return await self._connection.post("/v1/files/folder", ChangedPathInfo, {"path": path})

    async def move(self, path: str, to: str, *, replace: bool = False) -> ChangedPathInfo:
        """Rename or move a file or folder."""
        return await self._connection.post(
            "/v1/files/move", ChangedPathInfo, {"path": path, "to": to, "replace": replace}
        )

    async def copy(self, path: str, to: str, *, replace: bool = False) -> ChangedPathInfo:
        """Copy a file, or a folder with its contents."""
        return await self._connection.post(
            "/v1/files/copy", ChangedPathInfo, {"path": path, "to": to, "replace": replace}
        )

    async def remove(self, path: str, *, recursive: bool = False) -> ChangedPathInfo:
        """Remove a file or folder. Undo brings it back."""
        return await self._connection.post("/v1/files/remove", ChangedPathInfo, {"path": path, "recursive": recursive})


def _path(path: str) -> str:
    return f"/v1/files/content?path={quote(path, safe='')}"
