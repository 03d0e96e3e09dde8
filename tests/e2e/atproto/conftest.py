"""A confidential and a loopback client, each with a real PDS, a real PLC directory and a real browser."""

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.e2e.atproto.app_server import serve
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.localnet import PASSWORD, LocalNetwork, local_network
from tests.e2e.atproto.sign_in_app import SignInApp
from tests.identity.nameserver import nameserver
from tests.support.browser import PAGE_TIMEOUT, run_sync_browser

from freehold.home import Home
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.atproto.oauth_client import loopback_client, public_client
from freehold.identity.keys import ensure_client_key, read_client_key

# What a user can do with developer tools: the page of the PDS offers another account.
TAMPER = """
Object.defineProperty(window, '__authorizeData', {configurable: true, set(data) {
  data.loginHint = '%s'
  Object.defineProperty(window, '__authorizeData', {value: data, writable: true, configurable: true})
}})
"""


@dataclass(frozen=True)
class SignInSetup:
    """One kind of client. The browser starts at `address`."""

    profile: str
    address: str
    app: SignInApp
    database: Path
    network: NetworkOverrides
    net: LocalNetwork
    browser: Browser

    def new_page(self) -> Page:
        page = self.browser.new_context(base_url=self.address).new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        return page

    def begin(self, page: Page) -> None:
        """From the sign-in page to the page of the PDS that asks for a password."""
        page.goto("/")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("input[autocomplete=current-password]")

    def sign_in(self, page: Page, *, decision: str = "Authorize", other: str | None = None) -> None:
        """Sign in at the page of the PDS and return to our page, with or without success."""
        if other is not None:
            page.add_init_script(TAMPER % other)
        self.begin(page)
        self.decide(page, decision)

    def decide(self, page: Page, decision: str = "Authorize") -> None:
        page.fill("input[autocomplete=current-password]", PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name=decision).click()
        page.wait_for_selector("#message")


def _listen() -> tuple[socket.socket, int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    return listener, listener.getsockname()[1]


@pytest.fixture(scope="module", params=["https", "http"])
def setup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInSetup]:
    root = tmp_path_factory.mktemp(request.param)
    make = _public_setup if request.param == "https" else _loopback_setup
    yield from make(root)


def _public_setup(root: Path) -> Iterator[SignInSetup]:
    """https with a confidential client: a Freehold with a public address."""
    home = Home(root=root, run=root / "run")
    ensure_client_key(home)
    names = ["agent.atp.internal", "pds.atp.internal", "plc.directory", "alice.test", "bob.test"]
    certificates = make_certificates(root / "certificates", names)
    listener, port = _listen()
    with (
        nameserver({}) as dns,
        local_network(
            root / "pds",
            ["alice.test", "bob.test"],
            hostname="pds.atp.internal",
            certificates=certificates,
            routes={"agent.atp.internal": port},
        ) as net,
    ):
        assert net.tls_port is not None
        network = NetworkOverrides(
            routes=dict.fromkeys(names[1:], ("127.0.0.1", net.tls_port)),
            authority=certificates.authority,
            nameserver=dns,
        )
        app = SignInApp(
            home.identity,
            owner=net.dids["alice.test"],
            client=public_client("https://agent.atp.internal", read_client_key(home)),
            plc_url="https://plc.directory",
            network=network,
        )
        rules = f"MAP agent.atp.internal:443 127.0.0.1:{port}, MAP pds.atp.internal:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
        flags = (f"--host-resolver-rules={rules}", f"--ignore-certificate-errors-spki-list={certificates.fingerprint}")
        with closing(app), serve(app.app, listener, certificates), run_sync_browser(*flags) as browser:
            yield SignInSetup("https", "https://agent.atp.internal", app, home.identity, network, net, browser)


def _loopback_setup(root: Path) -> Iterator[SignInSetup]:
    """http with a loopback client: a Freehold on a laptop."""
    home = Home(root=root, run=root / "run")
    listener, port = _listen()
    with nameserver({}) as dns, local_network(root / "pds", ["alice.test", "bob.test"]) as net:
        directory = f"http://localhost:{net.directory_port}"
        network = NetworkOverrides(
            routes={"alice.test": ("127.0.0.1", net.pds_port)},
            plain=frozenset({f"http://localhost:{net.pds_port}", directory}),
            nameserver=dns,
        )
        app = SignInApp(
            home.identity,
            owner=net.dids["alice.test"],
            client=loopback_client(port),
            plc_url=directory,
            network=network,
        )
        with closing(app), serve(app.app, listener), run_sync_browser() as browser:
            yield SignInSetup("http", f"http://localhost:{port}", app, home.identity, network, net, browser)
