"""A gateway with a real computer behind it, in which an app serves two ports; asked byte by byte, as browsers never would."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gateway.running import Running, running_gateway
from websockets.asyncio.client import ClientConnection, connect

from freehold.computer import Computer
from freehold.computer.launch import launch
from freehold.computer.spec import ComputerSpec
from freehold.home import Home
from freehold.identity.sessions import COOKIE as SIGN_IN
from freehold.identity.sessions import Session

APP = (Path(__file__).parent / "app_inside.py").read_text()
PORT = 5173
OTHER = 8000
EMPTY = 7777
PATIENCE = 20


@dataclass(frozen=True)
class Heard:
    """An answer as it came over the wire."""

    status: int
    fields: list[tuple[str, str]]
    body: bytes
    whole: bool

    def values(self, name: str) -> list[str]:
        return [value for found, value in self.fields if found == name]

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Browser:
    """One signed-in browser, and what the control center knows it by."""

    session: Session
    headers: dict[str, str]


@dataclass(frozen=True)
class Previewing:
    gateway: Running
    computer: Computer

    def host(self, port: int = PORT) -> str:
        return f"{port}.preview.localhost:{self.gateway.port}"

    def origin(self, port: int = PORT) -> str:
        return f"http://{self.host(port)}"

    def browser(self) -> Browser:
        session, secret = self.gateway.house.sessions.create(None, label="t", address="127.0.0.1", method="link")
        return Browser(session, {"cookie": f"{SIGN_IN}={secret}", "origin": self.gateway.origin})

    async def address(self, browser: Browser, port: int = PORT, **body: str) -> str:
        """A fresh one-time address, without its origin."""
        answer = await self.gateway.http.post(f"/v1/preview/{port}/open", headers=browser.headers, json=body)
        assert answer.status_code == 200, answer.text
        address: str = answer.json()["address"]
        return address.removeprefix(self.origin(port))

    async def enter(self, browser: Browser, port: int = PORT) -> str:
        """Open a preview; its pass, as a browser sends it."""
        entered = await self.ask("GET", await self.address(browser, port), port=port)
        assert entered.status == 303
        return entered.values("set-cookie")[0].partition(";")[0]

    async def ask(
        self, method: str, target: str, *, port: int = PORT, cookie: str | None = None, body: bytes = b"", **fields: str
    ) -> Heard:
        """One request. Names of fields are spelled with _ for -; `host` replaces the usual one."""
        sent = {"host": self.host(port), **fields}
        if cookie is not None:
            sent["cookie"] = cookie
        if body:
            sent["content-length"] = str(len(body))
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in sent.items()]
        return await self.say("\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode("latin-1") + body)

    async def say(self, raw: bytes) -> Heard:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.gateway.port)
            try:
                writer.write(raw)
                return await hear(reader, is_head=raw.startswith(b"HEAD"))
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
            host="127.0.0.1",  # not every resolver knows that names below localhost are this machine
            port=self.gateway.port,
            **{"origin": self.origin(), **options},
        )


async def hear(reader: asyncio.StreamReader, *, is_head: bool = False) -> Heard:
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
    return Heard(status, fields, bytes(data), whole)


@asynccontextmanager
async def previewing(root: Path, manifest: str = "") -> AsyncIterator[Previewing]:
    """Until the block ends."""
    home = Home(root=root, run=root / "run")
    for folder in (home.workspace, home.agent_home, home.run):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    machine = await launch(ComputerSpec(workspace=home.workspace, home=home.agent_home), home.computer_socket)
    try:
        async with running_gateway(root, manifest) as gateway, Computer.connect(home.computer_socket) as computer:
            app = await computer.spawn(["/usr/bin/python3", "-c", APP, str(PORT), str(OTHER)])
            async with asyncio.timeout(PATIENCE):
                assert b"listening" in await app.stdout.read()
                await gateway.house.sealed._linked.wait()
            yield Previewing(gateway, computer)
    finally:
        await machine.stop(0)


async def next_text(socket: ClientConnection) -> str:
    async with asyncio.timeout(PATIENCE):
        said = await socket.recv()
    assert isinstance(said, str)
    return said
