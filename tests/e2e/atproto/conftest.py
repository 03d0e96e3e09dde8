"""Both ways a Freehold meets an authorization server, each with a real PDS, a real PLC directory and a real browser."""

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.door import Door
from tests.e2e.atproto.localnet import PASSWORD, LocalNetwork, local_network
from tests.e2e.atproto.serving import serve
from tests.identity.nameserver import nameserver

from freehold.home import Home
from freehold.identity.atproto.client import loopback_client, public_client
from freehold.identity.atproto.fetch import Network
from freehold.identity.keys import ensure_keys, read_client_key

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# A user who has opened the developer tools: the page of the PDS believes that somebody else was asked for.
TAMPER = """
Object.defineProperty(window, '__authorizeData', {configurable: true, set(data) {
  data.loginHint = '%s'
  Object.defineProperty(window, '__authorizeData', {value: data, writable: true, configurable: true})
}})
"""


@dataclass(frozen=True)
class House:
    """One profile: `address` is where the browser goes."""

    profile: str
    address: str
    door: Door
    database: Path
    network: Network
    net: LocalNetwork
    browser: Browser

    def new_page(self) -> Page:
        page = self.browser.new_context(base_url=self.address).new_page()
        page.set_default_timeout(15_000)
        return page

    def begin(self, page: Page) -> None:
        """From the front door to the page of the PDS that asks for a password."""
        page.goto("/")
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("input[autocomplete=current-password]")

    def sign_in(self, page: Page, *, decision: str = "Authorize", other: str | None = None) -> None:
        """Through the page of the PDS and back to a page of ours, whatever it says."""
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
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root = tmp_path_factory.mktemp(request.param)
    make = _public_house if request.param == "https" else _loopback_house
    yield from make(root)


def _public_house(root: Path) -> Iterator[House]:
    """https, by real names, confidential client: the way of every Freehold that is reachable from elsewhere."""
    home = Home(root=root, run=root / "run")
    ensure_keys(home)
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
        network = Network(
            routes=dict.fromkeys(names[1:], ("127.0.0.1", net.tls_port)),
            authority=certificates.authority,
            nameserver=dns,
        )
        door = Door(
            home.identity,
            owner=net.dids["alice.test"],
            client=public_client("https://agent.atp.internal", read_client_key(home)),
            plc_url="https://plc.directory",
            network=network,
        )
        rules = f"MAP agent.atp.internal:443 127.0.0.1:{port}, MAP pds.atp.internal:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
        flags = [
            *FLAGS,
            f"--host-resolver-rules={rules}",
            f"--ignore-certificate-errors-spki-list={certificates.fingerprint}",
        ]
        with closing(door), serve(door.app, listener, certificates), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
            yield House("https", "https://agent.atp.internal", door, home.identity, network, net, browser)
            browser.close()


def _loopback_house(root: Path) -> Iterator[House]:
    """http on this machine, public client: the way of a laptop."""
    home = Home(root=root, run=root / "run")
    listener, port = _listen()
    with nameserver({}) as dns, local_network(root / "pds", ["alice.test", "bob.test"]) as net:
        directory = f"http://localhost:{net.directory_port}"
        network = Network(
            routes={"alice.test": ("127.0.0.1", net.pds_port)},
            plain=frozenset({f"http://localhost:{net.pds_port}", directory}),
            nameserver=dns,
        )
        door = Door(
            home.identity,
            owner=net.dids["alice.test"],
            client=loopback_client(port),
            plc_url=directory,
            network=network,
        )
        flags = [*FLAGS, "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"]
        with closing(door), serve(door.app, listener), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
            yield House("http", f"http://localhost:{port}", door, home.identity, network, net, browser)
            browser.close()
