"""In a whole Freehold: the owner signs in with the command, real agents use MCP tools alike, and no token is inside."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import pytest_asyncio
from tests.mcp.test_sign_in import signed_server
from tests.security.test_keys import everything_of
from tests.support.condition import DEADLINE, until
from tests.support.processes import find_descendants
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.egress.vault import Vault
from freehold.mcp.sign_in import McpSignIns
from freehold.timeline import Timeline

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
AGENTS = ("builtin", "claude", "codex", "gemini", "opencode")
MANIFEST = """
[egress]
mode = "deny"
allow = ["127.0.0.1:{port}"]
[security.exceptions.private-egress]
reason = "the server of this test"
[mcp.signed]
url = "http://127.0.0.1:{port}/mcp"
oauth = true
[mcp.notes]
command = "/usr/bin/python3 /workspace/odd_server.py"
tools = ["echo"]
[models.gemini]
kind = "gemini"
base_url = "{{model_url}}/v1beta"
key = "secret:scripted"
model = "gemini-2.5-flash"
[agents.builtin]
model = "local"
[agents.codex]
model = "local"
[agents.opencode]
model = "local"
[agents.gemini]
env = {{GEMINI_CLI_TRUST_WORKSPACE = "true"}}
"""
"""Gemini CLI hides all MCP tools in a folder that it does not trust: see docs/guides/mcp.md."""
SEARCH = {"claude": 'CALL ToolSearch {"query": "select:mcp__freehold__notes__echo", "max_results": 5}\n'}
"""What the model must do first with an agent that shows it the tools of MCP servers only on request."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    async with signed_server(3600) as port:
        options = FreeholdOptions(agents=AGENTS, manifest=MANIFEST.format(port=port))
        async with run_freehold(tmp_path_factory.mktemp("fh"), options) as freehold:
            freehold.file("odd_server.py").write_bytes((Path(__file__).parent / "odd_server.py").read_bytes())
            await until(freehold.is_connected)
            yield freehold


async def command(freehold: RunningFreehold, *words: str, code: int = 0) -> str:
    done = await asyncio.to_thread(freehold.harness.run, "mcp", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


async def open_page(address: str, host: str | None = None) -> httpx2.Response:
    """As the owner's browser opens it when a page of another site leads there, one step at a time."""
    led = {"accept": "text/html", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    async with httpx2.AsyncClient(trust_env=False, timeout=DEADLINE, follow_redirects=False) as browser:
        return await browser.get(address, headers=led if host is None else {**led, "host": host})


def read_kept_tokens(freehold: RunningFreehold) -> list[str]:
    """The tokens of the sign-in that are in the vault."""
    found = McpSignIns(Vault(freehold.home.vault)).read("signed")
    return [] if found is None else [found.access, str(found.refresh)]


async def test_a_sign_in_that_the_owner_began_ends_at_the_callback_and_a_guessed_or_used_state_gets_nothing(
    freehold: RunningFreehold,
) -> None:
    assert "wants a key" in await command(freehold, "try", "signed", code=1)
    address = (await command(freehold, "login", "signed")).splitlines()[0]
    assert parse_qs(urlsplit(address).query)["redirect_uri"] == [f"{freehold.url}/oauth/mcp-callback"]
    back = (await open_page(address)).headers["location"]
    parts = urlsplit(back)
    led_on = await open_page(back)
    assert (led_on.status_code, led_on.headers["location"]) == (307, f"{freehold.pages}{parts.path}?{parts.query}")
    callback, host = f"{freehold.url}{parts.path}?{parts.query}", urlsplit(freehold.pages).netloc
    state, code = (parse_qs(parts.query)[name][0] for name in ("state", "code"))
    for wrong in (f"{parts.path}?state=guessed&code={code}", f"{parts.path}?code={code}", parts.path):
        answer = await open_page(f"{freehold.url}{wrong}", host)
        assert answer.status_code >= 400
        assert "Sign-in failed" in answer.text
    assert read_kept_tokens(freehold) == []
    answer = await open_page(callback, host)
    assert (answer.status_code, "Signed in" in answer.text) == (200, True)
    access, _ = read_kept_tokens(freehold)
    assert access not in answer.text
    assert state not in answer.text
    assert (await open_page(callback, host)).status_code >= 400
    with Timeline(freehold.home.timeline, readonly=True) as timeline:
        (signed,) = timeline.read(kinds=("mcp.signed_in",))
        assert access not in str(list(timeline.read()))
    assert (signed.data, signed.who) == ({"server": "signed"}, "owner")
    assert "digest" in await command(freehold, "try", "signed")


async def test_an_agent_uses_the_server_and_the_token_is_nowhere_inside(freehold: RunningFreehold) -> None:
    """Environment, arguments, memory and files; what the server answered is found by the same search."""
    if os.geteuid() != 0:
        pytest.skip("only root reads the memory of another's processes")
    tokens = read_kept_tokens(freehold)
    assert tokens, "the owner has signed in"
    digest = hashlib.sha256(tokens[0].encode()).hexdigest()
    await command(freehold, "allow", "signed", "digest", "--yes")
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, "CALL signed__digest {}")
        assert digest in watch.text(), "the server got the token"
    computer = freehold.harness.pid_of("computer")
    has_found = False
    for where, data in everything_of([computer, *find_descendants(computer)]):
        assert not any(token.encode() in data for token in tokens), where
        has_found |= digest.encode() in data
    assert has_found, "the search does not find what is there"
    for root in (freehold.home.workspace, freehold.home.agent_home):
        for path in root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert not any(token.encode() in path.read_bytes() for token in tokens), path
    assert not any(token.encode() in request.body for request in freehold.model.requests for token in tokens)


async def test_a_sign_out_forgets_the_tokens_and_agents_are_no_longer_served(freehold: RunningFreehold) -> None:
    assert read_kept_tokens(freehold)
    session = await freehold.open("builtin")
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, "CALL signed__digest {}")
        assert hashlib.sha256(read_kept_tokens(freehold)[0].encode()).hexdigest() in watch.text()
        await command(freehold, "logout", "signed")
        assert read_kept_tokens(freehold) == []
        assert "wants a key" in await command(freehold, "try", "signed", code=1)
        # The same agent, with the connection that it had open.
        await freehold.run_turn(watch, session, "CALL signed__digest {}")
        assert "wants a key" in watch.text()


@pytest.mark.parametrize("agent", AGENTS)
async def test_every_agent_calls_a_tool_of_a_server_and_the_owner_is_asked(
    freehold: RunningFreehold, agent: str
) -> None:
    session = await freehold.open(agent)
    async with freehold.watch(session) as watch:
        call = 'CALL notes__echo {"text": "from the server"}'
        await freehold.run_turn(watch, session, SEARCH.get(agent, "") + call)
    assert "from the server" in watch.text(), watch.text()
    assert "notes: echo" in [one["title"] for one in watch.requests()]
    await freehold.call("DELETE", f"/v1/sessions/{session}")
