"""What the stores of the identity database have in common: the owner, the clock, one connection and one cache."""

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from freehold.identity.cache import IdentityCache
from freehold.identity.database import IdentityDatabase

T = TypeVar("T")


class IdentityStore(Generic[T]):
    """One kind of credential in the identity database. Use it as a context manager, or call `close`.

    `owner` is the configured DID. A credential that was made for another owner is not valid. Changes by this object
    are seen at once; changes by another process within `refresh_interval` seconds. Threads may share one object.
    """

    def __init__(
        self,
        path: Path,
        *,
        owner: str | None = None,
        clock: Callable[[], float] = time.time,
        refresh_interval: float = 0.0,
    ) -> None:
        self.owner = owner
        self._clock = clock
        self._database = IdentityDatabase(path)
        self._cache: IdentityCache[T] = IdentityCache(self._database, refresh_interval)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()
