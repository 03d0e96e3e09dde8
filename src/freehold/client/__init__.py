"""The Python client of the API. It uses the same API as the browser, with an API token.

To add a resource, write an async module in `_async/`, add it to `_async/freehold.py`, and run `python -m
tools.generate`, which writes the synchronous module into `_sync/`.
"""

from typing import TYPE_CHECKING

from freehold.client._async.freehold import AsyncFreehold

if TYPE_CHECKING:
    from freehold.client._sync.freehold import SyncFreehold


class Freehold(AsyncFreehold):
    """A Freehold, for asyncio programs.

    async with Freehold("http://localhost:3000", token="fh_…") as home:
        async for event in home.timeline.follow():
            print(event.kind)
    """

    @staticmethod
    def sync(url: str, *, token: str | None = None, timeout: float = 30.0) -> "SyncFreehold":
        """The synchronous client: `with Freehold.sync(url) as home: home.history.undo()`."""
        from freehold.client._sync.freehold import SyncFreehold

        return SyncFreehold(url, token=token, timeout=timeout)


__all__ = ["Freehold"]
