"""A provider is tried with its key, for nothing, and whatever it answers is told in words."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.egress.models.doorway import KEY, Doorway, doorway

from freehold.errors import FreeholdError
from freehold.manifest.sections.minds import Model


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[int]:
    """A server that says this to whoever connects; its port."""

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
async def test_each_kind_is_asked_in_its_own_way(name: str, path: str, header: tuple[str, str], door: Doorway) -> None:
    trial = await door.models.try_out(name)
    assert (trial.ok, trial.status, trial.models) == (True, 200, ("scripted",))
    assert trial.words == "It answers and offers 1 model"
    (asked,) = door.provider.requests
    assert (asked.method, asked.path) == ("GET", path)
    assert asked.headers[header[0]] == header[1]
    assert door.events("models.answered") == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "refuses the key"),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", "is the address right"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "status 503"),
    ],
)
async def test_a_provider_that_says_no_is_told_as_it_is(answer: bytes, words: str, tmp_path: Path) -> None:
    async with answering(answer) as port:
        models = {"near": Model(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real")}
        async with doorway(tmp_path, models=models) as door:
            trial = await door.models.try_out("near")
    assert not trial.ok
    assert words in trial.words


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
async def test_what_a_provider_makes_up_is_no_list_of_models(body: bytes, tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    async with answering(answer) as port:
        models = {"near": Model(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real")}
        async with doorway(tmp_path, models=models) as door:
            trial = await door.models.try_out("near")
    assert (trial.ok, trial.models) == (True, ())


async def test_one_that_speaks_no_http_or_is_not_there_cannot_be_reached(tmp_path: Path) -> None:
    async with answering(b"220 smtp.example.com ESMTP\r\n") as port:
        models = {
            "mail": Model(kind="openai", base_url=f"http://127.0.0.1:{port}/v1", key="secret:real"),
            "away": Model(kind="openai", base_url="http://127.0.0.1:9/v1", key="secret:real"),
            "keyless": Model(kind="openai", base_url="http://127.0.0.1:9/v1", key="secret:lost"),
        }
        async with doorway(tmp_path, models=models) as door:
            for name, code in (
                ("mail", "unreachable"),
                ("away", "unreachable"),
                ("keyless", "no-key"),
                ("nobody", "not-found"),
            ):
                with pytest.raises(FreeholdError) as refused:
                    await door.models.try_out(name)
                assert refused.value.code == f"models.{code}"
                assert KEY not in str(refused.value)
