"""One agent program that runs in the computer, and the ACP requests that it answers."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from freehold import __version__
from freehold.agents.acp.json_rpc import AgentError, Json, JsonRpcPeer, Later
from freehold.agents.acp.trace import AcpTrace
from freehold.agents.visible_text import make_visible
from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENT_HOME, SKILL_PLACES, SKILLS_IN_USE, WORKSPACE
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError

PROTOCOL = 1

REPLY_TIMEOUT = 60.0
"""Seconds that an agent has to answer any request except a prompt."""

EXIT_TIMEOUT = 5.0
SHUTDOWN_EXIT_TIMEOUT = 1.0
"""Seconds that an agent has to exit when the gateway itself is ending."""

MAX_STDERR = 64 * 1024
_SHOWN_STDERR = 600


class AgentListener(Protocol):
    """Receives what an agent sends. Updates and permission requests arrive in order and must not block.

    `paused` is awaited when everything received so far was delivered: store it there. What `permission` returns may
    take as long as the owner needs.
    """

    def updated(self, update: Json) -> None: ...

    async def paused(self) -> None: ...

    def permission(self, params: Json) -> Later: ...


@dataclass(frozen=True)
class AgentLaunch:
    """How one agent program is started: `command` with `env`, after `files` were written below /home/agent.

    `session_meta` is sent with each session request beyond the protocol. A trace masks `secrets`. `skills` are further
    folders below /home/agent in which it is shown the skills.
    """

    name: str
    title: str
    command: tuple[str, ...]
    env: Mapping[str, str | None] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    session_meta: Mapping[str, object] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()


@dataclass(frozen=True)
class AgentCapabilities:
    """What the agent said that it can do. A missing or malformed value counts as no."""

    load: bool = False
    resume: bool = False
    fork: bool = False
    images: bool = False
    mcp_http: bool = False
    name: str = ""
    version: str = ""


@dataclass
class AgentProgram:
    """A running, initialized agent. Every request raises `AgentError` when the agent does not answer it."""

    launch: AgentLaunch
    peer: JsonRpcPeer
    process: Process
    capabilities: AgentCapabilities
    stderr: deque[bytes] = field(default_factory=deque)
    folder: str = WORKSPACE
    """Where its sessions work."""

    async def new_session(self, mcp_servers: list[Json]) -> Json:
        return await self._request("session/new", self._session_params(mcp_servers))

    async def load_session(self, session: str, mcp_servers: list[Json], *, resume: bool) -> Json:
        method = "session/resume" if resume else "session/load"
        return await self._request(method, {"sessionId": session, **self._session_params(mcp_servers)})

    async def fork_session(self, session: str, mcp_servers: list[Json]) -> Json:
        return await self._request("session/fork", {"sessionId": session, **self._session_params(mcp_servers)})

    def _session_params(self, mcp_servers: list[Json]) -> Json:
        meta = {"_meta": self.launch.session_meta} if self.launch.session_meta else {}
        return {"cwd": self.folder, "mcpServers": mcp_servers, **meta}

    async def set_mode(self, session: str, mode: str) -> None:
        await self._request("session/set_mode", {"sessionId": session, "modeId": mode})

    async def set_model(self, session: str, model: str) -> None:
        await self._request("session/set_model", {"sessionId": session, "modelId": model})

    async def set_option(self, session: str, option: str, value: str | bool) -> Json:
        params = {"sessionId": session, "configId": option, "value": value}
        return await self._request("session/set_config_option", params)

    async def prompt(self, session: str, blocks: list[Json]) -> Json:
        """Takes as long as the turn does."""
        return await self.peer.request("session/prompt", {"sessionId": session, "prompt": blocks})

    async def cancel(self, session: str) -> None:
        await self.peer.notify("session/cancel", {"sessionId": session})

    def kill(self) -> None:
        """At once, with everything that it started."""
        self.process.kill()

    def last_stderr(self) -> str:
        text = b"".join(self.stderr)[-_SHOWN_STDERR:].decode(errors="replace")
        return "".join(char if char.isprintable() or char == "\n" else " " for char in text).strip()

    async def explain(self, failure: AgentError) -> AgentError:
        """Adds the last lines of stderr when the agent has ended: they often say why."""
        if failure.code != "agent.ended" or self._explained:
            return failure
        self._explained = True
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(1):
                await self.process.wait()
        text = self.last_stderr()
        return AgentError(failure.code, f"{failure.message}. The end of its stderr: {text}") if text else failure

    _explained = False

    async def _request(self, method: str, params: Json) -> Json:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT):
                return await self.peer.request(method, params)
        except TimeoutError:
            raise AgentError(
                "agent.silent", f"{self.launch.title} did not answer {method} within {REPLY_TIMEOUT:g} s"
            ) from None


@asynccontextmanager
async def run_agent(
    computer: Computer,
    launch: AgentLaunch,
    listener: AgentListener,
    *,
    session: str = "trial",
    folder: str = WORKSPACE,
    on_started: Callable[[AgentProgram], None] = lambda program: None,
) -> AsyncIterator[AgentProgram]:
    """Starts the program, isolated from those of other sessions, and initializes it. Stops it at the end.

    `on_started` receives the program before it is initialized, so that the caller can kill it while it still starts.
    """
    await _prepare_home(computer, launch)
    try:
        process = await computer.spawn(list(launch.command), cwd=folder, env=dict(launch.env), apart=session)
    except FreeholdError as error:
        raise AgentError("agent.not-started", f"{launch.title} cannot be started: {error.message}") from error
    stderr: deque[bytes] = deque()
    failure: FreeholdError | None = None
    exit_timeout = SHUTDOWN_EXIT_TIMEOUT
    with AcpTrace(launch.name, session, launch.secrets) as trace:
        async with process, asyncio.TaskGroup() as group:
            peer = JsonRpcPeer(
                _ProcessPipe(process),
                on_notification=lambda method, params: _deliver_update(listener, method, params),
                on_pause=listener.paused,
                on_request=_RequestHandler(listener),
                trace=trace,
            )
            reading = group.create_task(peer.run())
            draining = group.create_task(_drain(process, stderr))
            program = AgentProgram(launch, peer, process, AgentCapabilities(), stderr, folder)
            try:
                on_started(program)
                program.capabilities = await _initialize(program)
                yield program
                exit_timeout = EXIT_TIMEOUT
            except AgentError as error:
                failure = await program.explain(error)
            except FreeholdError as error:
                failure = error
            finally:
                # Nobody reads the output of a broken one any more, so it could wait for ever to write.
                await _stop(process, 0.0 if failure is not None or reading.done() else exit_timeout)
                reading.cancel()
                draining.cancel()
    if failure is not None:
        # Raised here and not above: the task group would wrap it.
        raise failure


async def _prepare_home(computer: Computer, launch: AgentLaunch) -> None:
    """Writes the agent's files, and shows it the skills. A skill that cannot be shown does not keep it from starting."""
    places = dict.fromkeys((*SKILL_PLACES, *launch.skills), SKILLS_IN_USE)
    await computer.files.link_entries(AGENT_HOME, places)
    files = {f"{AGENT_HOME}/{path}": text.encode() for path, text in launch.files.items()}
    for error in await computer.files.write_many(files) if files else ():
        if error is not None:
            raise error


