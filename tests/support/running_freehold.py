"""A complete Freehold that runs, used as a client uses it: over HTTP and the socket. Agents get a scripted model."""

import asyncio
import json
import os
import signal
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
from tests.support.agents import link_agents
from tests.support.condition import until
from tests.support.freehold import KEEPER, FreeholdHarness, KeeperProcess
from tests.support.session_watch import REPLY_TIMEOUT, Json, SessionWatch
from websockets.asyncio.client import connect

from freehold.egress.vault import Vault
from freehold.identity.tokens import ApiTokens
from freehold.testing import ScriptedModel
from freehold.testing.script import Script
from freehold.timeline import Timeline

KEY = "sk-the-real-key-that-never-goes-inside"
MODELS = """
[models.anthropic]
kind = "anthropic"
base_url = "{model_url}"
key = "secret:scripted"
model = "claude-sonnet-4-5"

[models.local]
kind = "openai-compatible"
base_url = "{model_url}/v1"
key = "secret:scripted"
model = "scripted"
"""


@dataclass(frozen=True)
class FreeholdOptions:
    """What a Freehold for tests consists of. With agents it also has a scripted model, whose script this may be.

    `{model_url}` in the manifest becomes the address of the scripted model, `{home}` in the environment the home.
    """

    agents: tuple[str, ...] = ()
    script: Script | None = None
    manifest: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    keeper: str = KEEPER
    is_connected: bool = True
    """Whether the scripted model is in the manifest."""

    @property
    def has_model(self) -> bool:
        return bool(self.agents) and self.is_connected


@dataclass(frozen=True)
class AgentSession:
    """The id of an open session, and the name of its agent."""

    agent: str
    id: str


class RunningFreehold:
    """`keeper` may be killed and started again; `http` and `token` stay valid."""

    def __init__(self, harness: FreeholdHarness, keeper: KeeperProcess, started: Json) -> None:
        self.harness = harness
        self.home = harness.home
        self.url = harness.url
        self.pages = harness.pages
        self.keeper = keeper
        self.keeper_url: str = started["keeper_url"]
        self.first_link: str = started["sign_in"] or ""
        self._model: ScriptedModel | None = None

    @property
    def model(self) -> ScriptedModel:
        assert self._model is not None, "this Freehold has no agents and therefore no model"
        return self._model

    @cached_property
    def token(self) -> str:
        with ApiTokens(self.home.identity, owner=None) as tokens:
            return tokens.create("test", ("read", "prompt", "files", "history", "admin"), None)[1]

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    @cached_property
    def http(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers=self.headers, trust_env=False, timeout=REPLY_TIMEOUT)

    async def call(self, method: str, path: str, **body: Any) -> Any:
        answer = await self.http.request(method, path, json=body if method not in ("GET", "DELETE") else None)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def open(self, agent: str, **more: Any) -> str:
        """Open a session."""
        return str((await self.call("POST", "/v1/sessions", agent=agent, **more))["id"])

    async def prompt(self, session: str, text: str, **more: Any) -> Json:
        key = more.pop("key", uuid.uuid4().hex)
        accepted: Json = await self.call("POST", f"/v1/sessions/{session}/prompt", text=text, key=key, **more)
        return accepted

    async def run_turn(self, watch: SessionWatch, session: str, text: str, answer: str = "once") -> Json:
        """Send a prompt, answer every permission request, and wait for the end of the turn."""
        return await watch.answer_all(answer, (await self.prompt(session, text))["turn"])

    @asynccontextmanager
    async def watch(self, session: str, after: int = 0) -> AsyncIterator[SessionWatch]:
        address = f"ws://localhost:{self.harness.gateway_port}/v1/socket"
        async with connect(
            address, additional_headers=self.headers, proxy=None, compression=None, open_timeout=REPLY_TIMEOUT
        ) as socket:
            await socket.send(json.dumps({"type": "subscribe", "topic": f"session:{session}", "after": after}))
            yield SessionWatch(socket, self._answer_request)

    @asynccontextmanager
    async def watch_new(self, session: str) -> AsyncIterator[SessionWatch]:
        """Watch only what happens from now on."""
        seq = int((await self.call("GET", f"/v1/sessions/{session}"))["seq"])
        async with self.watch(session, seq) as watch:
            yield watch

    async def _answer_request(self, request: str, answer: str) -> None:
        await self.call("POST", f"/v1/approvals/{request}", answer=answer)

    async def events(self, session: str) -> list[Json]:
        found: list[Json] = (await self.call("GET", f"/v1/sessions/{session}/events?after=0&limit=1000"))["events"]
        return found

    async def is_connected(self) -> bool:
        """Whether the gateway has reached the computer; it answers a moment before that."""
        return (await self.http.get("/v1/files/list")).status_code == 200

    async def kill_gateway(self) -> None:
        """Kill the gateway with SIGKILL and wait until the next one answers."""
        os.kill(self.harness.pid_of("gateway"), signal.SIGKILL)

        async def answers() -> bool:
            try:
                return (await self.http.get("/v1/sessions")).status_code == 200
            except httpx2.HTTPError:
                return False

        await until(answers)

    async def wait_stored(self, session: str, text: str) -> None:
        """Wait until this text of a message that its agent is still writing would outlive the gateway."""

        def is_stored() -> bool:
            with Timeline(self.home.timeline, readonly=True) as timeline:
                sql = "SELECT text FROM agents_unfinished WHERE session = ? ORDER BY number, at"
                return text in "".join(part for (part,) in timeline.query(sql, (session,)))

        await until(is_stored)

    def file(self, name: str) -> Path:
        return self.home.workspace / name


