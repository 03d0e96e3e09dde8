"""Freeholds with a mesh, each a real gateway in this process, that are paired by the API as owners do it."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.gateway.running_gateway import RunningGateway, running_gateway

from freehold.mesh.http_signature import sign_request
from freehold.mesh.mesh import Mesh
from freehold.mesh.nostr.keys import NostrKey
from freehold.mesh.service import MeshService

PEER = '[mesh]\nmode = "peer"\n'


@dataclass(frozen=True)
class MeshFreehold:
    """One Freehold. `owner` are the headers of its owner's program."""

    gateway: RunningGateway
    mesh: Mesh
    owner: dict[str, str]

    @property
    def url(self) -> str:
        return self.gateway.url

    async def ask(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        """As its owner."""
        answer = await self.gateway.http.request(method, path, json=body, headers=self.owner)
        if status is None:
            assert answer.is_success, answer.text
        else:
            assert answer.status_code == status, answer.text
        return answer.json()

    async def send_signed(
        self, key: NostrKey, method: str, path: str, body: bytes = b"", **more: Any
    ) -> httpx2.Response:
        """A request to this Freehold that somebody else has signed."""
        headers = {"authorization": sign_request(key, method, self.url + path, body, **more)}
        if body:
            headers["content-type"] = "application/json"
        return await self.gateway.http.request(method, path, content=body, headers=headers)


@asynccontextmanager
async def running_mesh(root: Path, manifest: str = PEER) -> AsyncIterator[MeshFreehold]:
    async with running_gateway(root, manifest) as gateway:
        async with asyncio.timeout(30):
            mesh = await gateway.context.service(MeshService).wait_open()
        yield MeshFreehold(gateway, mesh, gateway.token("admin", name=f"owner-{secrets.token_hex(4)}"))


async def pair(
    maker: MeshFreehold, other: MeshFreehold, *, gives: tuple[str, ...] = (), gets: tuple[str, ...] = ()
) -> None:
    """`maker` makes a code and gives something to `other`, which enters it and gives something back."""
    code = await maker.ask("POST", "/v1/mesh/codes", {"grants": list(gives), "name": "other"})
    body = {"code": code["code"], "grants": list(gets), "name": "maker"}
    await other.ask("POST", "/v1/mesh/neighbours", body)
