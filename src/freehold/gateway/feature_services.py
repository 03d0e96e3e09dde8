"""The services of features. One that can wait for work is loaded when there is some, or when it is asked for."""

import asyncio
from collections.abc import Sequence
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

from freehold.features import Feature, FeatureService, load_reference
from freehold.gateway.feature_work import wait_for_work

if TYPE_CHECKING:
    from freehold.gateway.context import RouteContext

FS = TypeVar("FS", bound=FeatureService)


class FeatureServices:
    """Also used by the thread that loads the routes."""

    def __init__(self, context: "RouteContext", features: Sequence[Feature]) -> None:
        self._context = context
        self._features = [feature for feature in features if feature.service is not None]
        self._made: dict[str, FeatureService] = {}
        self._making = RLock()
        self._is_made = {feature.name: asyncio.Event() for feature in self._features}
        self._loop: asyncio.AbstractEventLoop | None = None

    def list(self) -> list[FeatureService]:
        """All of them. Those that have waited are made."""
        return [self._make(feature) for feature in self._features]

    def find(self, kind: type[FS]) -> FS:
        """The service of this class. It is made if it has waited until now."""
        for feature in self._features:
            service = self._make(feature)
            if isinstance(service, kind):
                return service
        raise LookupError(f"no feature declares {kind.__name__}")

    async def run(self) -> None:
        """Until cancelled."""
        self._loop = asyncio.get_running_loop()
        with self._making:
            for name in self._made:
                self._is_made[name].set()
        async with asyncio.TaskGroup() as group:
            for feature in self._features:
                group.create_task(self._run_one(feature))

    async def _run_one(self, feature: Feature) -> None:
        waits = [
            asyncio.ensure_future(wait_for_work(feature, self._context.services)),
            asyncio.ensure_future(self._is_made[feature.name].wait()),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)  # so that what they hold is closed
        for one in done:
            one.result()
        await self._make(feature).run()

    def _make(self, feature: Feature) -> FeatureService:
        with self._making:
            service = self._made.get(feature.name)
            if service is None:
                assert feature.service is not None  # the others are left out
                made: FeatureService = load_reference(feature.service)(self._context)
                service = self._made[feature.name] = made
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._is_made[feature.name].set)
            return service
