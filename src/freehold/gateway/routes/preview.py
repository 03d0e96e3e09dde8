"""`/v1/preview`: ports that can be previewed, and addresses that open them. Previews have origins of their own."""

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field

from freehold.errors import FreeholdError
from freehold.gateway.addresses import origin_of
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, RequestBody, UrlName
from freehold.gateway.preview.app import ENTER_PATH
from freehold.gateway.preview.feature_site import FeatureSite
from freehold.gateway.preview.hosts import PreviewDomain, PreviewHosts, PreviewSite, check_port
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.manifest.addresses import is_loopback


class PreviewPortBody(BaseModel):
    """A port in the computer that a program listens on. `process` and `service` are null when unknown."""

    port: int
    process: str | None
    service: str | None


class PreviewPortsBody(BaseModel):
    """The ports that can be previewed now. The topic `ports` has the same messages."""

    ports: list[PreviewPortBody]


class OpenPreviewBody(RequestBody):
    path: str = Field(
        default="/",
        max_length=2000,
        pattern=r"^/([!-.0-\[\]-~][!-\[\]-~]*)?$",
        description="The path to open in the preview.",
    )


class PreviewAddressBody(BaseModel):
    """`address` works once, within 30 seconds. `origin` is the origin of the preview."""

    address: str
    origin: str


class NamedSiteBody(BaseModel):
    """A site of a feature, such as the editor. It starts when it is opened, and ends when nobody uses it."""

    name: str
    enabled: bool
    running: bool


class NamedSitesBody(BaseModel):
    sites: list[NamedSiteBody]


class PreviewCertificateBody(BaseModel):
    """The host of a preview that may have a certificate."""

    domain: str


class PreviewRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._preview = context.preview
        self._sites = {one.site_name: one for one in context.features.list() if isinstance(one, FeatureSite)}

    @get("/v1/preview/ports", scope="read")
    async def list_preview_ports(self) -> PreviewPortsBody:
        """The ports that programs in the computer listen on. Changes are published on the topic `ports`."""
        found = await self._preview.ports.list_ports()
        return PreviewPortsBody(ports=[PreviewPortBody(**asdict(one)) for one in found])

    @post("/v1/preview/{port}/open", scope="terminal")
    async def open_preview(
        self, port: Annotated[int, Path(ge=1, le=65535), DIGITS], request: Request, body: OpenPreviewBody | None = None
    ) -> PreviewAddressBody:
        """An address for one browser, in a frame or a tab. The preview ends with the sign-in that opened it."""
        check_port(port)
        site = PreviewSite(_domain_for(request, self._preview.hosts), port)
        principal = principal_of(request.scope)
        await asyncio.to_thread(self._services.timeline.append, "preview.opened", {"port": port}, who=principal.who)
        token = self._preview.passes.create_token(principal, site, (body or OpenPreviewBody()).path)
        return PreviewAddressBody(address=f"{site.origin}{ENTER_PATH}{token}", origin=site.origin)

    @get("/v1/preview/sites", scope="read")
    async def list_sites(self) -> NamedSitesBody:
        """The sites of features: the desktop and the editor."""
        return NamedSitesBody(sites=[_describe(one) for one in self._sites.values()])

    @post("/v1/preview/sites/{name}/open", scope="terminal")
    async def open_site(self, name: UrlName, request: Request) -> PreviewAddressBody:
        """Starts a site of a feature, and an address for one browser as that of a preview."""
        found = self._find_site(name)
        site = PreviewSite(_domain_for(request, self._preview.hosts), 0, found.site_name)
        await found.start_site()
        principal = principal_of(request.scope)
        await asyncio.to_thread(
            self._services.timeline.append, "preview.opened", {"site": found.site_name}, who=principal.who
        )
        token = self._preview.passes.create_token(principal, site, "/")
        return PreviewAddressBody(address=f"{site.origin}{ENTER_PATH}{token}", origin=site.origin)

    @post("/v1/preview/sites/{name}/stop", scope="terminal")
    async def stop_site(self, name: UrlName) -> NamedSiteBody:
        """Ends the programs of a site. Opening it starts them again."""
        found = self._find_site(name)
        await found.stop_site()
        return _describe(found)

    def _find_site(self, name: str) -> FeatureSite:
        found = self._sites.get(name)
        if found is None:
            raise FreeholdError(
                "preview.not-found", f"There is no site {name!r}", hint=f"The sites are: {', '.join(self._sites)}"
            )
        return found

    @get("/v1/preview/certificate", scope="anyone")
    async def allow_preview_certificate(
        self, request: Request, domain: Annotated[str, Query(max_length=253)]
    ) -> PreviewCertificateBody:
        """Whether a proxy on this machine may get a certificate for a host: only for a preview that is open and answers."""
        site = self._preview.hosts.find(domain.encode("ascii", "replace"))
        is_from_here = is_loopback(principal_of(request.scope).address)
        if is_from_here and site is not None and self._preview.passes.was_opened(site):
            if site.name is not None:
                return PreviewCertificateBody(domain=site.host)
            found = await self._preview.ports.list_ports()
            if any(one.port == site.port for one in found):
                return PreviewCertificateBody(domain=site.host)
        raise FreeholdError("preview.not-found", "No open preview has that name")


def _describe(site: FeatureSite) -> NamedSiteBody:
    return NamedSiteBody(name=site.site_name, enabled=site.is_enabled, running=site.is_running)


def _domain_for(request: Request, hosts: PreviewHosts) -> PreviewDomain:
    """The domain of previews for the control center at the Host of this request."""
    host = request.headers["host"].lower()
    domain = hosts.domain_for(host)
    if domain is None:
        raise FreeholdError(
            "preview.no-address",
            f"Previews have no address that a browser at {origin_of(f'https://{host}')} can reach",
            hint='Set gateway.preview_url in freehold.toml, such as "https://preview.example.net", with a wildcard name',
        )
    return domain
