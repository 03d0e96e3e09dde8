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
from tests.support.signed_in import browser_headers
from websockets.asyncio.client import ClientConnection, connect

from freehold.gateway.app import build_app
from freehold.gateway.context import RouteContext
from freehold.gateway.guard import RequestGuard
from freehold.gateway.server import make_server_config
from freehold.gateway.services import Services, open_services
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.home import Home, ensure_private_folder
from freehold.identity.sign_ins import control_center_url
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
    def url(self) -> str:
        """Where a program with a token reaches it."""
        return f"http://localhost:{self.port}"

    @property
    def origin(self) -> str:
        """Of the control center."""
        return control_center_url(self.port, None)

    @property
    def host(self) -> str:
        """Of the control center. Names below localhost are sent as a header: not every resolver knows them."""
        return self.origin.removeprefix("http://")

    def token(self, *scopes: Scope, name: str = "script") -> dict[str, str]:
        """Headers of a new token with these scopes."""
        _, secret = self.services.tokens.create(name, scopes, None)
        return {"authorization": f"Bearer {secret}"}

    def browser(self) -> dict[str, str]:
        """Headers of a browser that has signed in."""
        _, secret = self.services.sign_ins.create(None, label="test", address="127.0.0.1", method="link")
        return self.browser_with(secret)

    def browser_with(self, secret: str) -> dict[str, str]:
        """Headers of a browser whose page has this key."""
        return browser_headers(self.port, secret)

    @property
    def context(self) -> RouteContext:
        """What the routes work with."""
        app: Any = self.app._app
        context = app.state.context
        assert isinstance(context, RouteContext)
        return context

    async def open_session(self, *texts: str) -> str:
        """A session in which an agent has written these messages."""
        await self.context.sessions.ready.wait()
        store = self.context.sessions.dependencies.store
        session = store.create("builtin", "A title", None, who="test").id
        store.append(session, None, [("message", {"id": str(place), "text": text}) for place, text in enumerate(texts)])
        return session

    def socket(self, headers: dict[str, str], path: str = "/v1/socket", **options: Any) -> connect:
        """A client's socket, used with `async with`."""
        host = headers.get("host", f"localhost:{self.port}")
        return connect(
            f"ws://{host}{path}",
            additional_headers={name: value for name, value in headers.items() if name != "host"},
            host="127.0.0.1",
            port=self.port,
            proxy=None,
            compression=None,
            max_size=None,
            open_timeout=DEADLINE,
            **options,
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
        door = build_app(services, publisher=publisher, on_ready=ready.set)
        server = UnsignalledServer(make_server_config(door, "127.0.0.1", port))
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[listener]))
            waiting = group.create_task(ready.wait())
            await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
            assert ready.is_set(), "the gateway did not start"
            try:
                async with httpx2.AsyncClient(
                    base_url=f"http://localhost:{port}", trust_env=False, timeout=DEADLINE
                ) as http:
                    yield RunningGateway(services, await door.load(), publisher, port, http)
            finally:
                server.should_exit = True


async def next_message(socket: ClientConnection, kind: str) -> dict[str, Any]:
    """The next message of this kind. Other messages are skipped."""
    async with asyncio.timeout(DEADLINE):
        while True:
            message: dict[str, Any] = json.loads(await socket.recv())
            if message["type"] == kind:
                return message
