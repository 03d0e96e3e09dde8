"""The complete gateway (guard, pages, control center) with a real PDS, https and a confidential client."""

import asyncio
import socket
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.e2e.atproto.app_server import serve
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.conftest import TAMPER
from tests.e2e.atproto.localnet import PASSWORD, LocalNetwork, local_network
from tests.support.browser import PAGE_TIMEOUT, run_sync_browser

from freehold.gateway.app import build_app
from freehold.gateway.services import Services, open_services
from freehold.home import Home, ensure_private_folder
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.keys import ensure_client_key
from freehold.manifest import load_manifest
from freehold.mesh.did_proof import is_named_by
from freehold.mesh.identity import load_key
from freehold.mesh.nostr.keys import make_key

pytestmark = pytest.mark.shared_processes

NAMES = ["agent.atp.internal", "pds.atp.internal", "plc.directory"]
ADDRESS = "https://agent.atp.internal"


@dataclass(frozen=True)
class GatewaySetup:
    services: Services
    net: LocalNetwork
    browser: Browser

    def sign_in(self, *, other: str | None = None) -> Page:
        """Sign in at the page of the PDS and return."""
        page = self.browser.new_context(base_url=ADDRESS).new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        if other is not None:
            page.add_init_script(TAMPER % other)
        page.goto("/")
        page.get_by_role("button", name="Sign in").click()
        page.fill("input[autocomplete=current-password]", PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        with page.expect_response("**/oauth/callback?*"):
            page.get_by_role("button", name="Authorize").click()
        _wait_for_own_page(page)
        return page

    def name_key(self, page: Page, *, decision: str = "Authorize") -> None:
        """The owner is asked at the account, and agrees or not."""
        page.goto("/neighbours")
        page.get_by_text("Your account does not name this key.").wait_for()
        page.get_by_role("button", name="Name this key in your account").click()
        password, decide = (
            page.locator("input[autocomplete=current-password]"),
            page.get_by_role("button", name=decision),
        )
        password.or_(decide).first.wait_for()
        if password.is_visible():
            password.fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
        with page.expect_response("**/oauth/record/callback?*"):
            decide.click()
        _wait_for_own_page(page)


def _wait_for_own_page(page: Page) -> None:
    """The page of the PDS is still there, and loaded, when the answer of ours begins."""
    page.wait_for_url(lambda url: url.startswith(f"{ADDRESS}/"))


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewaySetup]:
    root = tmp_path_factory.mktemp("shipped")
    home = Home(root=root, run=root / "run")
    ensure_private_folder(home.run)
    ensure_client_key(home)
    certificates = make_certificates(root / "certificates", NAMES)
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port: int = listener.getsockname()[1]
    with local_network(
        root / "pds",
        ["alice.test", "bob.test"],
        hostname="pds.atp.internal",
        certificates=certificates,
        routes={"agent.atp.internal": port},
    ) as net:
        assert net.tls_port is not None
        network = NetworkOverrides(
            routes=dict.fromkeys(NAMES[1:], ("127.0.0.1", net.tls_port)), authority=certificates.authority
        )
        _write_manifest(home.manifest, net.dids["alice.test"])
        rules = f"MAP agent.atp.internal:443 127.0.0.1:{port}, MAP pds.atp.internal:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
        trusted = f"--ignore-certificate-errors-spki-list={certificates.fingerprint}"
        with (
            open_services(home, load_manifest(home.manifest, {}), network) as services,
            serve(build_app(services), listener, certificates, lifespan=True),
            run_sync_browser(f"--host-resolver-rules={rules}", trusted) as browser,
        ):
            yield GatewaySetup(services, net, browser)


def _write_manifest(path: Path, owner: str) -> None:
    path.write_text(
        f'[owner]\ndid = "{owner}"\nhandle = "alice.test"\n[gateway]\npublic_url = "https://agent.atp.internal"\n'
        '[mesh]\nmode = "peer"\n'
    )


def test_the_owner_signs_in_and_out(setup: GatewaySetup) -> None:
    page = setup.sign_in()
    page.get_by_role("navigation").first.wait_for()
    (sign_in,) = setup.services.sign_ins.list()
    assert sign_in.did == setup.net.dids["alice.test"]
    assert "?" not in page.url
    page.goto("/settings")
    page.locator("header.head").get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert setup.services.sign_ins.list() == []
    kinds = [event.kind for event in setup.services.timeline.read()]
    assert [kind for kind in kinds if kind.startswith("identity.")] == ["identity.signed_in", "identity.signed_out"]


def test_another_account_is_refused_and_recorded_in_the_timeline(setup: GatewaySetup) -> None:
    page = setup.sign_in(other="bob.test")
    assert "This Freehold belongs to someone else" in page.inner_text("body")
    assert page.evaluate("localStorage.length") == 0
    refused = [event for event in setup.services.timeline.read() if event.kind == "identity.sign_in_refused"]
    assert [event.data["code"] for event in refused] == ["sign-in.not-owner"]
    assert setup.net.dids["bob.test"] in str(refused[0].data["reason"])


def test_the_owner_has_the_account_name_the_key_and_a_neighbour_checks_it_there(setup: GatewaySetup) -> None:
    """The record is in the real repository, old keys are taken out of it, and no token is left."""
    did, network = setup.net.dids["alice.test"], setup.services.network

    def is_named(public: str) -> bool:
        with ThreadPoolExecutor() as threads:  # the event loop of the browser runs in this thread
            return threads.submit(asyncio.run, is_named_by(did, public, "https://plc.directory", network)).result()

    page = setup.sign_in()
    page.get_by_role("navigation").first.wait_for()
    first = load_key(setup.services.vault).public
    setup.name_key(page, decision="Deny access")
    assert "Access was denied at your PDS" in page.inner_text("body")
    assert not is_named(first)
    setup.name_key(page)
    page.get_by_text("Your account names this key.").wait_for()
    assert is_named(first)
    assert not is_named(make_key().public)
    # The key is replaced: the account names the new one and no longer the old one.
    replaced = page.evaluate(
        """async () => (await fetch("/v1/mesh/key", {method: "POST", body: "{}", headers: {
            "content-type": "application/json",
            authorization: "Sign-In " + Object.values(localStorage).join("")}})).status"""
    )
    assert replaced == 200
    second = load_key(setup.services.vault).public
    setup.name_key(page)
    assert (is_named(first), is_named(second)) == (False, True)
    with sqlite3.connect(setup.net.folder / "account.sqlite") as database:
        assert database.execute("SELECT count(*) FROM token").fetchone() == (0,)
    database.close()
    assert setup.services.timeline.read(kinds=["mesh.key_named"])[-1].data["did"] == did
