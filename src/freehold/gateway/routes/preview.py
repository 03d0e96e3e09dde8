"""Looking at what runs inside: `/v1/preview`. The previews themselves are on origins of their own."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.errors import FreeholdError
from freehold.gateway.addresses import origin_of
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.gateway.preview.front import ENTER
from freehold.gateway.preview.hosts import Family, Place, PreviewHosts, check_port
from freehold.gateway.preview.listeners import Listener, Ports
from freehold.gateway.preview.passes import Passes
from freehold.gateway.topics import Topic, Topics


class PreviewPort(BaseModel):
    """A port inside that something listens on. `process` and `service` are null when they are not known."""

    port: int
    process: str | None
    service: str | None


class PreviewPorts(BaseModel):
    """What can be looked at now, by port; also the messages of the topic `ports`."""

    ports: list[PreviewPort]


class OpenPreview(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str = Field(
        default="/", max_length=2000, pattern=r"^/([!-.0-\[\]-~][!-\[\]-~]*)?$", description="Where to go there."
    )


class PreviewAddress(BaseModel):
    """`address` opens once, within half a minute; `origin` is where it leads."""

    address: str
    origin: str


def describe(found: list[Listener]) -> dict[str, Any]:
    rows = [PreviewPort(port=one.port, process=one.process, service=one.service) for one in found]
    return PreviewPorts(ports=rows).model_dump()


def add_preview(app: FastAPI, house: House, topics: Topics, hosts: PreviewHosts, passes: Passes) -> Ports:
    services = {one.port: name for name, one in house.manifest.computer.services.items() if one.port is not None}
    ports = Ports(lambda: house.sealed.computer, services, topics.add(Topic("ports", kept=20)))

    @app.get("/v1/preview/ports")
    @needs("read")
    async def list_preview_ports() -> PreviewPorts:
        """The ports that something inside listens on. The topic `ports` tells of changes."""
        return PreviewPorts.model_validate(describe(await ports.find()))

    @app.post("/v1/preview/{port}/open")
    @needs("terminal")
    async def open_preview(port: int, request: Request, body: OpenPreview | None = None) -> PreviewAddress:
        """An address for one browser, in a frame or a tab. What it shows ends when the sign-in that asked for it does."""
        check_port(port)
        place = Place(_family(request, hosts), port)
        principal = principal_of(request.scope)
        await asyncio.to_thread(house.timeline.append, "preview.opened", {"port": port}, who=principal.who)
        token = passes.hand_over(principal, place, (body or OpenPreview()).path)
        return PreviewAddress(address=f"{place.origin}{ENTER}{token}", origin=place.origin)

    return ports


def _family(request: Request, hosts: PreviewHosts) -> Family:
    """Where previews are, seen from the control center that was asked."""
    host = request.headers["host"].lower()
    family = hosts.seen_from(host)
    if family is None:
        raise FreeholdError(
            "preview.no-address",
            f"Previews have no address that a browser at {origin_of(f'https://{host}')} can reach",
            hint='Set gateway.preview_url in freehold.toml, such as "https://preview.example.net", with a wildcard name',
        )
    return family
