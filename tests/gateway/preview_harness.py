"""A gateway with a real computer, in which an app serves two ports. Requests can be sent byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import DEADLINE
from websockets.asyncio.client import ClientConnection, connect

from freehold.computer import Computer, Machine
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.library.launch import launch
from freehold.home import Home
from freehold.identity.sign_ins import SignIn

APP = (Path(__file__).parent / "preview_app.py").read_text()
PORT = 5173
OTHER_PORT = 8000
UNUSED_PORT = 7777
TIMEOUT = DEADLINE


@dataclass(frozen=True)
class RawAnswer:
    """An HTTP answer as it was received."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    is_complete: bool

    def values(self, name: str) -> list[str]:
        return [value for found, value in self.fields if found == name]

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class SignedInBrowser:
    """One signed-in browser, and its headers for the control center."""

    sign_in: SignIn
    headers: dict[str, str]


@dataclass(frozen=True)
class PreviewHarness:
    gateway: RunningGateway
    computer: Computer

    def host(self, port: int = PORT) -> str:
        return f"{port}.preview.localhost:{self.gateway.port}"

    def origin(self, port: int = PORT) -> str:
        return f"http://{self.host(port)}"

    def browser(self) -> SignedInBrowser:
        session, secret = self.gateway.services.sign_ins.create(None, label="t", address="127.0.0.1", method="link")
        return SignedInBrowser(session, self.gateway.browser_with(secret))

    async def new_address(self, browser: SignedInBrowser, port: int = PORT, **body: str) -> str:
        """A fresh one-time address, without its origin."""
        answer = await self.gateway.http.post(f"/v1/preview/{port}/open", headers=browser.headers, json=body)
        assert answer.status_code == 200, answer.text
        address: str = answer.json()["address"]
        return address.removeprefix(self.origin(port))

    async def open_preview(self, browser: SignedInBrowser, port: int = PORT) -> str:
        """Open a preview. Returns its pass as a cookie header."""
        entered = await self.request("GET", await self.new_address(browser, port), port=port)
        assert entered.status == 303
        return entered.values("set-cookie")[0].partition(";")[0]

    async def request(
        self, method: str, target: str, *, port: int = PORT, cookie: str | None = None, body: bytes = b"", **fields: str
    ) -> RawAnswer:
        """Send one request. Header names are written with _ for -; `host` replaces the default."""
        sent = {"host": self.host(port), **fields}
        if cookie is not None:
            sent["cookie"] = cookie
        if body:
            sent["content-length"] = str(len(body))
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in sent.items()]
        return await self.send_raw(
            "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("latin-1") + body
        )

    async def send_raw(self, raw: bytes) -> RawAnswer:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.port)
            try:
                writer.write(raw)
                return await read_answer(reader, is_head=raw.startswith(b"HEAD"))
            finally:
                writer.close()

    def socket(self, cookie: str | None, path: str = "/socket", **options: Any) -> connect:
        headers = {} if cookie is None else {"cookie": cookie}
        return connect(
            f"ws://{self.host()}{path}",
            additional_headers=headers,
            proxy=None,
            compression=None,
            max_size=None,
            open_timeout=TIMEOUT,
            host="127.0.0.1",  # not every resolver maps names below localhost to this machine
            port=self.gateway.port,
            **{"origin": self.origin(), **options},
        )


async def read_answer(reader: asyncio.StreamReader, *, is_head: bool = False) -> RawAnswer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.rstrip("\r\n").split("\r\n")
    fields = [(name.lower(), value) for name, _, value in (field.partition(": ") for field in rest)]
    known = dict(fields)
    status = int(line.split(" ")[1])
    data, whole = bytearray(), True
    try:
        if is_head or status in (204, 304):
            pass
        elif known.get("transfer-encoding") == "chunked":
            while count := int(await reader.readuntil(b"\r\n"), 16):
                data += (await reader.readexactly(count + 2))[:-2]
            await reader.readuntil(b"\r\n")
        else:
            data += await reader.readexactly(int(known.get("content-length", 0)))
    except asyncio.IncompleteReadError as error:
        data += error.partial
        whole = False
    return RawAnswer(status, fields, bytes(data), whole)


@asynccontextmanager
async def running_previews(
    root: Path, manifest: str = "", around: Callable[[Machine], AbstractAsyncContextManager[None]] | None = None
) -> AsyncIterator[PreviewHarness]:
    """Until the block ends. `around` is entered when the machine runs, before anything connects to it."""
    home = Home(root=root, run=root / "run")
    for folder in (home.workspace, home.agent_home, home.run):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    machine = await launch(ComputerSpec(workspace=home.workspace, home=home.agent_home), home.computer_socket())
    try:
        async with (
            around(machine) if around is not None else nullcontext(),
            running_gateway(root, manifest) as gateway,
            Computer.connect(home.computer_socket()) as computer,
        ):
            with computer.hold_awake():
                app = await computer.spawn(["/usr/bin/python3", "-c", APP, str(PORT), str(OTHER_PORT)])
                async with asyncio.timeout(TIMEOUT):
                    assert b"listening" in await app.stdout.read()
            async with asyncio.timeout(TIMEOUT):
                await gateway.services.computer_access._main.wait_served()
            yield PreviewHarness(gateway, computer)
    finally:
        await machine.stop(0)


async def next_text(socket: ClientConnection) -> str:
    async with asyncio.timeout(TIMEOUT):
        said = await socket.recv()
    assert isinstance(said, str)
    return said
