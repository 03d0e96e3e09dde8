"""An app inside the computer that the owner opens through `freehold ssh -L`, and what it gets from the owner's browser.

Cookies ignore ports. The app is opened at every name of this machine, also at those of the control center and of the
recovery page, to which any page can send the browser on.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from tests.support.browser import PAGE_TIMEOUT, run_sync_browser, sign_in_browser
from tests.support.condition import wait_until
from tests.support.ports import free_ports
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_plain_freehold

from freehold.identity.sign_ins import COOKIE_OF_0_1, RECOVERY_COOKIE, RECOVERY_NAME, SignIns

pytestmark = pytest.mark.shared_processes

NAMES = ("localhost", "127.0.0.1", "freehold.localhost", "recovery.localhost")
COOKIES = (COOKIE_OF_0_1, RECOVERY_COOKIE, "__Host-freehold-sign-in", "__Host-freehold-return", "freehold")
# The app notes what it receives, sets every cookie of ours, and asks the browser to forget what it has for this name.
APP = """
import http.server, json
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("/workspace/received.jsonl", "a") as notes:
            notes.write(json.dumps([self.path, self.headers.items()]) + "\\n")
        self.send_response(200)
        self.send_header("content-type", "text/html")
        for name in %r:
            self.send_header("set-cookie", f"{name}=planted; Path=/; Secure")
        self.send_header("clear-site-data", '"storage"')
        self.end_headers()
        self.wfile.write(b"<h1>An app inside</h1>")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", %d), App)
print("listening", flush=True)
server.serve_forever()
"""


@dataclass(frozen=True)
class Forwarded:
    """The owner's browser, signed in everywhere, and the port at which it finds the app."""

    freehold: RunningFreehold
    context: BrowserContext
    recovery: Page
    port: int

    def open_app(self, name: str) -> None:
        page = self.context.new_page()
        page.goto(f"http://{name}:{self.port}/at-{name}")
        page.get_by_role("heading", name="An app inside").wait_for()
        page.close()

    def received(self) -> dict[str, list[tuple[str, str]]]:
        """The headers that the app got, by the path of the request."""
        lines = (self.freehold.home.workspace / "received.jsonl").read_text().splitlines()
        return {path: [(name.lower(), value) for name, value in items] for path, items in map(json.loads, lines)}

    def is_signed_in(self) -> bool:
        page = self.context.new_page()
        page.goto(f"{self.freehold.pages}/settings")
        page.get_by_role("heading", name="Settings").first.wait_for()
        status: int = page.evaluate("asOwner('/v1/me').then((answer) => answer.status)")
        page.close()
        return status == 200


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFreehold]:
    options = FreeholdOptions(environment={"FREEHOLD_SSH_ENABLED": "true"})
    with run_plain_freehold(tmp_path_factory.mktemp("forwarded"), options) as running:
        wait_until(lambda: running.harness.programs()["ssh"].state == "idle")  # its first connection starts it
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with run_sync_browser() as browser:
        yield browser


@pytest.fixture
def forwarded(freehold: RunningFreehold, browser: Browser) -> Iterator[Forwarded]:
    (port,) = free_ports(1)
    app = freehold.home.workspace / "app.py"
    app.write_text(APP % (COOKIES, port))
    (freehold.home.workspace / "received.jsonl").unlink(missing_ok=True)
    forwarding = freehold.harness.start("ssh", "-L", f"{port}:localhost:{port}", "python3", "/workspace/app.py")
    try:
        assert forwarding.stdout is not None
        assert "listening" in forwarding.stdout.readline(), forwarding.communicate()
        context = sign_in_browser(browser, freehold)
        yield Forwarded(freehold, context, sign_in_to_recovery_page(context, freehold), port)
        context.close()
    finally:
        forwarding.terminate()
        try:
            forwarding.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            forwarding.kill()
            forwarding.communicate()


