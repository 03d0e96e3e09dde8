"""A client of the built-in agent: the host's own side of the wire, and answers that a test decides."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from freehold.agents.rpc import Json, Peer
from freehold.computer import Computer
from freehold.computer.process import Process
from freehold.computer.tunnel import Tunnel
from freehold.testing import ScriptedModel

SITE = "/opt/agents/builtin/site"
PROGRAM = ["/usr/bin/python3", "-m", "freehold.builtin"]


@dataclass
class Client:
    """`allow` decides every request for permission."""

    allow: Callable[[Json], bool] = lambda asked: True
    updates: list[Json] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)
    sessions: dict[str, Json] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    peer: Peer = field(init=False)
    process: Process = field(init=False)

    async def open(self, mode: str | None = None, servers: Sequence[Json] = ()) -> str:
        answer = await self.peer.request("session/new", {"cwd": "/workspace", "mcpServers": list(servers)})
        session = str(answer["sessionId"])
        if mode is not None:
            await self.peer.request("session/set_mode", {"sessionId": session, "modeId": mode})
        return session

    async def prompt(self, session: str, text: str) -> Json:
        return await self.peer.request(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        )

    async def until(self, fits: Callable[[Json], bool]) -> Json:
        async with self.changed:
            await self.changed.wait_for(lambda: any(fits(update) for update in self.updates))
        return next(update for update in self.updates if fits(update))

    @property
    def said(self) -> str:
        chunks = [one for one in self.updates if one["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk["content"]["text"] for chunk in chunks)

    def ended(self, status: str) -> list[Json]:
        return [one for one in self.updates if one.get("status") == status]

    def notified(self, method: str, params: Json) -> None:
        self.updates.append(params["update"])

    async def paused(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def answer(self, method: str, params: Json) -> Json:
        assert method == "session/request_permission"
        self.asked.append(params)
        await self.paused()
        choice = "allow" if self.allow(params) else "reject"
        return {"outcome": {"outcome": "selected", "optionId": choice}}


@dataclass(frozen=True)
class _Pipe:
    process: Process

    async def read(self) -> bytes:
        return await self.process.stdout.read()

    async def write(self, data: bytes) -> None:
        await self.process.write(data)


@asynccontextmanager
async def agent(
    computer: Computer,
    model: ScriptedModel | None,
    *,
    kind: str = "openai-compatible",
    allow: Callable[[Json], bool] = lambda asked: True,
    env: dict[str, str] | None = None,
) -> AsyncIterator[Client]:
    """The program, started inside as the host starts it and introduced; its model is on the computer's loopback."""
    client = Client(allow)
    around: dict[str, str | None] = {"PYTHONPATH": SITE, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    if model is not None:
        around |= await pointed_at(computer, model, kind)
    async with await computer.spawn(PROGRAM, cwd="/workspace", env=around) as process, asyncio.TaskGroup() as group:
        client.process = process
        client.peer = Peer(_Pipe(process), notified=client.notified, paused=client.paused, asked=client.answer)
        reading = group.create_task(client.peer.run())
        draining = group.create_task(_drain(process))
        await client.peer.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        try:
            yield client
        finally:
            process.close_stdin()
            await process.wait()
            await reading
            words = await draining
            assert b"Traceback" not in words, words.decode()


async def _drain(process: Process) -> bytes:
    words = b""
    while data := await process.stderr.read():
        words += data
    return words


async def pointed_at(computer: Computer, model: ScriptedModel, kind: str) -> dict[str, str]:
    listening = await computer.listen(0, _Relay(model.port))
    url = f"http://127.0.0.1:{listening.port}" + ("/v1" if kind.startswith("openai") else "")
    return {
        "FREEHOLD_MODEL_KIND": kind,
        "FREEHOLD_MODEL_URL": url,
        "FREEHOLD_MODEL_KEY": "placeholder",
        "FREEHOLD_MODEL": "scripted",
    }


@dataclass(frozen=True)
class _Relay:
    port: int

    async def __call__(self, tunnel: Tunnel) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)

        async def back() -> None:
            while data := await reader.read(65536):
                await tunnel.write(data)
            await tunnel.write_eof()

        answering = asyncio.ensure_future(back())
        try:
            while data := await tunnel.read():
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
