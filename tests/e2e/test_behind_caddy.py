"""A Freehold with a name of its own behind the real Caddy, with the file that `freehold deploy caddy` prints.

The certificates are of Caddy's own authority. A real browser signs in by a real PDS, and uses what a proxy can break.
"""

import base64
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from playwright.sync_api import Browser, Page, expect
from tests.e2e.atproto.certificates import make_certificates
from tests.e2e.atproto.localnet import PASSWORD, local_network
from tests.identity.nameserver import nameserver
from tests.support.browser import OWN_REQUESTS, PAGE_TIMEOUT, run_browser_beside, run_sync_browser, wait_for_promise
from tests.support.condition import wait_until
from tests.support.pds_gateway import network_environment
from tests.support.ports import free_ports
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, prepare_harness, run_harness

from freehold.doctor.public_site import PublicSite, examine_site
from freehold.identity.atproto.fetcher import NetworkOverrides

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed"),
]
PUBLIC, PREVIEW, PDS, DIRECTORY = "agent.atp.internal", "preview.atp.internal", "pds.atp.internal", "plc.directory"
MANIFEST = """
[owner]
did = "{did}"
handle = "alice.test"
[gateway]
public_url = "https://{public}"
preview_url = "https://{preview}"
trusted_proxies = ["127.0.0.1"]
[slots.events]
mode = "local"
"""
APP_PORT = 8124
UPLOAD = """async () => {
  const body = new Blob(Array.from({length: 200}, () => new Uint8Array(1 << 20).fill(7)))
  const answer = await asOwner('/v1/files/content?path=large', {method: 'PUT', body})
  return answer.status
}"""
FOLLOW = """async () => {
  const stream = await asOwner('/v1/slots/events/stream', {signal: AbortSignal.timeout(60_000)})
  const reader = stream.body.pipeThrough(new TextDecoderStream()).getReader()
  let heard = (await reader.read()).value
  const begin = heard
  const type = 'test.caddy.passed'
  const told = await asOwner('/v1/slots/events', {
    method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify({type})})
  while (!heard.includes(type)) {
    const {done, value} = await reader.read()
    if (done) break
    heard += value
  }
  await reader.cancel()
  return {kind: stream.headers.get('content-type'), begin, told: told.status, heard}
}"""
LISTED = """(port) => asOwner('/v1/preview/ports').then((answer) => answer.json())
  .then(({ports}) => ports.some((one) => one.port === port))"""
PROTOCOL = "() => performance.getEntriesByType('navigation')[0].nextHopProtocol"


@dataclass(frozen=True)
class Site:
    """`flags` make Chromium know the names, and Caddy's authority, whose certificate is in the file `root`."""

    freehold: RunningFreehold
    flags: tuple[str, ...]
    log: Path
    https_port: int
    root: Path