def sign_in_to_recovery_page(context: BrowserContext, freehold: RunningFreehold) -> Page:
    with SignIns(freehold.home.identity, owner=None) as sign_ins:
        code = sign_ins.create_link("keeper")
    page = context.new_page()
    page.set_default_timeout(PAGE_TIMEOUT)
    page.goto(freehold.keeper_url)
    page.get_by_label("One-time code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def test_an_app_behind_a_forward_gets_nothing_that_signs_in(forwarded: Forwarded) -> None:
    """At no name. What it does get is tried: from this machine, with every header that a browser would send."""
    key = _key(forwarded)
    half = next(cookie["value"] for cookie in forwarded.context.cookies() if cookie["name"] == RECOVERY_COOKIE)
    for name in NAMES:
        forwarded.open_app(name)
    received = forwarded.received()
    assert {f"/at-{name}" for name in NAMES} <= set(received)
    address = forwarded.recovery.url
    for path, headers in received.items():
        text = json.dumps(headers)
        assert key not in text, path
        assert "authorization" not in dict(headers), path
        assert address not in text, path
        jar = "; ".join(value for header, value in headers if header == "cookie")
        if path == f"/at-{RECOVERY_NAME}":
            assert half in jar, "the browser must send the cookie here: otherwise this test shows nothing"
        for cookies in (jar, f"{COOKIE_OF_0_1}={key}"):
            _try_cookies(forwarded.freehold, cookies)
    with SignIns(forwarded.freehold.home.identity, owner=None) as sign_ins:
        assert {sign_in.method for sign_in in sign_ins.list()} == {"link", "recovery"}


def _key(forwarded: Forwarded) -> str:
    page = forwarded.context.new_page()
    page.goto(f"{forwarded.freehold.pages}/sign-in")
    key: str = page.evaluate("localStorage.getItem('freehold.sign-in')")
    page.close()
    assert len(key) > 40
    return key


def _try_cookies(freehold: RunningFreehold, cookies: str) -> None:
    """Mint an admin token, run a terminal, undo: each is refused with these cookies."""
    harness = freehold.harness
    gateways = [(harness.gateway_port, name, "/v1/tokens") for name in ("freehold.localhost", "localhost", "127.0.0.1")]
    gateways += [(harness.gateway_port, "freehold.localhost", path) for path in ("/v1/terminals", "/v1/sign-out")]
    keepers = [(harness.keeper_port, "recovery.localhost", path) for path in ("/undo", "/restart", "/v1/history/undo")]
    for port, name, path in gateways + keepers:
        host = f"{name}:{port}"
        headers = {"host": host, "origin": f"http://{host}", "cookie": cookies, "sec-fetch-site": "same-origin"}
        body = {"name": "stolen", "scopes": ["admin"]} if path == "/v1/tokens" else {}
        answer = httpx2.post(f"http://127.0.0.1:{port}{path}", headers=headers, json=body, trust_env=False, timeout=60)
        assert answer.status_code == 401, f"{host}{path}: {answer.status_code}"


@pytest.mark.parametrize("name", NAMES)
def test_an_app_that_sets_every_cookie_of_ours_does_not_sign_the_owner_out(forwarded: Forwarded, name: str) -> None:
    assert forwarded.is_signed_in()
    forwarded.open_app(name)
    planted = {cookie["name"] for cookie in forwarded.context.cookies(f"http://{name}:{forwarded.port}")}
    assert COOKIE_OF_0_1 in planted, "the browser must have taken them: otherwise this test shows nothing"
    assert forwarded.is_signed_in()


def test_an_old_link_to_localhost_leads_to_the_control_center(freehold: RunningFreehold, browser: Browser) -> None:
    """With its one-time token, which is never sent to a server."""
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PAGE_TIMEOUT)
    page.goto(freehold.harness.make_sign_in_link().replace(freehold.pages, freehold.url))
    page.wait_for_function("() => localStorage.getItem('freehold.sign-in') !== null")
    assert page.url.startswith(freehold.pages)
    assert context.cookies() == []
    context.close()
