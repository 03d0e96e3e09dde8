"""Trying an agent: it is started, says what it can do, and takes one turn with a scripted model."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

from freehold.agents.acp import running_agent
from freehold.agents.board import Board
from freehold.agents.registry import Access, Entry
from freehold.agents.rpc import AgentFault, Json, Later
from freehold.computer import Computer
from freehold.computer.tunnel import Tunnel

WORDS = "The scripted model speaks"
PATIENCE = 120.0


@dataclass(frozen=True)
class Trial:
    """Seconds to each step, memory in bytes of all its processes."""

    name: str
    version: str
    capabilities: dict[str, bool]
    start: float
    session: float
    first_update: float | None
    turn: float
    memory: int
    words: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class _Listener:
    def __init__(self) -> None:
        self.board = Board()
        self.first: float | None = None

    def updated(self, update: Json) -> None:
        if update.get("sessionUpdate") in ("agent_message_chunk", "tool_call") and self.first is None:
            self.first = time.monotonic()
        self.board.take(update)

    async def paused(self) -> None:
        return

    def permission(self, params: Json) -> Later:
        return self._refuse

    async def _refuse(self) -> Json:
        return {"outcome": {"outcome": "cancelled"}}


async def try_agent(computer: Computer, entry: Entry) -> Trial:
    """Raises `AgentFault` with the reason when it fails at any step."""
    from freehold.testing import ScriptedModel

    listener = _Listener()
    async with ScriptedModel() as model:
        listening = await computer.listen(0, lambda stream: _relay(stream, model.port))
        try:
            kind = entry.kinds[0] if entry.kinds else "openai-compatible"
            base = f"http://127.0.0.1:{listening.port}" + ("/v1" if kind.startswith("openai") else "")
            access = Access("scripted", kind, base, "freehold-placeholder-trial", "scripted")
            began = time.monotonic()
            async with asyncio.timeout(PATIENCE), running_agent(computer, entry, access, listener) as agent:
                started = time.monotonic()
                answer = await agent.new_session([])
                opened = time.monotonic()
                session = answer.get("sessionId")
                if not isinstance(session, str):
                    raise AgentFault("agent.nonsense", f"{entry.title} opened a session without a name")
                await agent.prompt(session, [{"type": "text", "text": f"SAY {WORDS}"}])
                ended = time.monotonic()
                memory = await _memory(computer, agent.process.pid)
                able = agent.capabilities
        except TimeoutError:
            raise AgentFault("agent.silent", f"{entry.title} did not finish a turn within {PATIENCE:g} s") from None
        finally:
            await listening.close()
    listener.board.finish()
    said = "".join(data["text"] for kind, data in listener.board.take_events() if kind == "message")
    return Trial(
        entry.name,
        able.version,
        {"load": able.load, "resume": able.resume, "fork": able.fork, "images": able.images, "mcp_http": able.mcp_http},
        round(started - began, 3),
        round(opened - started, 3),
        None if listener.first is None else round(listener.first - opened, 3),
        round(ended - opened, 3),
        memory,
        said[:500],
    )


async def _memory(computer: Computer, pid: int) -> int:
    rows = await computer.processes()
    family = {pid}
    for _ in rows:
        found = {row.pid for row in rows if row.parent in family} - family
        if not found:
            break
        family |= found
    return sum(row.memory for row in rows if row.pid in family)


async def _relay(stream: Tunnel, port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def outward() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def inward() -> None:
        while data := await reader.read(65536):
            await stream.write(data)
        await stream.close()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(outward())
            group.create_task(inward())
    except* (OSError, AgentFault):
        pass
    finally:
        writer.close()
        await stream.close()
