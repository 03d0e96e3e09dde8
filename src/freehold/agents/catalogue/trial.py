"""A trial of an agent: it is started, reports what it can do, and runs one turn with a scripted model."""

import asyncio
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

from freehold.agents.acp.json_rpc import AgentError, Json, Later
from freehold.agents.acp.option_change import enter_asking_mode
from freehold.agents.acp.options import AgentOptions
from freehold.agents.acp.program import run_agent
from freehold.agents.catalogue.definition import AgentDefinition, ModelEndpoint
from freehold.agents.catalogue.registry import may_use, mode_policy
from freehold.computer import Computer
from freehold.computer.library.tunnel import Tunnel
from freehold.manifest import Manifest
from freehold.manifest.sections.models import ProviderKind

SCRIPTED = "scripted"
PLACEHOLDER = "freehold-placeholder-trial"
PROMPT = "SAY The scripted model speaks"
TRIAL_TIMEOUT = 120.0


@dataclass(frozen=True)
class AgentTrial:
    """How long each step took, in seconds; `memory` of all its processes, in bytes; `words` that the model said.

    `kind` is the model API that it used. `asks`: it is known to ask before it acts, in the `mode` it was put into.
    """

    name: str
    version: str
    capabilities: dict[str, bool]
    start: float
    session: float
    first_update: float | None
    turn: float
    memory: int
    words: str
    kind: ProviderKind
    mode: str | None
    asks: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class _TrialListener:
    """Collects the message of the agent. Permission requests are cancelled."""

    def __init__(self) -> None:
        self.message: list[str] = []
        self.first_update: float | None = None
        self.options = AgentOptions()

    def updated(self, update: Json) -> None:
        self.options.apply_update(update)
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


async def try_agent(computer: Computer, agent: AgentDefinition, manifest: Manifest) -> AgentTrial:
    """Tries the model API of the agent's provider; without a provider each API that it may use, until one works.

    Raises `AgentError` with the reason when a step fails.
    """
    from freehold.testing import ScriptedModel

    endpoints = _list_endpoints(agent, manifest)
    limit = TRIAL_TIMEOUT / len(endpoints)
    fallback: AgentTrial | None = None
    failure: AgentError | None = None
    async with ScriptedModel() as model:
        listening = await computer.listen(0, lambda stream: _relay(stream, model.port))
        try:
            for endpoint in endpoints:
                base = f"http://127.0.0.1:{listening.port}" + ("/v1" if endpoint.kind.startswith("openai") else "")
                try:
                    async with asyncio.timeout(limit):
                        trial = await _try_endpoint(computer, agent, replace(endpoint, base_url=base), manifest)
                except TimeoutError:
                    failure = failure or AgentError(
                        "agent.silent", f"{agent.title} did not finish a turn within {limit:g} s"
                    )
                except AgentError as error:
                    failure = failure or error
                else:
                    if model.requests:
                        return trial
                    # It may need no model, or use another API than this one.
                    fallback = fallback or trial
        finally:
            await listening.close()
    if fallback is not None:
        return fallback
    assert failure is not None
    raise failure


def _list_endpoints(agent: AgentDefinition, manifest: Manifest) -> list[ModelEndpoint]:
    """With the name, the API and the model of the provider that the agent would use."""
    name = agent.model
    if name not in manifest.models:
        name = next((each for each in manifest.models if may_use(agent, manifest, each)), None)
    if name is not None:
        provider = manifest.models[name]
        return [ModelEndpoint(name, provider.kind, "", PLACEHOLDER, provider.model or SCRIPTED)]
    return [ModelEndpoint(SCRIPTED, kind, "", PLACEHOLDER, SCRIPTED) for kind in agent.kinds or ("openai-compatible",)]


async def _try_endpoint(
    computer: Computer, agent: AgentDefinition, endpoint: ModelEndpoint, manifest: Manifest
) -> AgentTrial:
    listener = _TrialListener()
    policy = mode_policy(manifest, agent)
    began = time.monotonic()
    async with run_agent(computer, agent.launch(endpoint), listener) as program:
        started = time.monotonic()
        answer = await program.new_session([])
        opened = time.monotonic()
        session = answer.get("sessionId")
        if not isinstance(session, str):
            raise AgentError("agent.nonsense", f"{agent.title} opened a session without an id")
        listener.options.read_session(answer)
        await enter_asking_mode(program, session, listener.options, policy, None)
        prompted = time.monotonic()
        await program.prompt(session, [{"type": "text", "text": PROMPT}])
        ended = time.monotonic()
        memory = await _memory(computer, program.process.pid)
        able = program.capabilities
    return AgentTrial(
        agent.name,
        able.version,
        {"load": able.load, "resume": able.resume, "fork": able.fork, "images": able.images, "mcp_http": able.mcp_http},
        round(started - began, 3),
        round(opened - started, 3),
        None if listener.first_update is None else round(listener.first_update - prompted, 3),
        round(ended - prompted, 3),
        memory,
        "".join(listener.message)[:500],
        endpoint.kind,
        listener.options.mode,
        listener.options.asks(policy),
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
