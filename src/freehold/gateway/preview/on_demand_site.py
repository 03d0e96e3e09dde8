"""A site of a feature whose program in the computer starts at its first use and ends when nobody uses it."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Generic, Protocol, TypeVar

from freehold.errors import FreeholdError
from freehold.on_demand import Ending, OnDemand

T = TypeVar("T", bound=Ending)


class SiteSection(Protocol):
    """What the section of such a feature has in the manifest."""

    @property
    def enabled(self) -> bool: ...
    @property
    def idle(self) -> float: ...


class OnDemandSite(ABC, Generic[T]):
    """A feature adds how its program is started, and how the site is served."""

    site_name: ClassVar[str]

    def __init__(self, section: SiteSection) -> None:
        self._switch = section
        self._held: OnDemand[T] = OnDemand(self.site_name, self.start_program, idle=section.idle)

    @abstractmethod
    def start_program(self) -> AbstractAsyncContextManager[T]: ...

    @abstractmethod
    def explain_disabled(self) -> FreeholdError: ...

    @property
    def is_enabled(self) -> bool:
        return self._switch.enabled

    @property
    def is_running(self) -> bool:
        return self._held.is_open

    def use(self) -> AbstractAsyncContextManager[T]:
        """The program. Starts it when it does not run. Raises why it is switched off or cannot start."""
        if not self.is_enabled:
            raise self.explain_disabled()
        return self._held.use()

    async def run(self) -> None:
        if not self.is_enabled:
            return
        try:
            await asyncio.Event().wait()
        finally:
            await self._held.close()

    async def start_site(self) -> None:
        async with self.use():
            pass

    async def stop_site(self) -> None:
        await self._held.close()
