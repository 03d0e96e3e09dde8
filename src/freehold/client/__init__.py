"""A Freehold, from a program: over the same API that the browser uses, with an API token.

To add a resource: write it once, with `async`, as a module in `_async/`; give it a line in `_async/freehold.py`; run
`python -m tools.generate`, which writes the same for `Freehold.sync` into `_sync/`.
"""

from typing import TYPE_CHECKING

from freehold.client._async.freehold import AsyncFreehold

if TYPE_CHECKING:
    from freehold.client._sync.freehold import SyncFreehold


class Freehold(AsyncFreehold):
    """One Freehold, for programs with an event loop.

    async with Freehold("http://localhost:3000", token="fh_…") as home:
        async for event in home.timeline.follow():
            print(event.kind)
    """

    @staticmethod
    def sync(url: str, *, token: str | None = None, timeout: float = 30.0) -> "SyncFreehold":
        """The same for scripts: `with Freehold.sync(url) as home: home.history.undo()`."""
        from freehold.client._sync.freehold import SyncFreehold

        return SyncFreehold(url, token=token, timeout=timeout)


__all__ = ["Freehold"]
