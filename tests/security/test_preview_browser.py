"""A page that the agent wrote, in its owner's own browser, tries everything against the control center.

On loopback the two are different sites, so that the browser itself keeps cookies apart. With public addresses below one
domain they are one site: the browser sends the owner's cookie along with whatever a preview asks, and only we refuse.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.async_api import BrowserContext, Frame, Page
from tests.gateway.preview_harness import OTHER_PORT, PORT, PreviewHarness, running_previews
from tests.support.browser import OWN_REQUESTS, PAGE_TIMEOUT, run_browser

from freehold.identity.sign_ins import SignIn

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

AGENT = "agent.example.test"
PREVIEW = "preview.example.test"
NAMES = (
    f"--host-resolver-rules=MAP {AGENT} 127.0.0.1, MAP *.{PREVIEW} 127.0.0.1, MAP * ~NOTFOUND, "
    "EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1"
)
OPEN = """async (port) => {
  const made = await asOwner(`/v1/preview/${port}/open`, {
    method: 'POST', headers: {'content-type': 'application/json'}, body: '{"path": "/page"}',
  })
  return (await made.json()).address
}"""
FRAME = """(address) => new Promise((done) => {
  const frame = document.createElement('iframe')
  frame.name = 'preview'
  frame.onload = () => done()
  frame.src = address
  document.body.append(frame)
})"""
ECHO = """() => new Promise((done) => {
  const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/socket`, 'vite-hmr')
  let first = true
  socket.onmessage = (event) => {
    if (first) { first = false; socket.send('hello') } else done([socket.protocol, event.data])
  }
  socket.onclose = () => done('closed')
})"""
CALL = """async (home) => {
  const tried = {
    read: ['/v1/me', {}],
    blind: ['/v1/timeline', {mode: 'no-cors'}],
    terminal: ['/v1/terminals', {method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'}, body: '{}'}],
    json: ['/v1/terminals', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'}],
    open: ['/v1/preview/8000/open', {method: 'POST', mode: 'no-cors'}],
    stop: ['/v1/stop', {method: 'POST', mode: 'no-cors', keepalive: true, body: '{}'}],
    out: ['/v1/me', {method: 'DELETE'}],
  }
  const seen = {}
  for (const [name, [path, how]] of Object.entries(tried))
    seen[name] = await fetch(home + path, {credentials: 'include', ...how})
      .then((answer) => answer.type, () => 'failed')
  navigator.sendBeacon(home + '/v1/terminals', '{}')
  return seen
}"""
SOCKET = """(address) => new Promise((done) => {
  const socket = new WebSocket(address)
  socket.onopen = () => done('open')
  socket.onclose = () => done('closed')
})"""
POST_FORM = """(address) => new Promise((done) => {
  const frame = Object.assign(document.createElement('iframe'), {name: 'target'})
  document.body.append(frame)
  const form = Object.assign(document.createElement('form'), {method: 'POST', action: address, target: 'target'})
  frame.onload = () => done()
  document.body.append(form)
  form.submit()
})"""
EMBED = """(address) => new Promise((done) => {
  const frame = document.createElement('iframe')
  frame.onload = () => {
    try { done(frame.contentDocument === null ? 'closed' : frame.contentDocument.body.innerText) }
    catch { done('closed') }
  }
  frame.src = address
  document.body.append(frame)
})"""
TOSS = """(name) => {
  const above = location.hostname.split('.').map((_, at, all) => `; domain=${all.slice(at).join('.')}`)
  for (const domain of ['', ...above])
    for (const more of ['', '; secure', '; secure; partitioned'])
      document.cookie = `${name}=tossed; path=/${domain}${more}`
  return document.cookie
}"""
WORKER = """(address) => navigator.serviceWorker.register(address).then(() => 'registered', (error) => error.name)"""
TOUCH = """() => {
  const tried = {}
  for (const [name, reach] of Object.entries({
    document: () => window.parent.document.title,
    storage: () => window.parent.localStorage.length,
    name: () => window.parent.name,
    frames: () => window.parent.fetch('/v1/me'),
  }))
    try { tried[name] = String(reach()) } catch (error) { tried[name] = error.name }
  window.parent.postMessage({type: 'event', topic: 'approvals', answer: 'always'}, '*')
  return tried
}"""


@dataclass(frozen=True)
class Owner:
    """A browser in which the owner has signed in at `homes`, the control center's addresses."""

    harness: PreviewHarness
    context: BrowserContext
    sign_in: SignIn
    homes: tuple[str, ...]
    previews: str

    @property
    def home(self) -> str:
        return self.homes[0]

    def origin(self, port: int = PORT) -> str:
        return self.previews.format(port)

    async def control(self, home: str | None = None) -> Page:
        """A tab of the control center."""
        page = await self.context.new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        await page.goto(f"{home or self.home}/sign-in")
        return page

    async def framed(self, page: Page, port: int = PORT) -> Frame:
        await page.evaluate(FRAME, await page.evaluate(OPEN, port))
        frame = page.frame("preview")
        assert frame is not None
        await frame.get_by_role("heading", name="An app").wait_for()
        return frame

    async def tab(self, port: int = PORT) -> Page:
        control = await self.control()
        page = await self.context.new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        await page.goto(await control.evaluate(OPEN, port))
        await page.get_by_role("heading", name="An app").wait_for()
        await control.close()
        return page

    async def still_signed_in(self) -> bool:
        page = await self.control()
        status: int = await page.evaluate("() => asOwner('/v1/me').then((answer) => answer.status)")
        await page.close()
        return status == 200


@asynccontextmanager
async def on_loopback(folder: Path) -> AsyncIterator[tuple[PreviewHarness, tuple[str, ...], str]]:
    async with running_previews(folder) as harness:
        port = harness.gateway.port
        homes = (harness.gateway.origin,)
        yield harness, homes, f"http://{{}}.preview.localhost:{port}"


@asynccontextmanager
async def below_one_domain(folder: Path) -> AsyncIterator[tuple[PreviewHarness, tuple[str, ...], str]]:
    """Behind a proxy that ends TLS."""
    inner: list[int] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except (OSError, ssl.SSLError):
            pass  # one side has gone; the other is told below
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", inner[0])
        await asyncio.gather(copy(reader, back), copy(there, writer))

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self_signed(folder))
    port = proxy.sockets[0].getsockname()[1]
    manifest = f'public_url = "https://{AGENT}:{port}"\npreview_url = "https://{PREVIEW}:{port}"\n'
    async with proxy, running_previews(folder / "home", manifest) as harness:
        inner.append(harness.gateway.port)
        yield harness, (f"https://{AGENT}:{port}",), f"https://{{}}.{PREVIEW}:{port}"


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, AGENT)])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(AGENT), x509.DNSName(f"*.{PREVIEW}")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    path = folder / "proxy.pem"
    kept = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(kept + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[on_loopback, below_one_domain])
async def owner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Owner]:
    async with (
        request.param(tmp_path_factory.mktemp("preview")) as (harness, homes, previews),
        run_browser(NAMES) as browser,
    ):
        context = await browser.new_context(ignore_https_errors=True)
        sign_in, secret = harness.gateway.services.sign_ins.create(None, label="t", address="127.0.0.1", method="link")
        await context.add_init_script(OWN_REQUESTS)
        page = await context.new_page()
        for home in homes:
            await page.goto(f"{home}/sign-in")
            await page.evaluate("(key) => localStorage.setItem('freehold.sign-in', key)", secret)
        await page.close()
        yield Owner(harness, context, sign_in, homes, previews)


async def test_a_preview_works_in_the_control_center_s_frame(owner: Owner) -> None:
    """At each of its addresses, with its socket, and again after a reload: the pass is there, and ours alone."""
    for home in owner.homes:
        page = await owner.control(home)
        frame = await owner.framed(page)
        assert await frame.evaluate(ECHO) == ["vite-hmr", "hello"]
        assert await frame.evaluate("document.cookie") == ""
        await frame.evaluate("location.reload()")
        await frame.wait_for_load_state()
        await frame.get_by_role("heading", name="An app").wait_for()
        await page.close()


async def test_a_preview_works_in_a_tab_that_knows_nothing_of_who_opened_it(owner: Owner) -> None:
    control = await owner.control()
    async with owner.context.expect_page() as opening:
        await control.evaluate(
            "(address) => { window.opened = window.open(address) }", await control.evaluate(OPEN, PORT)
        )
    page = await opening.value
    await page.get_by_role("heading", name="An app").wait_for()
    assert page.url == f"{owner.origin()}/page"
    assert await page.evaluate("window.opener === null")
    assert await page.evaluate("document.referrer") == ""
    await page.close()
    await control.close()


async def test_the_control_center_s_api_answers_no_preview(owner: Owner) -> None:
    """Neither in a frame nor in a tab, by whatever way a page can call; and nothing has happened afterwards."""
    home = owner.home
    control = await owner.control()
    statuses: list[int] = []
    owner.context.on("response", lambda answer: statuses.append(answer.status) if "/v1/" in answer.url else None)
    before = await owner.harness.computer.terminals()
    frame = await owner.framed(control)
    tab = await owner.tab()
    statuses.clear()
    for place in (frame, tab):
        seen = await place.evaluate(CALL, home)
        assert seen["read"] == seen["json"] == seen["out"] == "failed"
        assert await place.evaluate(SOCKET, f"{home.replace('http', 'ws')}/v1/socket") == "closed"
        await place.evaluate(POST_FORM, f"{home}/v1/terminals")
    assert statuses
    assert all(status in (401, 403) for status in statuses), statuses
    assert await owner.harness.computer.terminals() == before
    assert await owner.still_signed_in()
    await tab.close()
    await control.close()


async def test_the_control_center_is_framed_by_no_preview(owner: Owner) -> None:
    tab = await owner.tab()
    for path in ("/", "/sign-in", "/v1/me"):
        assert await tab.evaluate(EMBED, f"{owner.home}{path}") == "closed"
    framed = [frame.url for frame in tab.frames if frame.url.startswith(owner.home)]
    texts = [await frame.content() for frame in tab.frames if frame is not tab.main_frame]
    assert not any("Freehold" in text for text in texts), framed
    await tab.close()


async def test_a_preview_s_cookies_neither_reach_nor_replace_ours(owner: Owner) -> None:
    """For every domain a page could name. Its own pass is out of its reach, too."""
    tab = await owner.tab()
    for name in ("__Host-freehold", "__Host-freehold-sign-in", "__Host-freehold-preview", "freehold"):
        shown = await tab.evaluate(TOSS, name)
        assert owner.sign_in.id not in shown
    for url in owner.homes:
        there = await owner.context.cookies(url)
        assert not [cookie for cookie in there if str(cookie.get("name")).startswith("__Host-")]
    assert await owner.still_signed_in()
    await tab.reload()
    await tab.get_by_role("heading", name="An app").wait_for()
    await tab.close()


async def test_a_framed_preview_reaches_nothing_of_its_frame(owner: Owner) -> None:
    page = await owner.control()
    await page.evaluate("localStorage.setItem('secret', 'ours')")
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    frame = await owner.framed(page)
    assert set((await frame.evaluate(TOUCH)).values()) == {"SecurityError"}
    own = "() => { try { return localStorage.getItem('secret') } catch (error) { return error.name } }"
    assert await frame.evaluate(own) in (None, "SecurityError")  # its own, or none at all, as the browser is set
    assert wrong == []
    assert page.url.endswith("/sign-in")
    await page.close()


async def test_a_preview_leaves_no_service_worker_behind(owner: Owner) -> None:
    """Not on its own origin, where it would outlive an undo and see the next hand-over; and none on ours."""
    tab = await owner.tab()
    assert await tab.evaluate(WORKER, "/worker.js") in ("TypeError", "SecurityError")
    assert await tab.evaluate(WORKER, f"{owner.home}/worker.js") == "SecurityError"
    assert await tab.evaluate("navigator.serviceWorker.getRegistrations().then((found) => found.length)") == 0
    await tab.close()


async def test_one_preview_is_not_another(owner: Owner) -> None:
    """A pass for one port opens no other, and storage is each one's own."""
    tab = await owner.tab()
    await tab.evaluate("localStorage.setItem('of', 'one')")
    answer = await tab.goto(f"{owner.origin(OTHER_PORT)}/page")
    assert answer is not None
    assert answer.status == 401
    await tab.get_by_text("Only the owner can open this preview").wait_for()
    await tab.close()
    other = await owner.tab(OTHER_PORT)
    assert await other.evaluate("localStorage.getItem('of')") is None
    await other.close()


async def test_signing_out_ends_an_open_preview(owner: Owner) -> None:
    """The last test of this module: its socket closes at once, and a reload shows nothing any more."""
    tab = await owner.tab()
    await tab.evaluate("""() => { window.ended = new Promise((done) => {
      const socket = new WebSocket(`${location.origin.replace('http', 'ws')}/socket`)
      socket.onmessage = () => { window.spoken = true }
      socket.onclose = (event) => done(event.code)
    }) }""")
    await tab.wait_for_function("window.spoken")
    owner.harness.gateway.services.sign_ins.revoke(owner.sign_in.id)
    assert await tab.evaluate("window.ended") == 4401
    await tab.reload()
    await tab.get_by_text("Only the owner can open this preview").wait_for()
    await tab.close()
