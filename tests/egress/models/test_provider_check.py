"""A provider is checked with its key, for free, and the result is a clear message."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.egress.models.gateway_harness import KEY, GatewayHarness, run_gateway

from freehold.errors import FreeholdError
from freehold.manifest.sections.models import ModelSection
from freehold.observe.secrets import Secret


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """A server that sends this to every client; its port."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("name", "path", "header"),
    [
        ("openai", "/v1/models", ("authorization", f"Bearer {KEY}")),
        ("anthropic", "/v1/models?limit=1000", ("x-api-key", KEY)),
        ("gemini", "/v1beta/models?pageSize=1000", ("x-goog-api-key", KEY)),
    ],
)
async def test_each_kind_is_asked_by_its_own_api(
    name: str, path: str, header: tuple[str, str], gateway: GatewayHarness
) -> None:
    trial = await gateway.models.check_provider(name)
    assert (trial.ok, trial.status, trial.models) == (True, 200, ("scripted",))
    assert trial.message == "It responds and offers 1 model"
    (asked,) = gateway.provider.requests
    assert (asked.method, asked.path) == ("GET", path)
    assert asked.headers[header[0]] == header[1]
    assert gateway.events("models.answered") == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "refuses the key"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "check the address"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "status 503"),
    ],
)
async def test_the_message_says_why_a_provider_refused(answer: bytes, words: str, tmp_path: Path) -> None:
    async with answering(answer) as port:
        models = {"near": ModelSection(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real")}
        async with run_gateway(tmp_path, models=models) as gateway:
            trial = await gateway.models.check_provider("near")
    assert not trial.ok
    assert words in trial.message


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        b'{"data": 7}',
        b'{"data": [{"id": 5}, null, {"id": "\\u202eevil"}, {"id": ""}]}',
        b'{"data": [{"id": "' + b"x" * 300 + b'"}]}',
    ],
)
async def test_an_invalid_list_of_models_is_ignored(body: bytes, tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with answering(answer) as port:
        models = {"near": ModelSection(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real")}
        async with run_gateway(tmp_path, models=models) as gateway:
            trial = await gateway.models.check_provider("near")
    assert (trial.ok, trial.models) == (True, ())


async def test_a_server_without_http_or_none_at_all_is_unreachable(tmp_path: Path) -> None:
    async with answering(b"220 smtp.example.com ESMTP\r\n") as port:
        models = {
            "mail": ModelSection(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real"),
            "away": ModelSection(kind="openai", base_url="http://127.0.0.1:9/v1", key="secret:real"),
            "keyless": ModelSection(kind="openai", base_url="http://127.0.0.1:9/v1", key="secret:lost"),
        }
        async with run_gateway(tmp_path, models=models) as gateway:
            for name, code in (
                ("mail", "unreachable"),
                ("away", "unreachable"),
                ("keyless", "no-key"),
                ("nobody", "not-found"),
            ):
                with pytest.raises(FreeholdError) as refused:
                    await gateway.models.check_provider(name)
                assert refused.value.code == f"models.{code}"
                assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "You exceeded your current quota"}}', "You exceeded your current quota"),
        (b'[{"error": {"code": 400, "message": "API key not valid."}}]', "API key not valid."),
        (b'{"detail": "Unauthorized"}', "Unauthorized"),
        (b'{"error": "no such\\n model"}', "no such model"),
        (b'{"error": {"message": "Wrong key: sk-real-0123456789-abcdefghij"}}', "Wrong key: \u2022\u2022\u2022"),
        (b"<html>", ""),
        (b'{"error": {"message": 5}}', ""),
    ],
)
async def test_the_providers_own_words_are_shown_without_the_key(body: bytes, said: str, tmp_path: Path) -> None:
    answer = b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with answering(answer) as port:
        models = {"near": ModelSection(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real")}
        async with run_gateway(tmp_path, models=models) as gateway:
            assert (await gateway.models.check_provider("near")).said == said


@pytest.mark.parametrize("name", ["openai", "anthropic", "gemini"])
async def test_a_model_is_asked_for_a_word_with_the_key(name: str, gateway: GatewayHarness) -> None:
    provider = replace(gateway.models.providers[name], model="some-model")
    check = await gateway.models.try_provider(provider, Secret(KEY))
    assert (check.ok, check.message) == (True, "some-model answers")
    listed, called = gateway.provider.requests
    assert (listed.method, called.method, called.key) == ("GET", "POST", KEY)
    assert "some-model" in called.path + called.body.decode()


async def test_a_model_that_does_not_answer_is_told_in_the_providers_words(gateway: GatewayHarness) -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        listing = head.startswith(b"GET")
        body = b'{"data": [{"id": "m"}]}' if listing else b'{"error": {"message": "insufficient credit"}}'
        status = 200 if listing else 402
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        provider = replace(gateway.models.providers["openai"], host="127.0.0.1", port=port, model="m")
        check = await gateway.models.try_provider(provider, Secret(KEY))
    assert (check.ok, check.status, check.said, check.models) == (False, 402, "insufficient credit", ("m",))
