"""The Python client, asynchronous and synchronous, against a running gateway."""

import asyncio
import inspect
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import DEADLINE

import freehold.client._async.freehold as async_client
import freehold.client._sync.freehold as sync_client
from freehold import Freehold, FreeholdError
from freehold.gateway.rate_limit import RateLimit
from freehold.identity.tokens import Scope


def secret(gateway: RunningGateway, *scopes: Scope) -> str:
    return gateway.token(*scopes)["authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def home(gateway: RunningGateway, *scopes: Scope) -> AsyncIterator[Freehold]:
    async with Freehold(gateway.url, token=secret(gateway, *scopes), timeout=DEADLINE) as found:
        yield found


async def append(gateway: RunningGateway, *numbers: int) -> None:
    for number in numbers:
        await asyncio.to_thread(gateway.services.timeline.append, "test.counted", {"number": number}, who="owner")


async def test_the_client_reads_its_identity_and_the_health(gateway: RunningGateway) -> None:
    async with home(gateway, "read") as found:
        me = await found.me()
        assert (me.who, me.scopes) == ("token:script", ("read",))
        assert (await found.meta()).version
        assert "timeline" in {component.name for component in (await found.health()).components}


async def test_the_synchronous_client_works(gateway: RunningGateway) -> None:
    token = secret(gateway, "admin")
    gateway.browser()

    def script() -> tuple[str, int, int, list[str]]:
        with Freehold.sync(gateway.url, token=token, timeout=DEADLINE) as found:
            browsers = found.sign_ins.list()
            found.sign_ins.end(browsers[0].id)
            names = [one.name for one in found.tokens.list()]
            return found.me().who, len(browsers), found.sign_ins.end_all(), names

    assert await asyncio.to_thread(script) == ("token:script", 1, 0, ["script"])


async def test_errors_of_the_server_reach_the_caller(gateway: RunningGateway) -> None:
    async with home(gateway, "read") as found:
        with pytest.raises(FreeholdError) as refused:
            await found.tokens.list()
        assert refused.value.code == "identity.wrong-scope"
        assert "admin" in refused.value.message
        assert "freehold token create" in refused.value.hint
        with pytest.raises(FreeholdError) as unavailable:
            await found.history.log()
        assert unavailable.value.code == "keeper.not-running"


async def test_a_token_can_revoke_itself(gateway: RunningGateway) -> None:
    async with home(gateway, "read") as found:
        await found.sign_out()
        with pytest.raises(FreeholdError) as refused:
            await found.me()
    assert refused.value.code == "identity.not-signed-in"
    assert refused.value.hint == f"Get a new token: freehold login {gateway.url}"


async def test_the_timeline_is_read_in_pages(gateway: RunningGateway) -> None:
    await append(gateway, *range(7))
    async with home(gateway, "read") as found:
        first = await found.timeline.read(kinds=["test.*"], limit=4)
        assert first.next is not None
        rest = await found.timeline.read(after=first.next, kinds=["test.*"])
        assert [event.data["number"] for event in (*first.events, *rest.events)] == list(range(7))
        assert rest.next is None


async def test_following_survives_lost_connections(gateway: RunningGateway) -> None:
    """The connection is cut again and again; each event comes once and in order."""
    async with home(gateway, "read") as found:
        seen: list[int] = []
        await append(gateway, 0)
        async for event in found.timeline.follow(after=0, kinds=["test.*"]):
            number = event.data["number"]
            seen.append(number)
            if number == 20:
                break
            if number % 5 == 0:
                for connection in list(gateway.services.connections._open):
                    connection.task.cancel()
            await append(gateway, number + 1)
    assert seen == list(range(21))


async def test_following_from_an_old_event_loses_nothing(gateway: RunningGateway) -> None:
    """More events than the socket replays: the client reads the rest in pages."""
    with gateway.services.timeline.transaction() as transaction:
        for number in range(700):
            transaction.append("test.counted", {"number": number}, who="owner")
    async with home(gateway, "read") as found:
        numbers = []
        async for event in found.timeline.follow(after=0, kinds=["test.*"]):
            numbers.append(event.data["number"])
            if len(numbers) == 700:
                await append(gateway, 700)
            if len(numbers) == 701:
                break
    assert numbers == list(range(701))


async def test_the_synchronous_client_follows(gateway: RunningGateway) -> None:
    token = secret(gateway, "read")
    await append(gateway, 1, 2, 3)

    def script() -> list[int]:
        with Freehold.sync(gateway.url, token=token, timeout=DEADLINE) as found:
            numbers = []
            for event in found.timeline.follow(after=0, kinds=["test.*"]):
                numbers.append(event.data["number"])
                if len(numbers) == 3:
                    break
            return numbers

    assert await asyncio.to_thread(script) == [1, 2, 3]


async def test_following_ends_when_the_token_is_revoked(gateway: RunningGateway) -> None:
    async with home(gateway, "read") as found:
        await append(gateway, 1)
        events = found.timeline.follow(after=0, kinds=["test.*"])
        await anext(events)
        gateway.services.tokens.revoke("script")
        with pytest.raises(FreeholdError, match="revoked"):
            await anext(events)


async def test_the_debug_log_has_no_token(gateway: RunningGateway, caplog: pytest.LogCaptureFixture) -> None:
    """Of requests and sockets, on the client and on the server."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("uvicorn").setLevel(logging.NOTSET)
    token = secret(gateway, "read")
    await append(gateway, 1)
    async with Freehold(gateway.url, token=token, timeout=DEADLINE) as found:
        await found.me()
        await anext(found.timeline.follow(after=0))
        assert token not in repr(vars(found))
    assert caplog.text
    assert token not in caplog.text


async def test_following_without_the_scope_is_refused(gateway: RunningGateway) -> None:
    async with home(gateway, "prompt") as found:
        with pytest.raises(FreeholdError) as refused:
            await anext(found.timeline.follow())
    assert refused.value.code == "identity.wrong-scope"


async def test_a_rate_limit_says_how_long_to_wait(gateway: RunningGateway) -> None:
    gateway.app._owner_limit = RateLimit(rate=0.1, burst=1)
    async with home(gateway, "read") as found:
        await found.me()
        with pytest.raises(FreeholdError) as refused:
            await found.me()
    assert refused.value.code == "gateway.too-many"
    assert "Wait" in refused.value.hint


async def test_a_refused_connection_is_explained(unused_tcp_port: int) -> None:
    async with Freehold(f"http://localhost:{unused_tcp_port}", token="fh_x") as found:
        with pytest.raises(FreeholdError) as refused:
            await found.me()
    assert refused.value.code == "client.unreachable"
    assert "freehold status" in refused.value.hint


@asynccontextmanager
async def not_a_freehold(reply: bytes) -> AsyncIterator[int]:
    """A server that is not a Freehold. It sends nothing when `reply` is empty."""
    hang_up = asyncio.Event()

    async def send_reply(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        if not reply:
            await hang_up.wait()
        writer.close()

    server = await asyncio.start_server(send_reply, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        hang_up.set()


async def test_a_timeout_is_explained() -> None:
    async with not_a_freehold(b"") as port, Freehold(f"http://127.0.0.1:{port}", token="fh_x", timeout=0.1) as found:
        with pytest.raises(FreeholdError) as refused:
            await found.me()
    assert refused.value.code == "client.timeout"


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://evil.example/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    ],
)
async def test_a_server_that_is_not_a_freehold_is_explained(reply: bytes) -> None:
    """A redirect is not followed, so the token is not sent to another server."""
    async with (
        not_a_freehold(reply) as port,
        Freehold(f"http://127.0.0.1:{port}", token="fh_x", timeout=DEADLINE) as found,
    ):
        with pytest.raises(FreeholdError) as refused:
            await found.me()
    assert refused.value.code == "client.odd-answer"


async def test_a_server_without_valid_tls_gets_no_token() -> None:
    alert = b"\x15\x03\x01\x00\x02\x02\x28"
    async with (
        not_a_freehold(alert) as port,
        Freehold(f"https://127.0.0.1:{port}", token="fh_x", timeout=DEADLINE) as found,
    ):
        with pytest.raises(FreeholdError) as refused:
            await found.me()
    assert refused.value.code == "client.tls"


@pytest.mark.parametrize(
    "url", ["http://agent.example.com", "ftp://x", "https://u:p@x", "https://x/path", "http://", "x:y"]
)
def test_an_unsafe_address_is_refused(url: str) -> None:
    with pytest.raises(FreeholdError, match=r"not a valid address|without encryption"):
        Freehold(url, token="fh_x")


def test_a_missing_token_is_explained() -> None:
    with pytest.raises(FreeholdError, match="freehold login http://localhost:3000"):
        Freehold("http://localhost:3000")


def test_both_clients_have_the_same_methods() -> None:
    def offered(module: object, prefix: str) -> dict[str, list[str]]:
        owner = getattr(module, f"{prefix}Freehold")
        found = {"": [name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")]}
        for name, kind in vars(module).items():
            if inspect.isclass(kind) and name.startswith(prefix):
                members = [one for one, _ in inspect.getmembers(kind, inspect.isfunction) if not one.startswith("_")]
                found[name.removeprefix(prefix)] = members
        return found

    assert offered(async_client, "Async") == offered(sync_client, "Sync")


def test_importing_freehold_does_not_import_the_client() -> None:
    script = "import sys, freehold; print([m for m in ('httpx2', 'websockets', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
