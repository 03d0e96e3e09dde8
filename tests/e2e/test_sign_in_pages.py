"""AT Protocol sign-in through the gateway's own routes and pages, by both profiles: https with a confidential client, and
http on this machine with a public one. A real PDS, a real directory, a real browser."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Response
from tests.e2e.atproto.app_server import serve
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.conftest import TAMPER
from tests.e2e.atproto.localnet import PASSWORD, LocalNetwork, local_network
from tests.gateway.running_gateway import listen
from tests.identity.nameserver import nameserver
from tests.support.browser import OWN_REQUESTS, PAGE_TIMEOUT, run_sync_browser

from freehold.gateway.app import build_app
from freehold.gateway.services import Services, open_services
from freehold.home import Home, ensure_private_folder
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.keys import ensure_client_key
from freehold.manifest import load_manifest

pytestmark = pytest.mark.shared_processes

PUBLIC = "agent.atp.internal"
NAMES = [PUBLIC, "pds.atp.internal", "plc.directory"]
HANDLES = ["alice.test", "bob.test"]


@dataclass(frozen=True)
class Door:
    """One profile of the gateway. `address` is where the browser begins."""

    address: str
    house: Services
    net: LocalNetwork
    browser: Browser

    def begin(self, way: str = "/", *, other: str | None = None) -> Page:
        """From the front door to the page of the PDS that asks for a password."""
        context = self.browser.new_context(base_url=self.address)
        context.add_init_script(OWN_REQUESTS)
        page = context.new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        if other is not None:
            page.add_init_script(TAMPER % other)
        page.goto(way)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("input[autocomplete=current-password]")
        return page

    def decide(self, page: Page, decision: str) -> int:
        """The status of our own page that the browser comes back to."""
        page.fill("input[autocomplete=current-password]", PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        with page.expect_response(_is_callback) as answered:
            page.get_by_role("button", name=decision).click()
        # The page of the PDS is still there when the answer begins.
        page.wait_for_url(lambda url: url.startswith(f"{self.house.base_url}/"))
        if answered.value.status == 303:
            page.wait_for_function("() => localStorage.getItem('freehold.sign-in') !== null")
            page.wait_for_url(lambda url: "/sign-in" not in url)
        page.wait_for_load_state()
        return answered.value.status


def _is_callback(answer: Response) -> bool:
    """The answer at the control center's own name: a server that asks for 127.0.0.1 is redirected to it."""
    return "/oauth/callback?" in answer.url and answer.status != 307


@pytest.fixture(scope="module", params=["https", "http"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    root = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        make = _public_door if request.param == "https" else _loopback_door
        yield make(root, stack)


def _home(root: Path) -> Home:
    home = Home(root=root, run=root / "run")
    ensure_private_folder(home.run)
    ensure_client_key(home)
    return home


def _public_door(root: Path, stack: ExitStack) -> Door:
    home = _home(root)
    certificates = make_certificates(root / "certificates", NAMES)
    listener = listen()
    port: int = listener.getsockname()[1]
    net = stack.enter_context(
        local_network(
            root / "pds", HANDLES, hostname="pds.atp.internal", certificates=certificates, routes={PUBLIC: port}
        )
    )
    assert net.tls_port is not None
    network = NetworkOverrides(
        routes=dict.fromkeys(NAMES[1:], ("127.0.0.1", net.tls_port)),
        authority=certificates.authority,
        nameserver=stack.enter_context(nameserver({})),
    )
    home.manifest.write_text(f'[owner]\ndid = "{net.dids["alice.test"]}"\n[gateway]\npublic_url = "https://{PUBLIC}"\n')
    house = stack.enter_context(open_services(home, load_manifest(home.manifest, {}), network))
    stack.enter_context(serve(build_app(house), listener, certificates, lifespan=True))
    rules = f"MAP {PUBLIC}:443 127.0.0.1:{port}, MAP pds.atp.internal:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
    flags = [f"--host-resolver-rules={rules}", f"--ignore-certificate-errors-spki-list={certificates.fingerprint}"]
    return Door(f"https://{PUBLIC}", house, net, stack.enter_context(run_sync_browser(*flags)))


def _loopback_door(root: Path, stack: ExitStack) -> Door:
    home = _home(root)
    listener = listen()
    port: int = listener.getsockname()[1]
    net = stack.enter_context(local_network(root / "pds", HANDLES))
    directory = f"http://localhost:{net.directory_port}"
    network = NetworkOverrides(
        routes={"alice.test": ("127.0.0.1", net.pds_port)},
        plain=frozenset({f"http://localhost:{net.pds_port}", directory}),
        nameserver=stack.enter_context(nameserver({})),
    )
    home.manifest.write_text(
        f'[owner]\ndid = "{net.dids["alice.test"]}"\nplc_url = "{directory}"\n[gateway]\nport = {port}\n'
    )
    house = stack.enter_context(open_services(home, load_manifest(home.manifest, {}), network))
    stack.enter_context(serve(build_app(house), listener, lifespan=True))
    return Door(f"http://localhost:{port}", house, net, stack.enter_context(run_sync_browser()))


def _is_signed_in(page: Page) -> bool:
    return bool(page.evaluate("asOwner('/v1/me').then((answer) => answer.ok)"))


def test_the_owner_is_let_in(door: Door) -> None:
    """Begun at the name localhost, answered at 127.0.0.1 where that is what the protocol asks for: both lead to ours."""
    page = door.begin()
    assert door.decide(page, "Authorize") == 303
    assert _is_signed_in(page)
    assert "?" not in page.url
    assert page.url.startswith(door.house.base_url)
    assert page.context.cookies(page.url) == [], "nothing that signs in is in a cookie"
    (session,) = door.house.sign_ins.list()
    assert (session.did, session.method) == (door.net.dids["alice.test"], "atproto")
    kinds = [event.kind for event in door.house.timeline.read()]
    assert "identity.signed_in" in kinds


def test_one_who_came_for_a_page_is_led_there(door: Door) -> None:
    """Even over a no in between: the code that a program waits with is still in its field."""
    page = door.begin("/device#BCDF-GHJK")
    assert door.decide(page, "Deny access") in (400, 401, 403)
    page.get_by_role("link", name="Back to the sign-in page").click()
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("input[autocomplete=current-password]")
    assert door.decide(page, "Authorize") == 303
    assert page.get_by_label("Code").input_value() == "BCDF-GHJK"
    assert "freehold-return" not in " ".join(cookie["name"] for cookie in page.context.cookies())


def test_another_account_gets_a_page_that_says_so(door: Door) -> None:
    page = door.begin(other="bob.test")
    assert door.decide(page, "Authorize") == 403
    assert page.get_by_role("heading").inner_text() == "This Freehold belongs to someone else"
    assert door.net.dids["alice.test"] not in page.content()
    assert not _is_signed_in(page)
    refused = [event for event in door.house.timeline.read() if event.kind == "identity.sign_in_refused"]
    assert door.net.dids["bob.test"] in str(refused[-1].data)


def test_denied_consent_is_explained_and_leads_back(door: Door) -> None:
    page = door.begin()
    assert door.decide(page, "Deny access") in (400, 401, 403)
    page.get_by_role("link", name="Back to the sign-in page").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert not _is_signed_in(page)


def test_a_request_that_expired_is_explained(door: Door) -> None:
    page = door.begin()
    door.net.advance(600)
    try:
        with page.expect_response(_is_callback) as answered:
            page.reload()
    finally:
        door.net.advance(-600)
    assert 400 <= answered.value.status < 500
    page.get_by_role("link", name="Back to the sign-in page").wait_for()
    assert not _is_signed_in(page)
