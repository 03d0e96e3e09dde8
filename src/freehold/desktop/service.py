"""The desktop while the gateway runs: it starts for a viewer or an agent, and ends when both are gone for a while."""

from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from freehold.desktop.section import DesktopSection
from freehold.errors import FreeholdError
from freehold.gateway.preview.hosts import PreviewSite
from freehold.gateway.preview.on_demand_site import OnDemandSite
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from freehold.desktop.display import Desktop
    from freehold.gateway.context import RouteContext


class DesktopService(OnDemandSite["Desktop"]):
    """The one desktop of this Freehold, in the computer `main`."""

    site_name = "desktop"

    def __init__(self, services: Services) -> None:
        self.section = services.manifest.section(DesktopSection)
        self._services = services
        super().__init__(self.section)

    def start_program(self) -> "AbstractAsyncContextManager[Desktop]":
        from freehold.desktop.display import start_desktop

        return start_desktop(self._services.computer, self.section)

    def explain_disabled(self) -> FreeholdError:
        return FreeholdError(
            "desktop.disabled",
            "The desktop is switched off",
            hint="Set desktop.enabled and [security.exceptions.desktop] in freehold.toml",
        )

    async def serve_site(self, site: PreviewSite, scope: Scope, receive: Receive, send: Send) -> None:
        from freehold.desktop.viewer import relay_viewer, send_viewer_file  # few open it

        if scope["type"] == "websocket":
            async with self.use() as desktop, await desktop.connect() as tunnel:
                await relay_viewer(tunnel, scope, receive, send)
        else:
            await send_viewer_file(self.section, site, scope, send)


def find_desktop(services: Services) -> DesktopService:
    """The service that tools and routes share."""
    return services.feature_objects.find(DesktopService, lambda: DesktopService(services))


def make_desktop_service(context: "RouteContext") -> DesktopService:
    return find_desktop(context.services)


def make_probe(services: Services) -> Probe:
    async def probe() -> ProbeResult | None:
        return None if services.manifest.section(DesktopSection).enabled else ProbeResult("off")

    return probe
