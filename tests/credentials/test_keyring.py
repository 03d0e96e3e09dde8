"""A secret goes to its host, paths and methods, and to nothing else, whatever the agent tries."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.egress.proxy_harness import (
    OK,
    Authority,
    FakeResolver,
    FakeServer,
    Respond,
    RunningProxy,
    hang_up,
    make_authority,
    respond_once,
    run_proxy,
    run_server,
)
from tests.support.condition import DEADLINE

from freehold.egress import Mode
from freehold.egress.keyring import HostCredential, Keyring
from freehold.egress.keyring.service import MAX_WAITING
from freehold.egress.names import parse_host
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError

SECRET = "the-secret-of-the-owner-0123456789"
HOST = "api.test"
GET = "GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


@dataclass
class Ring:
    """A running egress with one credential, and its server."""

    proxy: RunningProxy
    keyring: Keyring
    server: FakeServer
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def placeholder(self, session: str = "one") -> str:
        return self.keyring.grant(session)[1][0]

    async def relay(self, path: str, *, method: str = "GET", more: str = "", placeholder: str = "") -> bytes:
        """A request to the relay on loopback."""
        target = f"/{placeholder or self.placeholder()}{path}"
        text = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n{more}\r\n"
        return await self.proxy.send(text.encode())

    async def inside_tls(
        self, request: str, *, session: str | None = "one", host: str = HOST, port: int | None = None
    ) -> bytes:
        """A request through CONNECT, by a program that trusts what programs inside trust."""
        headers = "" if session is None else self.proxy.authorization_for(session)
        status, reader, writer = await self.proxy.connect(f"{host}:{port or self.server.port}", headers)
        if not status.startswith(b"HTTP/1.1 200"):
            await hang_up(writer)
            return status
        try:
            async with asyncio.timeout(DEADLINE):
                await writer.start_tls(self.trust, server_hostname=host)
                writer.write(request.encode())
                return await reader.read()
        finally:
            await hang_up(writer)

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.bundle))

    bundle: Path = Path()

    def sent(self) -> bytes:
        return b"".join(self.server.heads)


Start = Callable[..., Awaitable[Ring]]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return make_authority(tmp_path, HOST, "other.test")


@asynccontextmanager
async def run_ring(
    tmp_path: Path,
    authority: Authority,
    answering: Respond | None = None,
    *,
    mode: Mode = "deny",
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    names: FakeResolver | None = None,
    answer: bool | None = None,
    **settings: object,
) -> AsyncIterator[Ring]:
    vault = Vault(tmp_path / "vault")
    vault.set("api", SECRET)
    names = names or FakeResolver()
    for name in (HOST, "other.test"):
        if name not in names.known:
            names.set(name, ["127.0.0.1"])
    keyring = Keyring(vault, tmp_path / "vault", tmp_path / "public", trust=authority.client)
    async with run_server(answering or respond_once(OK), tls=authority.server) as server:
        given = {"variables": ("API_TOKEN",), "paths": ("/mine",), **settings}
        credential = HostCredential("api", parse_host(HOST), "api", server.port, **given)  # type: ignore[arg-type]
        await keyring.set_credentials([credential])
        rules = tuple(one.format(port=server.port) for one in allow)
        denied = tuple(one.format(port=server.port) for one in deny)
        async with run_proxy(tmp_path, mode=mode, allow=rules, deny=denied, names=names, keyring=keyring) as proxy:
            ring = Ring(proxy, keyring, server, bundle=tmp_path / "public" / ".credentials" / "ca-certificates.crt")
            if answer is not None:

                async def ask(session: str, one: HostCredential, method: str, path: str) -> bool:
                    ring.asked.append((session, method, path))
                    return answer

                keyring.ask = ask
            yield ring


async def test_the_relay_adds_the_secret_to_what_the_credential_covers(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        answer = await ring.relay("/mine/x?a=1", more="Authorization: Bearer of-the-agent\r\nCookie: a=b\r\n")
        assert answer.endswith(b"hello")
        (head,) = ring.server.heads
        assert head.startswith(b"GET /mine/x?a=1 HTTP/1.1\r\n")
        assert head.count(b"Authorization: ") == 1
        assert f"Authorization: Bearer {SECRET}\r\n".encode() in head
        assert f"Host: {HOST}:{ring.server.port}\r\n".encode() in head
        event = await ring.proxy.event("credential_used")
        assert (event["who"], event["target"]) == ("session:one", f"{HOST}:{ring.server.port}")
        assert event["reason"] == "the credential api was added to GET /mine/x"
        (use,) = ring.keyring.recent
        assert (use.credential, use.session, use.method, use.path) == ("api", "one", "GET", "/mine/x")


@pytest.mark.parametrize(
    "form",
    [
        "Authorization: Bearer {0}",
        "authorization: token {0}",
        "Authorization: Basic {1}",
    ],
)
async def test_a_tool_that_holds_the_placeholder_sends_the_secret(
    tmp_path: Path, authority: Authority, form: str
) -> None:
    async with run_ring(tmp_path, authority) as ring:
        pair = base64.b64encode(f"somebody:{ring.placeholder()}".encode()).decode()
        more = form.format(ring.placeholder(), pair) + "\r\n"
        answer = await ring.inside_tls(GET.format(path="/mine", host=f"{HOST}:{ring.server.port}", more=more))
        assert answer.endswith(b"hello")
        assert f"Authorization: Bearer {SECRET}\r\n".encode() in ring.sent()
        assert ring.placeholder().encode() not in ring.sent()


async def test_the_secret_is_sent_in_the_form_that_its_server_wants(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority, form="header", header="X-Api-Key") as ring:
        await ring.relay("/mine", more="X-Api-Key: of-the-agent\r\n")
        assert f"X-Api-Key: {SECRET}\r\n".encode() in ring.sent()
        assert b"of-the-agent" not in ring.sent()
    async with run_ring(tmp_path, authority, form="basic", user="owner") as ring:
        await ring.relay("/mine")
        assert base64.b64encode(f"owner:{SECRET}".encode()) in ring.sent()


# Attacks


ODD_PATHS = [
    "/other",
    "/minefield",
    "/mine/../other",
    "/mine/./../other",
    "/mine/%2e%2e/other",
    "/mine/.%2E/other",
    "/mine%2f..%2fother",
    "/mine/..%5cother",
    "/mine/%252e%252e/other",
    "//mine/x",
    "/mine//../other",
    "/mine/..;/other",
    "/mine/%00",
    "/MINE/x",
    "/",
]


@pytest.mark.parametrize("path", ODD_PATHS)
async def test_another_path_gets_no_secret(tmp_path: Path, authority: Authority, path: str) -> None:
    """Neither by the relay nor in TLS. Where the host is allowed, the request goes out as the agent wrote it."""
    async with run_ring(tmp_path, authority, allow=(f"{HOST}:{{port}}",)) as ring:
        await ring.relay(path)
        more = f"Authorization: Bearer {ring.placeholder()}\r\n"
        await ring.inside_tls(GET.format(path=path, host=f"{HOST}:{ring.server.port}", more=more))
        assert SECRET.encode() not in ring.sent()
        assert list(ring.keyring.recent) == []


async def test_what_a_credential_does_not_cover_needs_a_rule_as_ever(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        assert (await ring.relay("/other")).startswith(b"HTTP/1.1 403 ")
        request = GET.format(path="/other", host=f"{HOST}:{ring.server.port}", more="")
        assert (await ring.inside_tls(request)).startswith(b"HTTP/1.1 403 ")
        assert ring.server.connected == 0
        assert (await ring.relay("/mine")).endswith(b"hello")


@pytest.mark.parametrize(
    ("path", "is_covered"),
    [
        ("/npm/@me%2fnotes", True),
        ("/npm/@me%2Fnotes", True),
        ("/npm/@me%2fnotes?write=true", True),
        ("/npm/@me/notes", True),
        ("/npm/me%2fnotes", False),
        ("/npm/@me%2f..", False),
        ("/npm/@me%2f.hidden", False),
        ("/npm/@..%2fnotes", False),
        ("/npm/@me%2f", False),
        ("/npm/@me%2fnotes%2fmore", False),
        ("/npm/@me%2fnotes/more", False),
        ("/npm/more/@me%2fnotes", False),
        ("/npm/../@me%2fnotes", False),
        ("/npm/@me%252fnotes", False),
        ("/npm/@me%5cnotes", False),
        ("/other/@me%2fnotes", False),
        ("/npmx/@me%2fnotes", False),
    ],
)
def test_npm_may_escape_the_slash_of_a_scope_and_no_other(path: str, is_covered: bool) -> None:
    credential = HostCredential("npm", parse_host(HOST), "npm", paths=("/npm", "/other"), tools=frozenset({"npm"}))
    assert credential.covers("GET", path) is is_covered
    assert not replace(credential, methods=frozenset({"GET"})).covers("PUT", path)
    if "%2" in path:
        assert not replace(credential, tools=frozenset({"git"})).covers("GET", path)


async def test_a_rule_that_denies_the_host_wins_over_the_credential(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority, deny=(HOST,)) as ring:
        assert b"denies it" in await ring.relay("/mine")
        more = f"Authorization: Bearer {ring.placeholder()}\r\n"
        request = GET.format(path="/mine", host=f"{HOST}:{ring.server.port}", more=more)
        assert b"denies it" in await ring.inside_tls(request)
        assert ring.server.connected == 0


@pytest.mark.parametrize("method", ["DELETE", "PUT", "TRACE", "get", "POST"])
async def test_another_method_gets_no_secret(tmp_path: Path, authority: Authority, method: str) -> None:
    allow = (f"{HOST}:{{port}}",)
    async with run_ring(tmp_path, authority, allow=allow, methods=frozenset({"GET", "HEAD"})) as ring:
        await ring.relay("/mine", method=method)
        more = f"Authorization: Bearer {ring.placeholder()}\r\n"
        request = GET.format(path="/mine", host=f"{HOST}:{ring.server.port}", more=more).replace("GET", method, 1)
        await ring.inside_tls(request)
        assert SECRET.encode() not in ring.sent()


async def test_a_field_that_changes_the_method_or_the_path_is_not_sent(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        names = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL")
        await ring.relay("/mine", more="".join(f"{name}: DELETE\r\n" for name in names))
        assert SECRET.encode() in ring.sent()
        assert b"DELETE" not in ring.sent()


async def test_the_placeholder_at_another_host_stays_a_placeholder(tmp_path: Path, authority: Authority) -> None:
    """TLS to another host does not end here at all."""
    async with run_ring(tmp_path, authority, allow=("other.test:{port}",)) as ring:
        ring.bundle = authority.ca_file
        host = f"other.test:{ring.server.port}"
        more = f"Authorization: Bearer {ring.placeholder()}\r\n"
        answer = await ring.inside_tls(GET.format(path="/mine", host=host, more=more), host="other.test")
        assert answer.endswith(b"hello")
        assert ring.placeholder().encode() in ring.sent()
        assert SECRET.encode() not in ring.sent()


async def test_another_host_named_inside_the_request_is_refused(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority, allow=("other.test:{port}",)) as ring:
        more = f"Authorization: Bearer {ring.placeholder()}\r\n"
        answer = await ring.inside_tls(GET.format(path="/mine", host="other.test", more=more))
        assert answer.startswith(b"HTTP/1.1 400 ")
        for path in (f"@other.test:{ring.server.port}/mine", f"https://other.test:{ring.server.port}/mine"):
            await ring.relay(path)
        assert SECRET.encode() not in ring.sent()


async def test_a_redirect_is_returned_and_not_followed(tmp_path: Path, authority: Authority) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: https://other.test/steal\r\nContent-Length: 0\r\n\r\n"
    async with run_ring(tmp_path, authority, respond_once(moved)) as ring:
        answer = await ring.relay("/mine")
        assert b"Location: https://other.test/steal" in answer
        assert SECRET.encode() not in answer
        assert ring.server.connected == 1


async def test_a_name_that_leads_to_another_server_gets_no_secret(tmp_path: Path) -> None:
    """DNS is not what proves who the server is: its certificate is."""
    real, false = tmp_path / "real", tmp_path / "false"
    real.mkdir()
    false.mkdir()
    trusted, untrusted = make_authority(real, HOST), make_authority(false, HOST)
    mixed = Authority(trusted.ca_file, untrusted.server, trusted.client)
    async with run_ring(tmp_path, mixed) as ring:
        answer = await ring.relay("/mine")
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"no certificate that this machine trusts" in answer
        assert ring.server.heads == []


async def test_a_name_that_leads_to_a_private_address_gets_no_secret(tmp_path: Path, authority: Authority) -> None:
    names = FakeResolver()
    names.set(HOST, ["10.0.0.7"])
    async with run_ring(tmp_path, authority, names=names) as ring:
        assert b"private address" in await ring.relay("/mine")


def echo_head(prefix: bytes = b"", more: str = "") -> Respond:
    """A server that returns what it was sent, in its head and in its body."""

    async def answering(seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.heads.append(head)
        value = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"authorization")).partition(b": ")
        body = prefix + head
        fields = f"{more}Content-Length: {len(body)}\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\nX-Seen: " + value[2] + b"\r\n" + fields.encode() + b"\r\n")
        for at in range(len(body)):
            writer.write(body[at : at + 1])
            if at % 7 == 0:
                await writer.drain()

    return answering


@pytest.mark.parametrize("form", ["bearer", "basic"])
async def test_a_server_that_returns_the_secret_does_not_show_it(
    tmp_path: Path, authority: Authority, form: str
) -> None:
    async with run_ring(tmp_path, authority, echo_head(), form=form, user="owner") as ring:
        answer = await ring.relay("/mine")
        pair = base64.b64encode(f"owner:{SECRET}".encode())
        assert (SECRET.encode() if form == "bearer" else pair) in ring.sent()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"GET /mine HTTP/1.1" in answer, "the rest of the response is whole"
        assert SECRET.encode() not in answer
        assert pair not in answer
        assert b"****" in answer


async def test_a_part_of_a_response_cannot_be_asked_for(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        await ring.relay("/mine", more="Range: bytes=0-9\r\nIf-Range: x\r\nAccept-Encoding: gzip\r\n")
        assert b"range" not in ring.sent().lower()
        assert b"gzip" not in ring.sent()


async def test_a_compressed_response_is_refused(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority, echo_head(more="Content-Encoding: gzip\r\n")) as ring:
        answer = await ring.relay("/mine")
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert SECRET.encode() not in answer


async def test_no_cookie_comes_back_that_would_be_a_second_key(tmp_path: Path, authority: Authority) -> None:
    signed_in = b"HTTP/1.1 200 OK\r\nSet-Cookie: session=1\r\nX-Other: 2\r\nContent-Length: 0\r\n\r\n"
    async with run_ring(tmp_path, authority, respond_once(signed_in)) as ring:
        answer = await ring.relay("/mine")
        assert b"X-Other: 2" in answer
        assert b"cookie" not in answer.lower()


async def test_a_placeholder_counts_for_its_session_while_its_agent_runs(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority, allow=(f"{HOST}:{{port}}",)) as ring:
        theirs = ring.placeholder("two")
        more = f"Authorization: Bearer {theirs}\r\n"
        await ring.inside_tls(GET.format(path="/mine", host=f"{HOST}:{ring.server.port}", more=more))
        assert SECRET.encode() not in ring.sent()
        ring.keyring.revoke("two")
        assert (await ring.relay("/mine", placeholder=theirs)).startswith(b"HTTP/1.1 407 ")
        guessed = "freehold-placeholder-" + "A" * 32
        assert (await ring.relay("/mine", placeholder=guessed)).startswith(b"HTTP/1.1 407 ")
        assert SECRET.encode() not in ring.sent()


async def test_a_program_of_no_session_keeps_its_own_tls(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority, allow=(f"{HOST}:{{port}}",)) as ring:
        ring.bundle = authority.ca_file
        request = GET.format(path="/mine", host=f"{HOST}:{ring.server.port}", more="")
        assert (await ring.inside_tls(request, session=None)).endswith(b"hello")


async def test_a_secret_without_tls_is_never_sent(tmp_path: Path, authority: Authority) -> None:
    async with (
        run_ring(tmp_path, authority, allow=(f"{HOST}:{{port}}",)) as ring,
        run_server(respond_once(OK)) as plain,
    ):
        names = ring.proxy.names
        names.set(HOST, ["127.0.0.1"])
        await ring.proxy.egress.add_rule("allow", f"{HOST}:{plain.port}")
        more = f"Authorization: Bearer {ring.placeholder()}\r\n"
        request = f"GET http://{HOST}:{plain.port}/mine HTTP/1.1\r\nHost: {HOST}:{plain.port}\r\n{more}\r\n"
        assert (await ring.proxy.send(request.encode())).endswith(b"hello")
        assert ring.placeholder().encode() in plain.heads[0]
        assert SECRET.encode() not in plain.heads[0]


async def test_a_second_request_behind_the_first_is_not_read(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        hidden = f"GET /other HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
        await ring.relay("/mine", more=f"\r\n{hidden}")
        both = "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"
        assert (await ring.relay("/mine", method="POST", more=both)).startswith(b"HTTP/1.1 400 ")
        assert b"/other" not in ring.sent()


async def test_an_unknown_secret_says_what_the_owner_can_do(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        Vault(tmp_path / "vault").remove("api")
        answer = await ring.relay("/mine")
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"freehold secret set api" in answer


# Changes


@pytest.mark.parametrize("answer", [True, False])
async def test_a_push_waits_for_the_owner(tmp_path: Path, authority: Authority, answer: bool) -> None:
    async with run_ring(tmp_path, authority, answer=answer, tools=frozenset({"git"})) as ring:
        push = "/mine/x.git/git-receive-pack"
        body = "Content-Length: 0\r\n"
        found = await ring.relay(push, method="POST", more=body)
        assert ring.asked == [("one", "POST", push)]
        assert found.startswith(b"HTTP/1.1 200 ") == answer
        assert (SECRET.encode() in ring.sent()) == answer
        fetch = "/mine/x.git/git-upload-pack"
        assert (await ring.relay(fetch, method="POST", more=body)).startswith(b"HTTP/1.1 200 ")
        assert len(ring.asked) == 1, "a fetch is not a change"
        await ring.relay("/mine/x?all=1", method="DELETE")
        assert ring.asked[1:] == [("one", "DELETE", "/mine/x?all=1")], "the owner sees what a query says"


async def test_a_path_that_looks_like_a_fetch_of_git_is_asked_for_at_another_server(
    tmp_path: Path, authority: Authority
) -> None:
    async with run_ring(tmp_path, authority, answer=False) as ring:
        hidden = "/mine/deploy/git-upload-pack"
        assert (await ring.relay(hidden, method="POST", more="Content-Length: 0\r\n")).startswith(b"HTTP/1.1 403 ")
        assert ring.asked == [("one", "POST", hidden)]
        assert ring.server.connected == 0


@pytest.mark.parametrize(("writes", "asks", "sends"), [("allow", 0, True), ("deny", 0, False), ("ask", 1, True)])
async def test_the_owner_decides_whether_changes_are_asked_for(
    tmp_path: Path, authority: Authority, writes: str, asks: int, sends: bool
) -> None:
    async with run_ring(tmp_path, authority, answer=True, writes=writes) as ring:
        await ring.relay("/mine", method="PUT", more="Content-Length: 0\r\n")
        assert (len(ring.asked), SECRET.encode() in ring.sent()) == (asks, sends)


async def test_changes_are_refused_where_nobody_can_be_asked(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        assert (await ring.relay("/mine", method="DELETE")).startswith(b"HTTP/1.1 403 ")
        assert ring.server.connected == 0


async def test_a_flood_of_changes_does_not_flood_the_owner(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:
        answered = asyncio.Event()
        asked: list[str] = []
        all_asked = asyncio.Event()

        async def ask(_session: str, _one: HostCredential, _method: str, path: str) -> bool:
            asked.append(path)
            if len(asked) == MAX_WAITING:
                all_asked.set()
            await answered.wait()
            return False

        ring.keyring.ask = ask
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            for number in range(MAX_WAITING):
                group.create_task(ring.relay(f"/mine/{number}", method="DELETE"))
            await all_asked.wait()
            assert b"wait for the owner already" in await ring.relay("/mine/more", method="DELETE")
            answered.set()
        assert len(asked) == MAX_WAITING
        assert ring.server.connected == 0


async def test_a_change_outside_of_a_turn_is_refused_with_the_reason(tmp_path: Path, authority: Authority) -> None:
    async with run_ring(tmp_path, authority) as ring:

        async def ask(_session: str, _one: HostCredential, _method: str, _path: str) -> bool:
            raise FreeholdError("tool.no-turn.conflict", "no turn is running")

        ring.keyring.ask = ask
        answer = await ring.relay("/mine", method="DELETE")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"no turn is running" in answer
