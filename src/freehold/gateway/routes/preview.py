"""`/v1/preview`: ports that can be previewed, and addresses that open them. Previews have origins of their own."""

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Request
from pydantic import BaseModel, Field

from freehold.errors import FreeholdError
from freehold.gateway.addresses import origin_of
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, RequestBody
from freehold.gateway.preview.app import ENTER_PATH
from freehold.gateway.preview.hosts import PreviewDomain, PreviewHosts, PreviewSite, check_port
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post


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


class PreviewRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._preview = context.preview

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
