"""Keys in the environment and servers on loopback are found, and not used."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from freehold.egress.models import discovery
from freehold.egress.models.discovery import find_environment_keys, find_local_servers
from freehold.egress.models.known_providers import KNOWN_PROVIDERS, KnownProvider, find_known_provider
from freehold.egress.models.prices import Prices
from freehold.egress.models.provider import read_provider
from freehold.egress.models.upstream import UpstreamPool
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import ModelSection

REAL = "gsk-1234567890abcdefghij"


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[int]:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


# As their documentation shows them: https://lmstudio.ai/docs and tools/server/README.md of llama.cpp. The second also
# has a list in the form of Ollama.
LM_STUDIO = {
    "data": [
        {"id": "qwen/qwen3-4b", "object": "model", "owned_by": "organization_owner"},
        {"id": "text-embedding-nomic-embed-text-v1.5", "object": "model", "owned_by": "organization_owner"},
    ],
    "object": "list",
}
LLAMA_CPP_MODEL = "../models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"
LLAMA_CPP = {
    "models": [{"name": LLAMA_CPP_MODEL, "model": LLAMA_CPP_MODEL, "type": "model", "capabilities": ["completion"]}],
    "object": "list",
    "data": [
        {
            "id": LLAMA_CPP_MODEL,
            "object": "model",
            "created": 1735142223,
            "owned_by": "llamacpp",
            "meta": {"vocab_type": 2, "n_vocab": 128256, "n_ctx_train": 131072, "n_embd": 4096, "n_params": 8030261312},
        }
    ],
}
LLAMA_CPP_LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}


@asynccontextmanager
async def model_server(content: object, status: str = "200 OK") -> AsyncIterator[int]:
    """Answers `GET /v1/models`, over connections that stay open. Anything else is not found."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                is_known = head.startswith(b"GET /v1/models HTTP/1.1\r\n")
                body = json.dumps(content if is_known else {"error": "Unexpected endpoint or method"}).encode()
                fields = f"Content-Type: application/json; charset=utf-8\r\nContent-Length: {len(body)}"
                writer.write(f"HTTP/1.1 {status if is_known else '404 Not Found'}\r\n{fields}\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def open_upstreams() -> AsyncIterator[UpstreamPool]:
    """Closed before the servers, which wait for the end of their connections."""
    upstreams = UpstreamPool()
    try:
        yield upstreams
    finally:
        await upstreams.close()


def at_port(name: str, port: int) -> KnownProvider:
    """That provider at another port than its usual one, which a program of the machine may have."""
    known = find_known_provider(name)
    assert known.base_url is not None
    usual = {"lmstudio": ":1234/v1", "llamacpp": ":8080/v1"}[name]
    assert known.base_url == f"http://127.0.0.1{usual}"
    return replace(known, base_url=f"http://127.0.0.1:{port}/v1")


def test_a_key_in_the_environment_is_offered_by_its_name_only() -> None:
    found = find_environment_keys({"GROQ_API_KEY": REAL, "GOOGLE_API_KEY": REAL, "OTHER_API_KEY": REAL}, [])
    assert [(each.known.name, each.variable) for each in found] == [
        ("gemini", "GOOGLE_API_KEY"),
        ("groq", "GROQ_API_KEY"),
    ]
    assert REAL not in repr(found)


@pytest.mark.parametrize("value", ["", "  ", "your-key-here", "changeme", "<key>"])
def test_an_empty_or_unfilled_variable_is_not_offered(value: str) -> None:
    assert find_environment_keys({"OPENAI_API_KEY": value}, []) == []


def test_what_is_connected_is_not_offered_again() -> None:
    connected = [read_provider("mine", ModelSection(kind="openai", key="secret:mine"))]
    assert find_environment_keys({"OPENAI_API_KEY": REAL}, connected) == []


async def test_a_server_that_lists_models_is_found_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(b'{"data": [{"id": "qwen3"}]}') as near, answering(b"<html>hello</html>") as page:
        known = [
            replace(find_known_provider("ollama"), base_url=f"http://127.0.0.1:{near}/v1"),
            replace(find_known_provider("llamacpp"), base_url=f"http://127.0.0.1:{page}/v1"),
            replace(find_known_provider("vllm"), base_url="http://127.0.0.1:9/v1"),
        ]
        monkeypatch.setattr(discovery, "KNOWN_PROVIDERS", known)
        (found,) = await find_local_servers([], UpstreamPool())
        assert (found.known.name, found.models) == ("ollama", ("qwen3",))
        assert "offers 1 model" in found.words
        connected = [read_provider("x", ModelSection(base_url=f"http://127.0.0.1:{near}/v1"))]
        assert await find_local_servers(connected, UpstreamPool()) == []


async def test_lm_studio_and_llama_cpp_are_found_by_what_they_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with model_server(LM_STUDIO) as studio, model_server(LLAMA_CPP) as llama, open_upstreams() as upstreams:
        monkeypatch.setattr(discovery, "KNOWN_PROVIDERS", [at_port("lmstudio", studio), at_port("llamacpp", llama)])
        found = await find_local_servers([], upstreams)
    assert [(each.known.title, each.models) for each in found] == [
        ("LM Studio", ("qwen/qwen3-4b", "text-embedding-nomic-embed-text-v1.5")),
        ("llama.cpp", (LLAMA_CPP_MODEL,)),
    ]
    assert [each.words for each in found] == [
        f"It answers at http://127.0.0.1:{studio}/v1 and offers 2 models",
        f"It answers at http://127.0.0.1:{llama}/v1 and offers 1 model",
    ]


async def test_a_server_without_a_model_yet_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """LM Studio in which nothing was downloaded, and llama.cpp while it loads."""
    nothing = {"data": [], "object": "list"}
    loading = model_server(LLAMA_CPP_LOADING, "503 Service Unavailable")
    async with model_server(nothing) as studio, loading as llama, open_upstreams() as upstreams:
        monkeypatch.setattr(discovery, "KNOWN_PROVIDERS", [at_port("lmstudio", studio), at_port("llamacpp", llama)])
        assert await find_local_servers([], upstreams) == []


def test_every_known_provider_is_one_that_can_be_connected() -> None:
    assert len({known.name for known in KNOWN_PROVIDERS}) == len(KNOWN_PROVIDERS)
    for known in KNOWN_PROVIDERS:
        if known.base_url is None:
            continue
        section = ModelSection(kind=known.kind, base_url=known.base_url, key="secret:x", auth=known.auth)
        assert read_provider(known.name, section).url == known.base_url
        assert known.base_url.startswith("http://127.0.0.1:" if known.is_local else "https://")
        assert known.is_local or known.auth != "key" or (known.variables and known.key_page)
        assert known.agent is None or known.auth != "key"
    with pytest.raises(FreeholdError) as refused:
        find_known_provider("nobody")
    assert "anthropic" in refused.value.hint


@pytest.mark.parametrize("name", ["anthropic", "openai", "gemini", "openrouter", "mistral", "groq", "xai", "deepseek"])
def test_the_prices_of_a_known_provider_are_found_by_its_address(name: str) -> None:
    known = find_known_provider(name)
    provider = read_provider(name, ModelSection(kind=known.kind, base_url=known.base_url, key="secret:x"))
    assert Prices(provider.url).find("any-model") is not None