@contextmanager
def caddy(folder: Path, upstream: int, https_port: int) -> Iterator[Path]:
    """Runs with what `freehold deploy caddy` prints, on another port. Returns its folder of certificates."""
    home = folder / "written"
    home.mkdir(parents=True)
    (home / "freehold.toml").write_text(
        MANIFEST.format(did="did:plc:ewvi7nxzyoun6zhxrhs64oiz", public=PUBLIC, preview=PREVIEW)
    )
    harness = prepare_harness(folder / "printer", FreeholdOptions())
    harness.environment["FREEHOLD_GATEWAY_PORT"] = str(upstream)
    printed = harness.run("deploy", "caddy", "--home", str(home))
    assert printed.returncode == 0, printed.stderr
    options = (
        f"admin off\n\tlocal_certs\n\tskip_install_trust\n\tauto_https disable_redirects\n\thttps_port {https_port}"
    )
    (ask,) = free_ports(1)  # several tests may run on this machine
    (folder / "Caddyfile").write_text(printed.stdout.replace("admin off", options, 1).replace(":9180", f":{ask}"))
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    with (folder / "caddy.log").open("wb") as log:
        process = subprocess.Popen(
            ["caddy", "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        certificates = folder / "caddy/pki/authorities/local"
        wait_until(lambda: (certificates / "intermediate.crt").exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "caddy.log").read_text()
        yield certificates
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("caddy")
    https_port, upstream = free_ports(2)
    with ExitStack() as stack:
        found = stack.enter_context(caddy(folder / "caddy", upstream, https_port))
        certificates = make_certificates(folder / "certificates", [PDS, DIRECTORY])
        with certificates.authority.open("a") as trusted:  # the PDS reads the description of the client there
            trusted.write((found / "root.crt").read_text())
        net = stack.enter_context(
            local_network(
                folder / "pds", ["alice.test"], hostname=PDS, certificates=certificates, routes={PUBLIC: https_port}
            )
        )
        assert net.tls_port is not None
        network = NetworkOverrides(
            routes=dict.fromkeys((PDS, DIRECTORY), ("127.0.0.1", net.tls_port)),
            authority=certificates.authority,
            nameserver=stack.enter_context(nameserver({})),
        )
        manifest = MANIFEST.format(did=net.dids["alice.test"], public=PUBLIC, preview=PREVIEW)
        environment = {**network_environment(network), "FREEHOLD_GATEWAY_PORT": str(upstream)}
        harness = prepare_harness(folder / "freehold", FreeholdOptions(manifest=manifest, environment=environment))
        freehold = stack.enter_context(run_harness(harness, "tests.support.pds_keeper"))
        here = f"127.0.0.1:{https_port}"
        rules = f"MAP {PUBLIC}:443 {here}, MAP *.{PREVIEW}:443 {here}, MAP {PDS}:443 127.0.0.1:{net.tls_port}, MAP * ~NOTFOUND"
        keys = f"{_hash_key(found / 'intermediate.crt')},{certificates.fingerprint}"
        flags = (f"--host-resolver-rules={rules}", f"--ignore-certificate-errors-spki-list={keys}")
        yield Site(freehold, flags, folder / "caddy/caddy.log", https_port, found / "root.crt")


def _hash_key(certificate: Path) -> str:
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    return base64.b64encode(
        hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    ).decode()


@pytest.fixture(scope="module")
def browser(site: Site) -> Iterator[Browser]:
    with run_sync_browser(*site.flags) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    """The owner, who has signed in by the PDS."""
    context = browser.new_context(base_url=f"https://{PUBLIC}", service_workers="block")
    context.add_init_script(OWN_REQUESTS)
    context.set_default_timeout(PAGE_TIMEOUT)
    page = context.new_page()
    page.goto("/")
    page.get_by_role("button", name="Sign in").click()
    page.locator("input[autocomplete=current-password]").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Authorize").click()
    page.locator(".app-connection[data-state=live]").wait_for()  # its WebSocket
    return page


def test_the_owner_signs_in_and_is_connected_over_http_2(page: Page) -> None:
    assert page.evaluate("asOwner('/v1/me').then((answer) => answer.json())")["handle"] == "alice.test"
    page.goto("/settings")
    assert page.evaluate(PROTOCOL) == "h2"


def test_a_terminal_works_through_caddy(page: Page) -> None:
    page.goto("/terminal")
    page.get_by_role("button", name="Open a terminal").click()
    screen = page.locator(".terminal-screen:not([hidden]) .xterm-rows")
    screen.get_by_text("$").first.wait_for()
    page.locator(".terminal-screen:not([hidden]) textarea").focus()
    page.keyboard.type("echo in-$((40+2))\n")
    expect(screen).to_contain_text("in-42")


def test_a_large_file_of_the_browser_arrives(page: Page, site: Site) -> None:
    page.goto("/files")
    assert page.evaluate(UPLOAD) == 200
    large = site.freehold.home.workspace / "large"
    assert large.stat().st_size == 200 << 20
    large.unlink()


def test_a_stream_of_events_passes_caddy_as_it_comes(page: Page) -> None:
    """The first message before there is an event, and then the event, while the answer goes on."""
    page.goto("/settings")
    found = page.evaluate(FOLLOW)
    assert found["kind"].startswith("text/event-stream")
    assert found["begin"].startswith("event: position")
    assert found["told"] == 201
    assert '"type":"test.caddy.passed"' in found["heard"]


def test_a_preview_gets_a_certificate_and_is_shown(page: Page, site: Site) -> None:
    (site.freehold.home.workspace / "index.html").write_text("<!doctype html><h1>Hello</h1>")
    serve = f"setsid python3 -m http.server {APP_PORT} >/dev/null 2>&1 &"
    assert site.freehold.harness.run("run", "--", "sh", "-c", serve).returncode == 0
    page.goto("/settings")
    wait_for_promise(page, LISTED, APP_PORT)
    page.goto(f"/preview?port={APP_PORT}")
    frame = page.frame_locator(f"iframe[title='Preview of port {APP_PORT}']")
    expect(frame.get_by_role("heading", name="Hello")).to_be_visible()
    (inside,) = [one for one in page.frames if one != page.main_frame]
    assert inside.evaluate("location.hostname") == f"{APP_PORT}.{PREVIEW}"


def test_the_control_center_is_served_over_http_3(site: Site, browser: Browser) -> None:
    flags = (*site.flags, "--enable-quic", f"--origin-to-force-quic-on={PUBLIC}:443")
    with run_browser_beside(browser, *flags) as other:
        page = other.new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        page.goto(f"https://{PUBLIC}/")
        page.get_by_role("button", name="Sign in").wait_for()
        assert page.evaluate(PROTOCOL) == "h3"


def test_a_look_from_outside_finds_nothing_wrong(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """`freehold doctor --public`. Certificates of Caddy's own authority end after hours, and it says so."""
    monkeypatch.setenv("SSL_CERT_FILE", str(site.root))
    (closed,) = free_ports(1)
    seen = PublicSite(PUBLIC, site.https_port, closed, "127.0.0.1", closed_ports={closed: "nothing"})
    found = {finding.name: finding for finding in examine_site(seen)}
    assert {"headers", "without the owner", "socket", "another name", f"port {closed}"} < found.keys()
    assert [finding for finding in found.values() if not finding.is_right] == [found["certificate"]]
    assert found["certificate"].found.startswith("valid for 0 days, TLSv1.3")
