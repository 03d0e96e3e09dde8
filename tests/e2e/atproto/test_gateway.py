"""The gateway as it is shipped (guard, pages, web client) with a real PDS, by https and with a confidential client."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.conftest import FLAGS, TAMPER
from tests.e2e.atproto.localnet import PASSWORD, LocalNetwork, local_network
from tests.e2e.atproto.serving import serve

from freehold.gateway.app import build_app
from freehold.gateway.house import House, open_house
from freehold.home import Home, ensure_private_folder
from freehold.identity.atproto.fetch import Network
from freehold.identity.keys import ensure_keys
from freehold.identity.sessions import COOKIE
from freehold.manifest import load_manifest

pytestmark = pytest.mark.shared_processes

NAMES = ["agent.atp.internal", "pds.atp.internal", "plc.directory"]


@dataclass(frozen=True)
class Shipped:
    house: House
    net: LocalNetwork
    browser: Browser

    def visit(self, *, other: str | None = None) -> Page:
        """From the front door through the page of the PDS and back."""
        page = self.browser.new_context(base_url="https://agent.atp.internal").new_page()
        page.set_default_timeout(15_000)
        if other is not None:
            page.add_init_script(TAMPER % other)
        page.goto("/")
        page.get_by_role("button", name="Sign in").click()
        page.fill("input[autocomplete=current-password]", PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        with page.expect_response("**/oauth/callback?*"):
            page.get_by_role("button", name="Authorize").click()
        page.wait_for_load_state()
        return page


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shipped]:
    root = tmp_path_factory.mktemp("shipped")
    home = Home(root=root, run=root / "run")
    ensure_private_folder(home.run)
    ensure_keys(home)
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
        network = Network(
            routes=dict.fromkeys(NAMES[1:], ("127.0.0.1", net.tls_port)), authority=certificates.authority
        )
        _write_manifest(home.manifest, net.dids["alice.test"])
        rules = f"MAP agent.atp.internal:443 127.0.0.1:{port}, MAP pds.atp.internal:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
        trusted = f"--ignore-certificate-errors-spki-list={certificates.fingerprint}"
        with (
            open_house(home, load_manifest(home.manifest, {}), network) as house,
            serve(build_app(house), listener, certificates, lifespan=True),
            sync_playwright() as playwright,
        ):
            flags = [*FLAGS, f"--host-resolver-rules={rules}", trusted]
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
            yield Shipped(house, net, browser)
            browser.close()


def _write_manifest(path: Path, owner: str) -> None:
    path.write_text(
        f'[owner]\ndid = "{owner}"\nhandle = "alice.test"\n[gateway]\npublic_url = "https://agent.atp.internal"\n'
    )


def test_the_owner_comes_in_and_goes_out(shipped: Shipped) -> None:
    page = shipped.visit()
    page.get_by_role("navigation").first.wait_for()
    (session,) = shipped.house.sessions.list()
    assert session.did == shipped.net.dids["alice.test"]
    assert "?" not in page.url
    page.goto("/settings")
    page.locator("header.head").get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert shipped.house.sessions.list() == []
    kinds = [event.kind for event in shipped.house.timeline.read()]
    assert [kind for kind in kinds if kind.startswith("identity.")] == ["identity.signed_in", "identity.signed_out"]


def test_another_account_of_the_same_pds_is_refused_and_the_owner_sees_it(shipped: Shipped) -> None:
    page = shipped.visit(other="bob.test")
    assert "This is not your house" in page.inner_text("body")
    assert COOKIE not in {cookie["name"] for cookie in page.context.cookies()}
    refused = [event for event in shipped.house.timeline.read() if event.kind == "identity.sign_in_refused"]
    assert [event.data["code"] for event in refused] == ["sign-in.not-owner"]
    assert shipped.net.dids["bob.test"] in str(refused[0].data["reason"])