def prepare_harness(folder: Path, options: FreeholdOptions, model_url: str | None = None) -> FreeholdHarness:
    """The home with its manifest, agents and key. Without options it is left to Freehold to make the home."""
    harness = FreeholdHarness(folder)
    harness.environment |= {
        key: text.replace("{home}", str(harness.home.root)) for key, text in options.environment.items()
    }
    manifest = options.manifest + (MODELS if model_url else "")
    if manifest:
        harness.home.root.mkdir(parents=True, mode=0o700, exist_ok=True)
        harness.home.manifest.write_text(manifest.replace("{model_url}", model_url or ""))
    if model_url:
        harness.home.vault.mkdir(mode=0o700)
        Vault(harness.home.vault).set("scripted", KEY)
    if options.agents:
        link_agents(harness.home.agents, options.agents)
    return harness


@contextmanager
def run_harness(harness: FreeholdHarness, keeper: str = KEEPER) -> Iterator[RunningFreehold]:
    """Run what was prepared, until the block ends."""
    with harness.keeper(module=keeper) as process:
        yield RunningFreehold(harness, process, process.next("ready"))


@contextmanager
def run_plain_freehold(folder: Path, options: FreeholdOptions | None = None) -> Iterator[RunningFreehold]:
    """Run a Freehold without a model, for tests that are not async."""
    options = options or FreeholdOptions()
    with run_harness(prepare_harness(folder, options), options.keeper) as freehold:
        yield freehold


@asynccontextmanager
async def run_freehold(folder: Path, options: FreeholdOptions | None = None) -> AsyncIterator[RunningFreehold]:
    """Run a Freehold, and a scripted model if there are agents, until the block ends."""
    options = options or FreeholdOptions()
    async with ScriptedModel(options.script) as model:
        with ExitStack() as stack:
            harness = await asyncio.to_thread(
                prepare_harness, folder, options, model.url if options.has_model else None
            )
            starting = run_harness(harness, options.keeper)
            freehold = await asyncio.to_thread(stack.enter_context, starting)
            freehold._model = model
            try:
                yield freehold
            finally:
                if "http" in vars(freehold):  # nobody has used it otherwise
                    await freehold.http.aclose()
