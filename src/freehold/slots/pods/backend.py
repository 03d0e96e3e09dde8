"""Where documents are kept: files of this home, or a Solid server."""

from typing import Protocol

from freehold.slots.pods.contract import DocumentInfo


class PodBackend(Protocol):
    """Paths are checked already. The path of a folder ends with `/`; the root is empty. Errors are `SlotError`."""

    kind: str

    async def connect(self) -> None: ...

    async def health(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, path: str) -> tuple[DocumentInfo, bytes]: ...

    async def list_folder(self, folder: str) -> list[DocumentInfo]:
        """In the order of their paths."""
        ...

    async def write(
        self, path: str, media: str, content: bytes, *, if_match: str | None, is_new: bool
    ) -> DocumentInfo: ...

    async def patch_n3(self, path: str, patch: str, *, if_match: str | None) -> DocumentInfo: ...

    async def make_folder(self, folder: str) -> None:
        """Idempotent."""
        ...

    async def delete(self, path: str, *, if_match: str | None) -> None: ...

    async def wait(self, path: str, etag: str, seconds: float) -> DocumentInfo:
        """The document when its ETag is another one, or after so many seconds."""
        ...
