"""The mesh in the gateway. Light: what it needs is imported only when the manifest switches it on."""

import asyncio
import logging
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.gateway.principal import RequestSignature
from freehold.mesh.section import MeshSection
from freehold.observe.logs import log_unexpected

if TYPE_CHECKING:
    from freehold.gateway.context import RouteContext
    from freehold.mesh.mesh import Mesh

MIN_WAIT, MAX_WAIT = 5.0, 300.0

log = logging.getLogger("freehold.mesh")


class MeshService:
    """`run` runs as long as the gateway."""

    def __init__(self, context: "RouteContext") -> None:
        self._context = context
        self.section = context.services.manifest.section(MeshSection)
        self._mesh: Mesh | None = None
        self._opened = asyncio.Event()

    async def run(self) -> None:
        if not self.section.enabled:
            return
        wait = MIN_WAIT
        while True:
            try:
                await self._run()
            except FreeholdError as error:
                log.warning("the mesh cannot be used: %s", error.message)
            except Exception as error:
                # A bug here must not end the gateway.
                log_unexpected(error, "the mesh failed")
            await asyncio.sleep(wait)
            wait = min(MAX_WAIT, wait * 2)

    async def _run(self) -> None:
        from freehold.mesh.mesh import Mesh

        mesh = Mesh(self._context, self.section)
        await asyncio.to_thread(mesh.load)
        self._mesh = mesh
        self._opened.set()
        await mesh.run()

    @property
    def mesh(self) -> "Mesh":
        """Raises `mesh.disabled` or `mesh.not-ready`."""
        if not self.section.enabled:
            raise FreeholdError(
                "mesh.disabled",
                "This Freehold has no neighbours: the mesh is off",
                hint='Set mode = "peer" in [mesh] of freehold.toml, then: freehold restart gateway',
            )
        if self._mesh is None:
            raise FreeholdError(
                "mesh.not-ready", "The mesh has not started", hint="freehold logs gateway shows why, if it does not"
            )
        return self._mesh

    async def wait_open(self) -> "Mesh":
        """For tests and for what starts with the gateway."""
        await self._opened.wait()
        return self.mesh

    def verify(self, header: bytes, method: str, url: str) -> RequestSignature | None:
        """See `SignatureVerifier`. While the mesh has not started nobody is known: to refuse a neighbour as a stranger
        would tell it that it was evicted. Raises `mesh.not-ready`."""
        return self.mesh.signatures.verify(header, method, url) if self.section.enabled else None
