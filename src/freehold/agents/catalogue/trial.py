"""A trial of an agent: it is started, reports what it can do, and runs one turn with a scripted model."""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import Any

from freehold.agents.acp.json_rpc import AgentError, Json, Later
from freehold.agents.acp.program import run_agent
from freehold.agents.catalogue.definition import AgentDefinition, ModelEndpoint
from freehold.computer import Computer
from freehold.computer.library.tunnel import Tunnel

PROMPT = "SAY The scripted model speaks"
TRIAL_TIMEOUT = 120.0


@dataclass(frozen=True)
class AgentTrial:
    """How long each step took, in seconds; `memory` of all its processes, in bytes; `words` that the model said."""

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


class _TrialListener:
    """Collects the message of the agent. Permission requests are cancelled."""

    def __init__(self) -> None:
        self.message: list[str] = []
        self.first_update: float | None = None

    def updated(self, update: Json) -> None:
        kind, content = update.get("sessionUpdate"), update.get("content")
        if kind in ("agent_message_chunk", "tool_call") and self.first_update is None:
            self.first_update = time.monotonic()
        if kind == "agent_message_chunk" and isinstance(content, dict):
            self.message.append(str(content.get("text") or ""))

    async def paused(self) -> None:
        return

    def permission(self, params: Json) -> Later:
        return self._cancel

    async def _cancel(self) -> Json:
        return {"outcome": {"outcome": "cancelled"}}


async def try_agent(computer: Computer, agent: AgentDefinition) -> AgentTrial:
    """Raises `AgentError` with the reason when a step fails."""
    from freehold.testing import ScriptedModel

    listener = _TrialListener()
    async with ScriptedModel() as model:
        listening = await computer.listen(0, lambda stream: _relay(stream, model.port))
        try:
            kind = agent.kinds[0] if agent.kinds else "openai-compatible"
            base = f"http://127.0.0.1:{listening.port}" + ("/v1" if kind.startswith("openai") else "")
            endpoint = ModelEndpoint("scripted", kind, base, "freehold-placeholder-trial", "scripted")
            began = time.monotonic()
            async with (
                asyncio.timeout(TRIAL_TIMEOUT),
                run_agent(computer, agent.launch(endpoint), listener) as program,
            ):
                started = time.monotonic()
                answer = await program.new_session([])
                opened = time.monotonic()
                session = answer.get("sessionId")
                if not isinstance(session, str):
                    raise AgentError("agent.nonsense", f"{agent.title} opened a session without an id")
                await program.prompt(session, [{"type": "text", "text": PROMPT}])
                ended = time.monotonic()
                memory = await _memory(computer, program.process.pid)
                able = program.capabilities
        except TimeoutError:
            raise AgentError(
                "agent.silent", f"{agent.title} did not finish a turn within {TRIAL_TIMEOUT:g} s"
            ) from None
        finally:
            await listening.close()
    return AgentTrial(
        agent.name,
        able.version,
        {"load": able.load, "resume": able.resume, "fork": able.fork, "images": able.images, "mcp_http": able.mcp_http},
        round(started - began, 3),
        round(opened - started, 3),
        None if listener.first_update is None else round(listener.first_update - opened, 3),
        round(ended - opened, 3),
        memory,
        "".join(listener.message)[:500],
    )


async def _memory(computer: Computer, pid: int) -> int:
    """Of the process and its descendants."""
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
    except* (OSError, AgentError):
        pass
    finally:
        writer.close()
        await stream.close()
