"""A whole Freehold with real agents and a scripted model, driven as a client drives it: over HTTP and the socket."""

import asyncio
import json
import os
import shutil
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.keeper.running import KeeperProcess, Stead
from websockets.asyncio.client import ClientConnection, connect

from freehold.egress.vault import Vault
from freehold.identity.tokens import Tokens

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "agents" / "agents"
PATIENCE = 60.0
Json = dict[str, Any]


def link_agents(target: Path, names: tuple[str, ...]) -> None:
    """The agents of `tools/install-test-agents`, by hard links: there at once, and of no size."""
    target.mkdir(parents=True, exist_ok=True)
    for name in (*names, ".node"):
        if not (CACHE / name).exists():
            raise AssertionError(f"{name} is not installed: run tools/install-test-agents")
        shutil.copytree(CACHE / name, target / name, symlinks=True, copy_function=os.link, dirs_exist_ok=True)


class Whole:
    """`keeper` may be killed and started again; `http` and `token` stay good."""

    def __init__(self, stead: Stead) -> None:
        self.stead = stead
        self.keeper: KeeperProcess | None = None
        with Tokens(stead.home.identity, owner=None) as tokens:
            _, self.token = tokens.create("test", ("read", "prompt", "files", "history", "admin"), None)
        self.headers = {"authorization": f"Bearer {self.token}"}
        self.http = httpx2.AsyncClient(
            base_url=f"http://localhost:{stead.gateway_port}", headers=self.headers, trust_env=False, timeout=PATIENCE
        )

    async def call(self, method: str, path: str, **body: Any) -> Any:
        answer = await self.http.request(method, path, json=body if method not in ("GET", "DELETE") else None)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def open(self, agent: str, **more: Any) -> str:
        return str((await self.call("POST", "/v1/sessions", agent=agent, **more))["id"])

    async def prompt(self, session: str, text: str, **more: Any) -> Json:
        key = more.pop("key", uuid.uuid4().hex)
        taken: Json = await self.call("POST", f"/v1/sessions/{session}/prompt", text=text, key=key, **more)
        return taken

    @asynccontextmanager
    async def watching(self, session: str, after: int = 0) -> AsyncIterator["Watch"]:
        address = f"ws://localhost:{self.stead.gateway_port}/v1/socket"
        async with connect(address, additional_headers=self.headers, proxy=None, compression=None) as socket:
            await socket.send(json.dumps({"type": "subscribe", "topic": f"session:{session}", "after": after}))
            yield Watch(self, socket)

    async def events(self, session: str) -> list[Json]:
        found: list[Json] = (await self.call("GET", f"/v1/sessions/{session}/events?after=0&limit=1000"))["events"]
        return found

    async def kill_gateway(self) -> None:
        """-9, and wait until another one answers."""
        assert self.keeper is not None
        before = self.keeper.pid_of("gateway")
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    if (await self.http.get("/v1/sessions")).status_code == 200:
                        return
                except httpx2.HTTPError:
                    await asyncio.sleep(0.05)

    def file(self, name: str) -> Path:
        return self.stead.home.workspace / name


class Watch:
    """A watcher of one session, by the socket."""

    def __init__(self, whole: Whole, socket: ClientConnection) -> None:
        self._whole = whole
        self._socket = socket
        self.events: list[Json] = []
        self.deltas: list[Json] = []

    async def until(self, kind: str, **wanted: Any) -> Json:
        """The next event of this kind whose data holds these values."""
        async with asyncio.timeout(PATIENCE):
            while True:
                event = await self.next()
                if event["kind"] == kind and all(event["data"].get(key) == value for key, value in wanted.items()):
                    return event

    async def next(self) -> Json:
        """The next event, of whatever kind."""
        async with asyncio.timeout(PATIENCE):
            return await self._next()

    async def _next(self) -> Json:
        while True:
            message = json.loads(await self._socket.recv())
            if message["type"] == "delta":
                self.deltas.append(message["data"])
            elif message["type"] == "event":
                event: Json = message["data"]
                self.events.append(event)
                return event

    async def answer(self, answer: str) -> Json:
        """Waits for the next question and answers it."""
        asked = await self.until("approval", state="pending")
        await self._whole.call("POST", f"/v1/approvals/{asked['data']['id']}", answer=answer)
        return asked

    async def refuse_until_ended(self) -> Json:
        """To the end of the turn; whatever is asked on the way is refused."""
        while True:
            async with asyncio.timeout(PATIENCE):
                event = await self.next()
            if event["kind"] == "turn.ended":
                return event
            if event["kind"] == "approval" and event["data"]["state"] == "pending":
                await self._whole.call("POST", f"/v1/approvals/{event['data']['id']}", answer="reject")

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def said(self) -> str:
        return "".join(event["data"]["text"] for event in self.events if event["kind"] == "message")


MODELS = """
[models.anthropic]
kind = "anthropic"
base_url = "{url}"
key = "secret:scripted"
model = "claude-sonnet-4-5"

[models.local]
kind = "openai-compatible"
base_url = "{url}/v1"
key = "secret:scripted"
model = "scripted"
"""
KEY = "sk-the-real-key-that-never-goes-inside"


def prepare(folder: Path, url: str, agents: tuple[str, ...], manifest: str = "") -> Stead:
    stead = Stead(folder)
    stead.home.root.mkdir(parents=True, mode=0o700)
    stead.home.vault.mkdir(mode=0o700)
    (stead.home.root / "freehold.toml").write_text(manifest + MODELS.format(url=url))
    if agents:
        link_agents(stead.home.agents, agents)
    Vault(stead.home.vault).put("scripted", KEY)
    return stead


@contextmanager
def running(whole: Whole) -> Iterator[KeeperProcess]:
    with whole.stead.keeper() as keeper:
        keeper.next("ready")
        whole.keeper = keeper
        yield keeper
