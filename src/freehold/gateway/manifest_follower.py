"""Applies changes of the manifest's files while the gateway runs."""

import asyncio
import logging

from freehold.errors import FreeholdError
from freehold.gateway.computer_access import ComputerAccess
from freehold.manifest.current import CurrentManifest

CHECK_INTERVAL = 1.0

log = logging.getLogger(__name__)


class ManifestFollower:
    """Models, budgets, agents and egress rules follow the files. `problem` says why they do not now."""

    def __init__(self, current: CurrentManifest, access: ComputerAccess) -> None:
        self._current = current
        self._access = access
        self._turn = asyncio.Lock()
        self._seen = current.read_version()
        self.problem: FreeholdError | None = None

    async def run(self) -> None:
        """Until cancelled. Looks at the files again and again: an editor tells nobody that it has saved one."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            if await asyncio.to_thread(self._current.read_version) == self._seen:
                continue
            try:
                await self.apply()
            except FreeholdError as error:
                log.warning("the manifest was changed and is not applied: %s", error)
            except OSError as error:
                log.warning("the manifest cannot be read: %s", error)

    async def apply(self) -> None:
        """Apply the files as they are now. Raises `manifest.invalid` when they have errors: nothing changes then."""
        async with self._turn:
            # Read before the content: a change in between is seen the next time.
            self._seen = await asyncio.to_thread(self._current.read_version)
            try:
                await asyncio.to_thread(self._current.reload)
                await self._access.apply_manifest(self._current.manifest)
            except FreeholdError as error:
                self.problem = error
                raise
            self.problem = None