async def _initialize(program: AgentProgram) -> AgentCapabilities:
    answer = await program._request(
        "initialize",
        {
            "protocolVersion": PROTOCOL,
            "clientInfo": {"name": "freehold", "title": "Freehold", "version": __version__},
            # Agents work inside the computer and get no access to the host's files or terminals.
            "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
        },
    )
    if answer.get("protocolVersion") != PROTOCOL:
        version = str(answer.get("protocolVersion"))[:20]
        raise AgentError(
            "agent.wrong-version",
            f"{program.launch.title} speaks ACP version {version}; Freehold speaks version {PROTOCOL}",
        )
    capabilities = _read_object(answer, "agentCapabilities")
    sessions = _read_object(capabilities, "sessionCapabilities")
    prompts = _read_object(capabilities, "promptCapabilities")
    info = _read_object(answer, "agentInfo")
    return AgentCapabilities(
        load=capabilities.get("loadSession") is True,
        resume=isinstance(sessions.get("resume"), dict),
        fork=isinstance(sessions.get("fork"), dict),
        images=prompts.get("image") is True,
        mcp_http=_read_object(capabilities, "mcpCapabilities").get("http") is True,
        name=make_visible(str(info.get("name") or "")[:80], lines=False),
        version=make_visible(str(info.get("version") or "")[:40], lines=False),
    )


def _read_object(source: Mapping[str, object], name: str) -> Json:
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def _deliver_update(listener: AgentListener, method: str, params: Json) -> None:
    update = params.get("update")
    if method == "session/update" and isinstance(update, dict):
        listener.updated(update)


class _RequestHandler:
    """Answers the requests of an agent. Only permission requests are supported."""

    def __init__(self, listener: AgentListener) -> None:
        self._listener = listener

    def __call__(self, method: str, params: Json) -> Later:
        if method == "session/request_permission":
            return self._listener.permission(params)
        return partial(self._refuse, method)

    async def _refuse(self, method: str) -> Json:
        raise FreeholdError("agent.not-offered", f"Freehold does not support {method[:60]}")


@dataclass(frozen=True)
class _ProcessPipe:
    process: Process

    async def read(self) -> bytes:
        return await self.process.stdout.read()

    async def write(self, data: bytes) -> None:
        await self.process.write(data)


async def _drain(process: Process, stderr: deque[bytes]) -> None:
    """Keeps the end of stderr, and reads everything so that the agent never waits to write it."""
    size = 0
    with suppress(FreeholdError):
        while data := await process.stderr.read():
            stderr.append(data)
            size += len(data)
            while size > MAX_STDERR and len(stderr) > 1:
                size -= len(stderr.popleft())


async def _stop(process: Process, timeout: float) -> None:
    process.close_stdin()
    if timeout:
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(timeout):
                await process.wait()
    if process.exit is None:
        process.kill()
