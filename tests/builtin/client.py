"""A client of the built-in agent, with answers that the test decides."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from freehold.computer import Computer
from freehold.computer.library.process import Process
from freehold.computer.library.tunnel import Tunnel
from freehold.testing import ScriptedModel

Json = dict[str, Any]
MAX_LINE = 16 * 1024 * 1024
SITE = "/opt/agents/builtin/site"
PROGRAM = ["/usr/bin/python3", "-S", "-m", "freehold.builtin"]


@dataclass
class BuiltinClient:
    """`allow` answers every permission request."""

    allow: Callable[[Json], bool] = lambda asked: True
    updates: list[Json] = field(default_factory=list)
    asked: list[Json] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    process: Process = field(init=False)
    waiting: dict[int, asyncio.Future[Json]] = field(default_factory=dict)
    number: int = 0
    before_answer: Callable[[], Awaitable[None]] | None = None

    async def open(self, mode: str | None = None, servers: Sequence[Json] = ()) -> str:
        answer = await self.request("session/new", {"cwd": "/workspace", "mcpServers": list(servers)})
        session = str(answer["sessionId"])
        if mode is not None:
            await self.request("session/set_mode", {"sessionId": session, "modeId": mode})
        return session

    async def prompt(self, session: str, text: str) -> Json:
        return await self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

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

    async def request(self, method: str, params: Json) -> Json:
        """The agent's answer. Raises `Refused` with its error message."""
        self.number += 1
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.waiting[self.number] = answer
        await self._send({"id": self.number, "method": method, "params": params})
        return await answer

    async def notify(self, method: str, params: Json) -> None:
        await self._send({"method": method, "params": params})

    async def listen(self) -> None:
        async for line in self.process.stdout.lines(MAX_LINE):
            message = json.loads(line)
            async with self.changed:
                await self._take(message)
                self.changed.notify_all()
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(Refused("The agent ended"))

    async def _take(self, message: Json) -> None:
        if message.get("method") == "session/update":
            self.updates.append(message["params"]["update"])
        elif "method" in message:
            assert message["method"] == "session/request_permission"
            self.asked.append(message["params"])
            if self.before_answer is not None:
                await self.before_answer()
            choice = "allow" if self.allow(message["params"]) else "reject"
            outcome = {"outcome": {"outcome": "selected", "optionId": choice}}
            await self._send({"id": message["id"], "result": outcome})
        elif "error" in message:
            self.waiting.pop(message["id"]).set_exception(Refused(message["error"]["message"]))
        else:
            self.waiting.pop(message["id"]).set_result(message["result"])

    async def _send(self, message: Json) -> None:
        await self.process.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class Refused(Exception):
    """The agent answered a request with this error."""


@asynccontextmanager
async def run_builtin(
    computer: Computer,
    model: ScriptedModel | None,
    *,
    kind: str = "openai-compatible",
    allow: Callable[[Json], bool] = lambda asked: True,
    env: dict[str, str] | None = None,
) -> AsyncIterator[BuiltinClient]:
    """The program, started inside as the host starts it, and initialized. Its model is on the computer's loopback."""
    client = BuiltinClient(allow)
    around: dict[str, str | None] = {"PYTHONPATH": SITE, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
    if model is not None:
        around |= await relay_model(computer, model, kind)
    async with await computer.spawn(PROGRAM, cwd="/workspace", env=around) as process, asyncio.TaskGroup() as group:
        client.process = process
        reading = group.create_task(client.listen())
        draining = group.create_task(_drain(process))
        await client.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
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


async def relay_model(computer: Computer, model: ScriptedModel, kind: str) -> dict[str, str]:
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
