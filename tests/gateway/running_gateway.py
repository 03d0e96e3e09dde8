"""A gateway that listens in this process, with the application, guard and server settings of the product."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from tests.support.condition import DEADLINE
from websockets.asyncio.client import ClientConnection, connect

from freehold.gateway.app import build_app
from freehold.gateway.guard import RequestGuard
from freehold.gateway.server import make_server_config
from freehold.gateway.services import Services, open_services
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.home import Home, ensure_private_folder
from freehold.identity.sign_ins import COOKIE
from freehold.identity.tokens import Scope
from freehold.manifest import load_manifest


class UnsignalledServer(uvicorn.Server):
    """Leaves signal handlers to the test."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass(frozen=True)
class RunningGateway:
    """A listening gateway. `http` sends no cookie and no origin, as a script does."""

    services: Services
    app: RequestGuard
    publisher: TopicPublisher
    port: int
    http: httpx2.AsyncClient

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    def token(self, *scopes: Scope, name: str = "script") -> dict[str, str]:
        """Headers of a new token with these scopes."""
        _, secret = self.services.tokens.create(name, scopes, None)
        return {"authorization": f"Bearer {secret}"}

    def browser(self) -> dict[str, str]:
        """Headers of a browser that has signed in."""
        _, secret = self.services.sign_ins.create(None, label="test", address="127.0.0.1", method="link")
        return {"cookie": f"{COOKIE}={secret}", "origin": self.origin}

    def socket(self, headers: dict[str, str], path: str = "/v1/socket") -> connect:
        """A client's socket, used with `async with`."""
        return connect(
            f"ws://localhost:{self.port}{path}",
            additional_headers=headers,
            proxy=None,
            compression=None,
            max_size=None,
            open_timeout=DEADLINE,
        )


def listen() -> socket.socket:
    """A listening socket on a free port. asyncio sets TCP_NODELAY only when the protocol is given as TCP."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(512)
    return listener


@asynccontextmanager
async def running_gateway(root: Path, manifest: str = "") -> AsyncIterator[RunningGateway]:
    """Run a gateway until the block ends. There is no keeper and no computer; their routes answer 503."""
    home = Home(root=root, run=root / "run")
    for folder in (home.root, home.run, home.vault):
        ensure_private_folder(folder)
    listener = listen()
    port = listener.getsockname()[1]
    home.manifest.write_text(f"[gateway]\nport = {port}\n{manifest}")
    loaded = load_manifest(home.manifest, {}, home=home.root)
    ready = asyncio.Event()
    with listener, open_services(home, loaded) as services:
        publisher = TopicPublisher(services)
        app = build_app(services, publisher=publisher, on_ready=ready.set)
        server = UnsignalledServer(make_server_config(app, "127.0.0.1", port))
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[listener]))
            waiting = group.create_task(ready.wait())
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            assert ready.is_set(), "the gateway did not start"
            try:
                async with httpx2.AsyncClient(
                    base_url=f"http://localhost:{port}", trust_env=False, timeout=DEADLINE
                ) as http:
                    yield RunningGateway(services, app, publisher, port, http)
            finally:
                server.should_exit = True


async def next_message(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """The next message of this kind. Other messages are skipped."""
    async with asyncio.timeout(DEADLINE):
        while True:
            message: dict[str, Any] = json.loads(await socket.recv())
            if message["type"] == kind:
                return message
