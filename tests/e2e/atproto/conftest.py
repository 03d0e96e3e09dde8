"""A gateway with AT Protocol sign-in, a real PDS, a real PLC directory and a real browser."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page
from tests.e2e.atproto.app_server import serve
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.localnet import PASSWORD, LocalNetwork, local_network
from tests.gateway.running_gateway import listen
from tests.identity.nameserver import nameserver
from tests.support.browser import ONLY_LOCAL, PAGE_TIMEOUT, run_sync_browser

from freehold.gateway.app import build_app
from freehold.gateway.services import Services, open_services
from freehold.home import Home, ensure_private_folder
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.atproto.flow import OAuthFlow
from freehold.identity.keys import ensure_client_key
from freehold.manifest import load_manifest

PUBLIC = "agent.atp.internal"
NAMES = [PUBLIC, "pds.atp.internal", "plc.directory", "alice.test", "bob.test"]
HANDLES = ["alice.test", "bob.test"]
# A user can do this with developer tools: the page of the PDS offers another account.
TAMPER = """
Object.defineProperty(window, '__authorizeData', {configurable: true, set(data) {
  data.loginHint = '%s'
  Object.defineProperty(window, '__authorizeData', {value: data, writable: true, configurable: true})
}})
"""


class Clock:
    """The clock of the sign-in, which a test can advance."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@dataclass(frozen=True)
class SignInSetup:
    """The gateway with one kind of client. The browser starts at `address`."""

    profile: str
    address: str
    home: Home
    services: Services
    clock: Clock
    directory: str
    network: NetworkOverrides
    net: LocalNetwork
    browser: Browser

    def new_page(self) -> Page:
        page = self.browser.new_context(base_url=self.address).new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        return page

    def begin(self, path: str = "/", *, other: str | None = None) -> Page:
        """From the sign-in page to the page of the PDS that asks for a password."""
        page = self.new_page()
        if other is not None:
            page.add_init_script(TAMPER % other)
        page.goto(path)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("input[autocomplete=current-password]")
        return page

    def decide(self, page: Page, decision: str = "Authorize") -> int:
        """Sign in at the PDS and answer it. Returns the status of the page that the browser comes back to."""
        page.fill("input[autocomplete=current-password]", PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        with page.expect_response("**/oauth/callback?*") as answered:
            page.get_by_role("button", name=decision).click()
        if answered.value.status == 303:
            page.wait_for_url(lambda url: "/oauth/" not in url)
        page.wait_for_load_state()
        return answered.value.status


@pytest.fixture(scope="module", params=["https", "http"])
def setup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInSetup]:
    root = tmp_path_factory.mktemp(request.param)
    home = Home(root=root, run=root / "run")
    ensure_private_folder(home.run)
    ensure_client_key(home)
    with ExitStack() as stack:
        make = _public_setup if request.param == "https" else _loopback_setup
        yield make(home, stack)


def _public_setup(home: Home, stack: ExitStack) -> SignInSetup:
    """https with a confidential client: a Freehold with a public address."""
    certificates = make_certificates(home.root / "certificates", NAMES)
    listener = listen()
    port: int = listener.getsockname()[1]
    net = stack.enter_context(
        local_network(home.root / "pds", HANDLES, hostname=NAMES[1], certificates=certificates, routes={PUBLIC: port})
    )
    assert net.tls_port is not None
    network = NetworkOverrides(
        routes=dict.fromkeys(NAMES[1:], ("127.0.0.1", net.tls_port)),
        authority=certificates.authority,
        nameserver=stack.enter_context(nameserver({})),
    )
    home.manifest.write_text(f'[owner]\ndid = "{net.dids["alice.test"]}"\n[gateway]\npublic_url = "https://{PUBLIC}"\n')
    services, clock = _open_services(home, network, stack)
    stack.enter_context(serve(build_app(services), listener, certificates, lifespan=True))
    rules = f"MAP {PUBLIC}:443 127.0.0.1:{port}, MAP {NAMES[1]}:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
    trusted = f"--ignore-certificate-errors-spki-list={certificates.fingerprint}"
    browser = stack.enter_context(run_sync_browser(f"--host-resolver-rules={rules}", trusted))
    directory = "https://plc.directory"
    return SignInSetup("https", f"https://{PUBLIC}", home, services, clock, directory, network, net, browser)


def _loopback_setup(home: Home, stack: ExitStack) -> SignInSetup:
    """http with a loopback client: a Freehold on a laptop."""
    listener = listen()
    port: int = listener.getsockname()[1]
    net = stack.enter_context(local_network(home.root / "pds", HANDLES))
    directory = f"http://localhost:{net.directory_port}"
    network = NetworkOverrides(
        routes={"alice.test": ("127.0.0.1", net.pds_port)},
        plain=frozenset({f"http://localhost:{net.pds_port}", directory}),
        nameserver=stack.enter_context(nameserver({})),
    )
    home.manifest.write_text(
        f'[owner]\ndid = "{net.dids["alice.test"]}"\nplc_url = "{directory}"\n[gateway]\nport = {port}\n'
    )
    services, clock = _open_services(home, network, stack)
    stack.enter_context(serve(build_app(services), listener, lifespan=True))
    browser = stack.enter_context(run_sync_browser(ONLY_LOCAL))
    address = f"http://localhost:{port}"
    return SignInSetup("http", address, home, services, clock, directory, network, net, browser)


def _open_services(home: Home, network: NetworkOverrides, stack: ExitStack) -> tuple[Services, Clock]:
    clock = Clock()
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    patch.setitem(OAuthFlow.__init__.__kwdefaults__, "clock", clock)
    return stack.enter_context(open_services(home, load_manifest(home.manifest, {}), network)), clock
