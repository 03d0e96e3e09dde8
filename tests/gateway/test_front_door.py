"""The front door stands open before the routes are loaded, and the first request loads them."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from tests.support.condition import until

from freehold.gateway.addresses import make_addresses
from freehold.gateway.front_door import FrontDoor
from freehold.gateway.routes.probes import AliveBody

HEAVY = (
    "asyncssh",
    "cryptography",
    "fastapi",
    "http.client",
    "httpx2",
    "numpy",
    "opentelemetry",
    "starlette.requests",
    "starlette.responses",
    "starlette.routing",
    "tarfile",
    "urllib.request",
    "websockets",
    "freehold.agents.tools.definitions",
    "freehold.agents.tools.memory",
    "freehold.agents.tools.server",
    "freehold.browser.tools",
    "freehold.computer.bubblewrap.backend",
    "freehold.computer.escapes",
    "freehold.doctor",
    "freehold.gateway.application",
    "freehold.gateway.guard",
    "freehold.gateway.host_tools",
    "freehold.gateway.routes",
    "freehold.gateway.routing",
    "freehold.gateway.socket_protocol",
    "freehold.history.history",
    "freehold.slots.beads",
    "freehold.slots.events",
    "freehold.slots.memory",
    "freehold.slots.pods",
    "freehold.ssh.server",
)
"""What a gateway has not loaded that nobody has asked for anything."""


IDLE = f"""
import os, sys
from freehold.gateway import __main__, app, metrics, server, services
from freehold.features import list_features, load_reference
from freehold.home import find_home
from freehold.manifest import load_manifest
from freehold.observe import metrics_server, tracing

home = find_home(sys.argv[1])
with services.open_services(home, load_manifest(home.manifest, {{}}, home=home.root)) as opened:
    door = app.build_app(opened)
    server.make_server_config(door, "127.0.0.1", 0).load()
    for one in list_features():
        one.health and load_reference(one.health)
    print([name for name in {HEAVY} if name in sys.modules])
"""
"""Everything that a gateway makes before it serves."""


def test_the_start_loads_neither_the_framework_nor_a_route(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", IDLE, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Door:
    """A front door with a guard that answers 204. It is loaded when `may_load`, or cannot be as long as `broken`."""

    def __init__(self) -> None:
        self.loads = 0
        self.broken = False
        self.may_load = threading.Event()
        self.may_load.set()
        self.app = FrontDoor(self._load, self._lifespan, make_addresses(port=3000, public_url="https://my.example"))

    def _load(self) -> Any:
        self.loads += 1
        self.may_load.wait(60)
        if self.broken:
            raise ImportError("a file is missing")

        async def guard(scope: Scope, receive: Receive, send: Send) -> None:
            await Response(status_code=204)(scope, receive, send)

        return guard

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        yield

    async def get(self, path: str = "/livez", headers: dict[str, str] | None = None) -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:3000") as http:
            request = http.build_request("GET", path)
            request.headers = httpx2.Headers({"host": "localhost:3000", **(headers or {})})
            return await http.send(request)


@pytest.fixture
def door() -> Door:
    return Door()


async def test_the_probe_of_the_keeper_loads_nothing(door: Door) -> None:
    answer = await door.get(headers={"connection": "close"})
    assert (answer.status_code, answer.json(), door.loads) == (200, AliveBody().model_dump(), 0)
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/ready", {}),
        ("/livez?x=1", {}),
        ("/livez", {"host": "evil.example"}),
        ("/livez", {"host": "my.example"}),
        ("/livez", {"origin": "https://evil.example"}),
        ("/livez", {"authorization": "Bearer fh_x"}),
    ],
)
async def test_the_guard_judges_every_other_request(door: Door, path: str, headers: dict[str, str]) -> None:
    assert (await door.get(path, headers)).status_code == 204
    assert door.loads == 1


async def test_a_hundred_first_requests_load_the_routes_once(door: Door) -> None:
    answers = await asyncio.gather(*(door.get("/") for _ in range(100)))
    assert {answer.status_code for answer in answers} == {204}
    assert door.loads == 1


async def test_a_request_that_is_given_up_does_not_stop_the_loading(door: Door) -> None:
    door.may_load.clear()
    first = asyncio.ensure_future(door.get("/"))
    await until(lambda: door.loads == 1)
    first.cancel()
    await asyncio.wait({first})
    assert first.cancelled()
    door.may_load.set()
    assert (await door.get("/")).status_code == 204
    assert door.loads == 1


async def test_routes_that_cannot_be_loaded_are_an_error_with_an_id_and_tried_again(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    door.broken = True
    answer = await door.get("/")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (500, "gateway.unexpected")
    assert error["error_id"] in [vars(record)["error_id"] for record in caplog.records]
    assert "a file is missing" not in answer.text
    door.broken = False
    assert (await door.get("/")).status_code == 204
