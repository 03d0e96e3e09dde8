"""One agent program that runs in the computer, and what can be asked of it over ACP."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from freehold import __version__
from freehold.agents.registry import Access, Entry
from freehold.agents.rpc import AgentFault, Json, Later, Peer
from freehold.agents.trace import Trace
from freehold.agents.visible import make_visible
from freehold.computer import Computer
from freehold.computer.process import Process
from freehold.computer.spec import BASE_ENVIRONMENT
from freehold.errors import FreeholdError

PROTOCOL = 1
WORKSPACE = "/workspace"
TO_ANSWER = 60.0
"""Seconds an agent has to answer whatever is not a prompt."""

TO_LEAVE = 5.0
TO_LEAVE_IN_HASTE = 1.0
"""When the gateway itself has to end."""

MAX_STDERR = 64 * 1024
_SHOWN_STDERR = 600


class Listener(Protocol):
    """Who hears an agent: updates and questions in order and at once, `paused` when there is time to put them down.

    What `permission` returns may take as long as the owner does.
    """

    def updated(self, update: Json) -> None: ...

    async def paused(self) -> None: ...

    def permission(self, params: Json) -> Later: ...


@dataclass(frozen=True)
class Capabilities:
    """What it said it can do. All that is missing or odd counts as no."""

    load: bool = False
    resume: bool = False
    fork: bool = False
    images: bool = False
    mcp_http: bool = False
    name: str = ""
    version: str = ""


@dataclass
class Agent:
    """A running agent that has been introduced. Every method raises `AgentFault` when it fails to answer."""

    entry: Entry
    peer: Peer
    process: Process
    capabilities: Capabilities
    errors: deque[bytes] = field(default_factory=deque)

    async def new_session(self, mcp_servers: list[Json]) -> Json:
        return await self._ask("session/new", self._opening(mcp_servers))

    async def load_session(self, session: str, mcp_servers: list[Json], *, resume: bool) -> Json:
        method = "session/resume" if resume else "session/load"
        return await self._ask(method, {"sessionId": session, **self._opening(mcp_servers)})

    async def fork_session(self, session: str, mcp_servers: list[Json]) -> Json:
        return await self._ask("session/fork", {"sessionId": session, **self._opening(mcp_servers)})

    def _opening(self, mcp_servers: list[Json]) -> Json:
        beyond = {"_meta": self.entry.meta} if self.entry.meta else {}
        return {"cwd": WORKSPACE, "mcpServers": mcp_servers, **beyond}

    async def set_mode(self, session: str, mode: str) -> None:
        await self._ask("session/set_mode", {"sessionId": session, "modeId": mode})

    async def set_model(self, session: str, model: str) -> None:
        await self._ask("session/set_model", {"sessionId": session, "modelId": model})

    async def set_option(self, session: str, option: str, value: str | bool) -> Json:
        return await self._ask("session/set_config_option", {"sessionId": session, "configId": option, "value": value})

    async def prompt(self, session: str, blocks: list[Json]) -> Json:
        """Takes as long as the turn does."""
        return await self.peer.request("session/prompt", {"sessionId": session, "prompt": blocks})

    async def cancel(self, session: str) -> None:
        await self.peer.notify("session/cancel", {"sessionId": session})

    def kill(self) -> None:
        """At once, with everything it started."""
        self.process.kill()

    def last_words(self) -> str:
        text = b"".join(self.errors)[-_SHOWN_STDERR:].decode(errors="replace")
        return "".join(char if char.isprintable() or char == "\n" else " " for char in text).strip()

    async def explain(self, fault: AgentFault) -> AgentFault:
        """With its last words when it ended: they are often the reason."""
        if fault.code != "agent.ended" or self._explained:
            return fault
        self._explained = True
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(1):
                await self.process.wait()
        words = self.last_words()
        return AgentFault(fault.code, f"{fault.message}; its last words were: {words}") if words else fault

    _explained = False

    async def _ask(self, method: str, params: Json) -> Json:
        try:
            async with asyncio.timeout(TO_ANSWER):
                return await self.peer.request(method, params)
        except TimeoutError:
            raise AgentFault(
                "agent.silent", f"{self.entry.title} did not answer {method} within {TO_ANSWER:g} s"
            ) from None


@asynccontextmanager
async def running_agent(
    computer: Computer,
    entry: Entry,
    access: Access | None,
    listener: Listener,
    *,
    session: str = "trial",
    given: Mapping[str, str | None] | None = None,
    born: Callable[[Agent], None] = lambda agent: None,
) -> AsyncIterator[Agent]:
    """Starts the program, with what is `given` in its environment and apart from other sessions, and introduces us.

    Who waits for that has a hold on it from when it is `born`. At the end it has five seconds to leave by itself.
    """
    around = entry.point(access)
    for path, text in around.files.items():
        place = f"/home/agent/{path}"
        await computer.files.mkdir(place.rpartition("/")[0], parents=True)
        await computer.files.write(place, text.encode())
    env: dict[str, str | None] = {"PATH": f"{entry.path}:{BASE_ENVIRONMENT['PATH']}", **around.env, **(given or {})}
    if entry.runtime == "python":
        env["PYTHONPATH"] = f"/opt/agents/{entry.name}/site"
    try:
        process = await computer.spawn(list(entry.command), cwd=WORKSPACE, env=env, apart=session)
    except FreeholdError as error:
        raise AgentFault("agent.not-started", f"{entry.title} cannot be started: {error.message}") from error
    errors: deque[bytes] = deque()
    failed: FreeholdError | None = None
    patience = TO_LEAVE_IN_HASTE
    secrets = [access.key if access else "", *(value or "" for value in (given or {}).values())]
    with Trace(entry.name, session, secrets) as trace:
        async with process, asyncio.TaskGroup() as group:
            peer = Peer(
                _Pipe(process),
                notified=lambda method, params: _pass_on(listener, method, params),
                paused=listener.paused,
                asked=_Answers(listener),
                trace=trace,
            )
            reading = group.create_task(peer.run())
            draining = group.create_task(_drain(process, errors))
            agent = Agent(entry, peer, process, Capabilities(), errors)
            try:
                born(agent)
                agent.capabilities = await _introduce(agent)
                yield agent
                patience = TO_LEAVE
            except AgentFault as fault:
                failed = await agent.explain(fault)
            except FreeholdError as error:
                failed = error
            finally:
                # Nobody reads what a broken one still says, so it would wait for us for ever.
                await _see_off(process, 0.0 if failed is not None or reading.done() else patience)
                reading.cancel()
                draining.cancel()
    if failed is not None:
        # Only here: a group of tasks would wrap it.
        raise failed


async def _introduce(agent: Agent) -> Capabilities:
    answer = await agent._ask(
        "initialize",
        {
            "protocolVersion": PROTOCOL,
            "clientInfo": {"name": "freehold", "title": "Freehold", "version": __version__},
            # Agents do their own work inside the computer: nothing of the host is lent to them.
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
        },
    )
    if answer.get("protocolVersion") != PROTOCOL:
        raise AgentFault(
            "agent.wrong-version",
            f"{agent.entry.title} speaks version {str(answer.get('protocolVersion'))[:20]} of ACP, and we speak {PROTOCOL}",
        )
    able = _part(answer, "agentCapabilities")
    sessions, prompts = _part(able, "sessionCapabilities"), _part(able, "promptCapabilities")
    info = _part(answer, "agentInfo")
    return Capabilities(
        load=able.get("loadSession") is True,
        resume=isinstance(sessions.get("resume"), dict),
        fork=isinstance(sessions.get("fork"), dict),
        images=prompts.get("image") is True,
        mcp_http=_part(able, "mcpCapabilities").get("http") is True,
        name=make_visible(str(info.get("name") or "")[:80], lines=False),
        version=make_visible(str(info.get("version") or "")[:40], lines=False),
    )


def _part(found: Mapping[str, object], name: str) -> Json:
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _pass_on(listener: Listener, method: str, params: Json) -> None:
    update = params.get("update")
    if method == "session/update" and isinstance(update, dict):
        listener.updated(update)


class _Answers:
    """What an agent may ask of us: leave to act, and nothing else."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def __call__(self, method: str, params: Json) -> Later:
        if method == "session/request_permission":
            return self._listener.permission(params)
        return partial(self._refuse, method)

    async def _refuse(self, method: str) -> Json:
        raise FreeholdError("agent.not-offered", f"This client does not offer {method[:60]}")


@dataclass(frozen=True)
class _Pipe:
    process: Process

    async def read(self) -> bytes:
        return await self.process.stdout.read()

    async def write(self, data: bytes) -> None:
        await self.process.write(data)


async def _drain(process: Process, errors: deque[bytes]) -> None:
    """Keeps the last of what it writes to stderr, and never lets it wait."""
    size = 0
    with suppress(FreeholdError):
        while data := await process.stderr.read():
            errors.append(data)
            size += len(data)
            while size > MAX_STDERR and len(errors) > 1:
                size -= len(errors.popleft())


async def _see_off(process: Process, patience: float) -> None:
    process.close_stdin()
    if patience:
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(patience):
                await process.wait()
    if process.exit is None:
        process.kill()
