"""What a hostile program tries to use the network permission of another session, and is refused."""

import base64
from pathlib import Path

import pytest
from tests.egress.proxy_harness import OK, FakeResolver, RunningProxy, respond_once, run_proxy, run_server

from freehold.egress.credentials import ProxyCredentials


@pytest.fixture
def names() -> FakeResolver:
    known = FakeResolver()
    known.set("example.org", ["127.0.0.1"])
    return known


def basic(text: str) -> str:
    return f"Proxy-Authorization: Basic {base64.b64encode(text.encode()).decode()}\r\n"


async def status(proxy: RunningProxy, port: int, headers: str) -> bytes:
    """The status of a plain request with these header lines; CONNECT must be answered alike."""
    plain = await proxy.send(f"GET http://example.org:{port}/ HTTP/1.1\r\n{headers}\r\n".encode())
    tunnel = await proxy.send(f"CONNECT example.org:{port} HTTP/1.1\r\n{headers}\r\n".encode())
    assert plain.split()[1] == tunnel.split()[1], (plain, tunnel)
    return plain.split()[1]


async def test_no_forged_credentials_get_another_sessions_permission(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, mode="deny", names=names) as proxy:
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        password = proxy.egress.credentials.issue("one")
        mine = proxy.egress.credentials.issue("two")
        nonce, _, signature = password.partition(".")
        my_nonce, _, my_signature = mine.partition(".")
        forged = [
            "one:",
            "one",
            "",
            ":",
            f":{password}",
            f"two:{password}",
            f"one:{mine}",
            f"one:{password[:-1]}",
            f"one:{password}=",
            f"one:{password}:{password}",
            f"one: {password}",
            f"One:{password}",
            f"one:{nonce}.",
            f"one:{nonce}.{my_signature}",
            f"one:{my_nonce}.{signature}",
            f"one:.{signature}",
            f"one\0{nonce}:.{signature}",
            f"one:{ProxyCredentials().issue('one')}",
        ]
        for text in forged:
            assert await status(proxy, server.port, basic(text)) == b"407", text
        encoded = base64.b64encode(f"one:{password}".encode()).decode()
        for value in (f"Bearer {password}", f"Digest {encoded}", "Basic", "Basic !", f"Basic {encoded}!", encoded, "é"):
            assert await status(proxy, server.port, f"Proxy-Authorization: {value}\r\n") == b"407", value
        assert server.connected == 0
        refused = await proxy.event("request_refused")
        assert password not in str(refused)
        answer = await proxy.send(f"GET http://example.org/ HTTP/1.1\r\n{basic('one:x')}\r\n".encode())
        assert b'Proxy-Authenticate: Basic realm="freehold"' in answer


async def test_credentials_outside_their_field_count_for_nothing(tmp_path: Path, names: FakeResolver) -> None:
    """In `Authorization`, in a cookie, in the URL, or none at all: the program belongs to no session."""
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, names=names) as proxy:
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        real = proxy.authorization_for("one")
        for headers in ("", real.removeprefix("Proxy-"), f"X-{real}", f"Cookie: {real}"):
            assert await status(proxy, server.port, headers) == b"403", headers
        password = proxy.egress.credentials.issue("one")
        for target in (
            f"http://one:{password}@example.org:{server.port}/",
            f"one:{password}@example.org:{server.port}",
        ):
            method = "GET" if target.startswith("http") else "CONNECT"
            assert (await proxy.send(f"{method} {target} HTTP/1.1\r\n\r\n".encode())).split()[1] == b"400"
        assert server.connected == 0


async def test_two_credentials_in_one_request_are_refused(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, names=names) as proxy:
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        one, two = proxy.authorization_for("one"), proxy.authorization_for("two")
        folded = one.removesuffix("\r\n") + ", " + two.removeprefix("Proxy-Authorization: ")
        for headers in (two + one, one + two, one + one, one + two.lower()):
            assert await status(proxy, server.port, headers) == b"400", headers
        assert await status(proxy, server.port, folded) == b"407"
        assert server.connected == 0


async def test_a_second_request_on_a_connection_cannot_change_the_session(tmp_path: Path, names: FakeResolver) -> None:
    """The proxy serves one request a connection, inside a tunnel to port 80 too."""
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"other.example:{server.port}"], names=names) as proxy,
    ):
        names.set("other.example", ["127.0.0.1"])
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        allowed = f"GET http://other.example:{server.port}/ HTTP/1.1\r\nConnection: keep-alive\r\n"
        wanted = f"GET http://example.org:{server.port}/ HTTP/1.1\r\nConnection: keep-alive\r\n"
        two, one = proxy.authorization_for("two"), proxy.authorization_for("one")
        for first, second in ((two, one), (one, two), ("", one), (one, "")):
            answer = await proxy.send(f"{allowed}{first}\r\n{wanted}{second}\r\n".encode())
            assert answer.count(b"HTTP/1.1 ") == 1, answer
        assert len(server.heads) == 4
        assert all(b"other.example" in head for head in server.heads)
        assert b"proxy-authorization" not in b"".join(server.heads).lower()


async def test_a_session_cannot_grow_another_ones_requests(tmp_path: Path, names: FakeResolver) -> None:
    """Many names of one session become one request of that session; the other's request stays as it was."""
    from freehold.egress import EgressLimits

    async with run_proxy(tmp_path, mode="ask", names=names, limits=EgressLimits(ask=0.01)) as proxy:
        credentials = {session: proxy.authorization_for(session) for session in ("one", "two")}
        await proxy.send(f"GET http://a.example.org/ HTTP/1.1\r\n{credentials['one']}\r\n".encode())
        for number in range(12):
            await proxy.send(f"GET http://x{number}.example.org/ HTTP/1.1\r\n{credentials['two']}\r\n".encode())
        found = {(request.session, str(request.pattern)) for request in proxy.egress.status().pending}
        assert found == {("one", "a.example.org:80"), ("two", "*.example.org:80")}
