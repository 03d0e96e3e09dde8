"""Credentials and exceptions on their pages: the owner sees each use as it happens, no secret, and everything that is opened."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.credentials.private_servers import run_tls_git_server
from tests.e2e.test_accessibility import find_faults
from tests.egress.proxy_harness import Authority, make_authority
from tests.git.git_server import PASSWORD, USER, GitServer
from tests.git.test_repository import COMMIT
from tests.support.browser import DESKTOP, PHONE, OwnerPage
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.egress.vault import Vault

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
MANIFEST = """
[agents]
default = "builtin"
[agents.builtin]
model = "local"
[egress]
mode = "deny"
allow = ["127.0.0.1:{port}"]
[credentials.code]
host = "127.0.0.1:{port}"
secret = "secret:code"
auth = "basic"
user = "{user}"
paths = ["/notes.git"]
tools = ["git"]
[browser]
enabled = true
[security.exceptions.private-egress]
reason = "the git server of this test"
[security.exceptions.browser]
reason = "agents look at what they build"
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"), "127.0.0.1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[GitServer]:
    with run_tls_git_server(GitServer(0, tmp_path_factory.mktemp("git")), authority.server) as server:
        server.create("notes")
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, server: GitServer
) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(
        agents=("builtin",),
        manifest=MANIFEST.format(port=server.port, user=USER),
        environment={"SSL_CERT_FILE": str(authority.ca_file)},
    )
    async with run_freehold(tmp_path_factory.mktemp("fh"), options) as freehold:
        yield freehold


async def test_each_use_is_on_the_page_as_it_happens_and_the_secret_is_not(
    freehold: RunningFreehold, owner_page: OwnerPage, server: GitServer
) -> None:
    page = owner_page.page
    await page.goto(freehold.pages + "/credentials")
    await expect(page.get_by_role("heading", name="code", exact=True)).to_be_visible()
    await expect(page.get_by_text("Its secret is not stored yet. Run: freehold secret set code")).to_be_visible()
    await expect(page.get_by_text("You are asked before a push")).to_be_visible()
    await asyncio.to_thread(Vault(freehold.home.vault).set, "code", PASSWORD)
    session = await freehold.open("builtin")
    url = f"https://127.0.0.1:{server.port}/notes.git"
    make = f"git clone -q {url} && cd notes && echo one > a.txt && git add -A && {COMMIT} first"
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, f"RUN {make}\nRUN cd notes && git push -q origin HEAD:main\nSAY Done")
    assert server.read("notes", "log", "--format=%s", "main") == "first"
    (credential,) = await freehold.call("GET", "/v1/credentials")
    await expect(page.get_by_text(f"Used for {credential['uses']} requests since Freehold started.")).to_be_visible()
    await page.get_by_text("Last uses").press("Enter")
    uses = page.get_by_role("list", name="Last uses of code").get_by_role("listitem")
    await expect(uses).to_have_count(credential["uses"])
    await expect(uses.filter(has_text="POST /notes.git/git-receive-pack")).to_have_count(1)
    assert PASSWORD not in await page.content()
    await page.set_viewport_size(PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert await find_faults(page) == []
    await page.set_viewport_size(DESKTOP)


async def test_every_exception_in_force_is_on_the_page_with_everything_that_it_adds(
    freehold: RunningFreehold, owner_page: OwnerPage
) -> None:
    page = owner_page.page
    await page.goto(freehold.pages + "/settings/health")
    shown = page.get_by_role("list", name="Exceptions").get_by_role("listitem")
    await expect(shown).to_have_count(2)
    await expect(shown.filter(has_text="private-egress")).to_contain_text("the git server of this test")
    told = (await freehold.call("GET", "/v1/programs"))["exceptions"]
    (browser,) = [one for one in told if one["name"] == "browser"]
    assert browser["adds"]
    for words in ("agents look at what they build", browser["why"], *browser["adds"]):
        await expect(shown.filter(has_text="agents look")).to_contain_text(words)
