"""The real agents use a credential in a session alike, and the owner is asked before a push."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from tests.credentials.private_servers import run_tls_git_server
from tests.egress.proxy_harness import Authority, make_authority
from tests.git.git_server import PASSWORD, USER, GitServer
from tests.git.test_repository import COMMIT
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.egress.vault import Vault

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
AGENTS = ("builtin", "claude", "codex", "gemini", "opencode")
MANIFEST = """
[egress]
mode = "deny"
allow = ["127.0.0.1:{port}"]
[security.exceptions.private-egress]
reason = "the git server of this test"
[credentials.code]
host = "127.0.0.1:{port}"
secret = "secret:code"
auth = "basic"
user = "{user}"
paths = ["/notes.git"]
tools = ["git"]
env = ["CODE_TOKEN"]
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
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"), "127.0.0.1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[GitServer]:
    with run_tls_git_server(GitServer(0, tmp_path_factory.mktemp("git")), authority.server) as server:
        server.create("notes")
        server.create("others")
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, server: GitServer
) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(
        agents=AGENTS,
        manifest=MANIFEST.format(port=server.port, user=USER),
        environment={"SSL_CERT_FILE": str(authority.ca_file)},
    )
    async with run_freehold(tmp_path_factory.mktemp("fh"), options) as freehold:
        await asyncio.to_thread(Vault(freehold.home.vault).set, "code", PASSWORD)
        yield freehold


async def test_a_push_of_an_agent_waits_for_the_owner_and_each_use_is_shown(
    freehold: RunningFreehold, server: GitServer
) -> None:
    session = await freehold.open("builtin")
    url = f"https://127.0.0.1:{server.port}"
    async with freehold.watch(session) as watch:
        make = f"git clone -q {url}/notes.git notes && cd notes && echo one > a.txt && git add -A && {COMMIT} first"
        await freehold.run_turn(watch, session, f"RUN {make}\nRUN cd notes && git push -q origin HEAD:main\nSAY Done")
        await freehold.run_turn(watch, session, f"RUN git clone -q {url}/others.git 2>&1 | tail -1; env\nSAY Done")
    assert server.read("notes", "log", "--format=%s", "main") == "first"
    approvals = await freehold.call("GET", f"/v1/sessions/{session}/events?after=0&limit=1000")
    text = str(approvals)
    assert f"Push to 127.0.0.1:{server.port}/notes.git/git-receive-pack" in text
    assert "CODE_TOKEN=" in text, "the variables were printed"
    assert PASSWORD not in text
    (credential,) = await freehold.call("GET", "/v1/credentials")
    assert (credential["name"], credential["has_secret"], credential["uses"]) == (
        "code",
        True,
        len(credential["recent"]),
    )
    assert [one["method"] for one in credential["recent"]].count("POST") == 2
    assert {one["session"] for one in credential["recent"]} == {session}
    assert not any("/others.git" in one["path"] for one in credential["recent"])


async def test_the_owner_is_shown_the_whole_address_of_a_change_and_a_lasting_yes_is_for_it_alone(
    freehold: RunningFreehold, server: GitServer
) -> None:
    session = await freehold.open("builtin")
    change = 'curl -sS -o /dev/null -X DELETE "$FREEHOLD_CREDENTIAL_CODE_URL/notes.git/x'
    async with freehold.watch(session) as watch:
        turn = (await freehold.prompt(session, f'RUN {change}?one=1"; {change}?one=1"; {change}?all=1"\nSAY Done'))[
            "turn"
        ]
        await watch.answer("once")
        await watch.answer("conversation")
        await watch.answer_all("reject", turn)
    asked = [one["data"] for one in await freehold.events(session) if one["kind"] == "approval"]
    texts = [one["parts"][0]["text"] for one in asked if one["kind"] == "credential" and one["state"] == "pending"]
    place = f"Send DELETE to https://127.0.0.1:{server.port}/notes.git/x"
    assert [text.partition("\n")[0] for text in texts] == [f"{place}?one=1", f"{place}?all=1"]
    assert all("contents of the request are not shown" in text for text in texts)


async def test_a_rejected_push_is_not_sent(freehold: RunningFreehold, server: GitServer) -> None:
    session = await freehold.open("builtin")
    before = server.read("notes", "rev-parse", "main")
    async with freehold.watch(session) as watch:
        turn = (
            await freehold.prompt(
                session, f"RUN cd notes && {COMMIT} x --allow-empty; git push -q origin HEAD:main\nSAY Done"
            )
        )["turn"]
        await watch.answer("once")
        await watch.answer("reject")
        await watch.answer_all("reject", turn)
    assert server.read("notes", "rev-parse", "main") == before


@pytest.mark.parametrize("agent", AGENTS[1:])
async def test_every_agent_clones_with_the_credential(freehold: RunningFreehold, server: GitServer, agent: str) -> None:
    session = await freehold.open(agent)
    clone = f'git clone -q https://127.0.0.1:{server.port}/notes.git of-{agent} && test -n "$CODE_TOKEN"'
    async with freehold.watch(session) as watch:
        await freehold.run_turn(
            watch,
            session,
            f"{'ESCALATE' + chr(10) if agent == 'codex' else ''}RUN {clone} && echo yes > of-{agent}/done\nSAY Done",
        )
    assert freehold.file(f"of-{agent}/done").exists()
