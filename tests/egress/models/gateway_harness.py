"""A model gateway on a real socket in front of a scripted model, as an agent inside uses it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.support.condition import DEADLINE

from freehold.egress.models import BudgetLimits, ModelGateway, read_providers
from freehold.egress.models.prices import Prices
from freehold.egress.models.upstream import UpstreamPool
from freehold.egress.stream import SocketStream
from freehold.egress.vault import Vault
from freehold.manifest.sections.models import ModelSection
from freehold.testing import Api, ScriptedModel, ScriptedUsage
from freehold.timeline import Timeline

KEY = "sk-real-0123456789-abcdefghij"
PATHS: dict[Api, str] = {
    "chat": "/openai/v1/chat/completions",
    "responses": "/openai/v1/responses",
    "messages": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/gemini-2.5-pro:generateContent",
}
OUTPUT_LIMITS: dict[Api, dict[str, Any]] = {
    "chat": {"max_tokens": 20},
    "responses": {"max_output_tokens": 20},
    "messages": {"max_tokens": 20},
    "gemini": {"generationConfig": {"maxOutputTokens": 20}},
}
PROVIDER_OF: dict[Api, str] = {"chat": "openai", "responses": "openai", "messages": "anthropic", "gemini": "gemini"}


def build_request(
    api: Api, prompt: str = "SAY hello there", *, stream: bool = False, model: str = "gpt-4o"
) -> tuple[str, Any]:
    """A path and a body. A response that is not streamed has a small limit, so that it fits into a small budget."""
    path, limits = PATHS[api], {} if stream else OUTPUT_LIMITS[api]
    if api == "gemini":
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse") if stream else path
        return path, {"contents": [{"role": "user", "parts": [{"text": prompt}]}], **limits}
    if api == "responses":
        return path, {"model": model, "input": prompt, "stream": stream, **limits}
    return path, {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": stream, **limits}


@dataclass(frozen=True)
class GatewayHarness:
    models: ModelGateway
    provider: ScriptedModel
    timeline: Timeline
    vault: Vault
    port: int
    http: httpx2.AsyncClient

    def headers(self, provider: str = "openai", session: str = "s1") -> dict[str, str]:
        return {"authorization": f"Bearer {self.models.endpoint_for(provider, session).key}"}

    async def ask(self, api: Api = "chat", prompt: str = "SAY hello there", **more: Any) -> httpx2.Response:
        session = more.pop("session", "s1")
        path, body = build_request(api, prompt, **more)
        return await self.http.post(path, json=body, headers=self.headers(PROVIDER_OF[api], session))

    def events(self, *kinds: str) -> list[Mapping[str, Any]]:
        return [event.data for event in self.timeline.read(kinds=kinds)]

    async def raw(self, request: bytes) -> bytes:
        """Sends these bytes and returns everything until the end of the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            await writer.drain()
            async with asyncio.timeout(DEADLINE):
                return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


def manifest_models(url: str, **changes: Any) -> dict[str, ModelSection]:
    """Three providers at one address."""
    return {
        "openai": ModelSection(kind="openai", base_url=f"{url}/v1", key="secret:real", **changes),
        "anthropic": ModelSection(kind="anthropic", base_url=url, key="secret:real", **changes),
        "gemini": ModelSection(kind="gemini", base_url=url, key="env:GEMINI_KEY", **changes),
    }


@asynccontextmanager
async def run_gateway(
    folder: Path,
    *,
    overall: BudgetLimits | None = None,
    provider: ScriptedModel | None = None,
    models: Mapping[str, ModelSection] | None = None,
    usage: ScriptedUsage | None = None,
    upstreams: UpstreamPool | None = None,
    prices: Callable[[str], Prices] = lambda _address: Prices("https://api.openai.com"),
    **changes: Any,
) -> AsyncIterator[GatewayHarness]:
    """Runs until the block ends. Opened again in the same folder it knows the earlier spending.

    Prices go by address, and that of the scripted model is none of a provider's.
    """
    provider = provider or ScriptedModel(usage=usage)
    vault = Vault(folder / "vault")
    vault.set("real", KEY)
    async with provider:
        found = read_providers(models or manifest_models(provider.url, **changes))
        with Timeline(folder / "timeline.db") as timeline:
            running = ModelGateway(
                timeline,
                found,
                vault,
                {"GEMINI_KEY": KEY},
                overall=overall,
                upstreams=upstreams,
                prices=prices,
            )
            async with running as models_gateway:
                tasks: set[asyncio.Task[None]] = set()

                async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    task = asyncio.current_task()
                    assert task is not None
                    tasks.add(task)
                    with contextlib.suppress(asyncio.CancelledError):
                        await models_gateway.handle(SocketStream(reader, writer))
                    tasks.discard(task)

                server = await asyncio.start_server(accept, "127.0.0.1", 0)
                port = server.sockets[0].getsockname()[1]
                try:
                    async with httpx2.AsyncClient(
                        base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE
                    ) as http:
                        yield GatewayHarness(models_gateway, provider, timeline, vault, port, http)
                finally:
                    server.close()
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
                    await server.wait_closed()
