"""Attacks on the control center in the owner's browser, by other pages and by output of the computer."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright import sync_api
from playwright.sync_api import BrowserContext, Page, expect
from tests.support.browser import sign_in_browser, wait_for_events, wait_for_promise
from tests.support.running_freehold import RunningFreehold

pytestmark = pytest.mark.shared_processes

# Pages of other ports: at the very name of the control center, as a forward of a port can be opened, and at others.
NEIGHBOURS = ("freehold.localhost", "localhost", "127.0.0.1")
PATHS = ("/", "/sign-in", "/device", "/sessions", "/settings", "/v1/me", "/v1/files/content?path=note.txt")
FRAMES = """(addresses) => Promise.all(addresses.flatMap((address) => ['iframe', 'object', 'embed'].map((kind) => {
  const frame = document.createElement(kind)
  frame[kind === 'object' ? 'data' : 'src'] = address
  document.body.append(frame)
  return new Promise((done) => { frame.onload = done; frame.onerror = done; setTimeout(done, 3000) })
}))).then(() => [...document.querySelectorAll('iframe, object')].map((frame) => {
  try { return frame.contentDocument === null ? 'closed' : frame.contentDocument.body.innerText }
  catch { return 'closed' }
}))"""
FETCH = """async (home) => {
  const tried = {
    read: ['/v1/me', {}],
    blind: ['/v1/timeline', {mode: 'no-cors'}],
    post: ['/v1/terminals', {method: 'POST', mode: 'no-cors', headers: {'content-type': 'text/plain'}, body: '{}'}],
    json: ['/v1/terminals', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'}],
    put: ['/v1/files/content?path=planted.txt', {method: 'PUT', body: 'planted'}],
    undo: ['/v1/history/undo', {method: 'POST', mode: 'no-cors', body: '{}'}],
    keepalive: ['/v1/stop', {method: 'POST', mode: 'no-cors', keepalive: true, body: '{}'}],
  }
  const seen = {}
  for (const [name, [path, how]] of Object.entries(tried))
    seen[name] = await fetch(home + path, {credentials: 'include', ...how})
      .then((answer) => answer.type === 'opaque' ? 'opaque' : 'read ' + answer.status, () => 'refused')
  navigator.sendBeacon(home + '/v1/stop', '{}')
  return seen
}"""
SOCKET = """(address) => new Promise((done) => {
  const socket = new WebSocket(address)
  socket.onopen = () => done('open')
  socket.onmessage = () => done('spoken to')
  socket.onclose = () => done('closed')
})"""
OWN_SOCKET = SOCKET.replace("new WebSocket", "ownSocket")
INCLUDE = """(addresses) => Promise.all(addresses.flatMap((address) => ['script', 'img', 'link', 'video'].map((kind) => {
  const part = document.createElement(kind)
  if (kind === 'link') { part.rel = 'stylesheet'; part.href = address } else part.src = address
  document.body.append(part)
  return new Promise((done) => { part.onload = () => done(kind); part.onloadeddata = part.onload; part.onerror = () => done(null) })
})))"""
DOWNLOAD = """async (address) => {
  const headers = {'content-type': 'application/json'}
  const made = await asOwner('/v1/download-tickets', {method: 'POST', headers, body: JSON.stringify({address})})
  location.href = (await made.json()).address
}"""
FORM = """([address, kind]) => {
  const form = document.createElement('form')
  form.method = 'post'; form.action = address; form.enctype = kind
  const field = document.createElement('input')
  field.name = '{"a":"'; field.value = '"}'
  form.append(field); document.body.append(form); form.submit()
}"""


class _Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<!doctype html><title>Another page</title><link rel='icon' href='data:,'><body>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def foreign() -> Iterator[int]:
    """The port of a page that is not ours."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Foreign) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def note(freehold: RunningFreehold) -> None:
    (freehold.home.workspace / "note.txt").write_text("window.pwned = 1\n")


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab of another page. Fails if a script of its own ran in ours."""
    page = context.new_page()
    yield page
    assert page.evaluate("window.pwned") is None
    page.close()


@pytest.fixture
def ours(context: BrowserContext, freehold: RunningFreehold) -> Iterator[Page]:
    """A tab of the control center. Fails if the owner is signed out or anything has changed at the end."""
    opened = context.new_page()
    opened.goto(freehold.pages + "/settings")
    wait_for_promise(opened, "asOwner('/v1/files/list').then((answer) => answer.ok)")
    before = _state(opened)
    yield opened
    assert _state(opened) == before
    assert not (freehold.home.workspace / "planted.txt").exists()
    opened.close()


def _state(page: Page) -> Any:
    return page.evaluate(
        """() => Promise.all(['/v1/me', '/v1/terminals', '/v1/tokens', '/v1/stop'].map((path) =>
        asOwner(path).then((answer) => answer.text().then((text) => [answer.status, text]))))"""
    )


def go(page: Page, freehold: RunningFreehold, path: str) -> None:
    page.goto(freehold.pages + path)
    page.get_by_text("Live", exact=True).wait_for(state="attached")


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_no_other_page_can_frame_the_control_center(
    freehold: RunningFreehold, foreign: int, page: Page, name: str
) -> None:
    """Nor the recovery page: a click on an invisible frame would press its buttons."""
    page.goto(f"http://{name}:{foreign}/")
    addresses = [freehold.pages + path for path in PATHS] + [freehold.keeper_url]
    assert set(page.evaluate(FRAMES, addresses)) <= {"closed", ""}
    inside = [frame.url for frame in page.frames if frame != page.main_frame]
    assert inside
    assert not [url for url in inside if url.startswith((freehold.pages, freehold.keeper_url))]


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_no_other_page_can_read_or_act(
    freehold: RunningFreehold, foreign: int, page: Page, ours: Page, name: str
) -> None:
    """It reads nothing, and its requests are refused. The browser has nothing of the owner's to attach to them."""
    wire = page.context.new_cdp_session(page)
    answers: dict[str, int] = {}
    theirs: set[str] = set()
    carried: set[str] = set()
    wire.on(
        "Network.requestWillBeSent",
        lambda event: None if freehold.pages in event["request"]["url"] else theirs.add(event["requestId"]),
    )
    wire.on(
        "Network.responseReceivedExtraInfo", lambda event: answers.update({event["requestId"]: event["statusCode"]})
    )
    wire.on(
        "Network.requestWillBeSentExtraInfo",
        lambda event: carried.update(
            each["cookie"]["name"] for each in event["associatedCookies"] if not each["blockedReasons"]
        ),
    )
    page.goto(f"http://{name}:{foreign}/")
    wire.send("Network.enable")
    seen = page.evaluate(FETCH, freehold.pages)
    assert set(seen.values()) <= {"refused", "opaque"}, seen

    def answered() -> list[int]:
        return [status for request, status in answers.items() if request not in theirs]

    wait_for_events(page, lambda: len(answered()) >= len(seen))  # they may come after what the script has seen
    assert set(answered()) <= {401, 403}, answers
    assert carried == set()


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_no_other_page_can_open_a_socket(
    freehold: RunningFreehold, foreign: int, page: Page, ours: Page, name: str
) -> None:
    address = freehold.pages.replace("http", "ws")
    ours.evaluate(
        "asOwner('/v1/terminals', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{}'})"
    )
    terminal = ours.evaluate("asOwner('/v1/terminals').then((answer) => answer.json())")[0]["id"]
    page.goto(f"http://{name}:{foreign}/")
    for path in ("/v1/socket", f"/v1/terminals/{terminal}/socket"):
        assert page.evaluate(SOCKET, address + path) == "closed"
        assert ours.evaluate(OWN_SOCKET, path) in ("open", "spoken to")
    closed = ours.evaluate(f"asOwner('/v1/terminals/{terminal}', {{method: 'DELETE'}}).then((answer) => answer.status)")
    assert closed == 200


def test_a_page_with_the_origin_null_cannot_open_a_socket(freehold: RunningFreehold, foreign: int, page: Page) -> None:
    """A sandboxed frame has that origin."""
    page.goto(f"http://localhost:{foreign}/")
    page.evaluate(
        """() => new Promise((done) => {
        const frame = document.createElement('iframe')
        frame.sandbox = 'allow-scripts'; frame.srcdoc = '<p>null'; frame.onload = done
        document.body.append(frame)
        })"""
    )
    (frame,) = [frame for frame in page.frames if frame != page.main_frame]
    assert frame.evaluate("origin") == "null"
    assert frame.evaluate(SOCKET, freehold.pages.replace("http", "ws") + "/v1/socket") == "closed"


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("path", ["/v1/sign-out", "/v1/stop", "/v1/terminals"])
def test_a_form_of_another_page_is_refused(
    freehold: RunningFreehold, foreign: int, page: Page, ours: Page, name: str, path: str
) -> None:
    """A form can navigate to us where a script cannot."""
    page.goto(f"http://{name}:{foreign}/")
    with page.expect_response(freehold.pages + path) as answered:
        page.evaluate(FORM, [freehold.pages + path, "text/plain"])
    page.wait_for_url(freehold.pages + path)
    assert answered.value.status in (401, 403)


def test_no_other_page_can_include_our_answers(freehold: RunningFreehold, foreign: int, page: Page) -> None:
    """Neither as a script nor as an image, style sheet or video. The fixture sees if a script ran."""
    page.goto(f"http://localhost:{foreign}/")
    addresses = [freehold.pages + path for path in ("/v1/files/content?path=note.txt", "/v1/me", "/icon.svg")]
    assert set(page.evaluate(INCLUDE, addresses)) == {None}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_window_that_another_page_opened_is_out_of_its_reach(
    freehold: RunningFreehold, foreign: int, page: Page, name: str
) -> None:
    page.goto(f"http://{name}:{foreign}/")
    with page.context.expect_page() as opened:
        page.evaluate("(home) => { window.theirs = window.open(home + '/settings') }", freehold.pages)
    popup = opened.value
    popup.get_by_role("heading", name="Settings").first.wait_for()
    assert popup.evaluate("window.opener") is None
    assert page.evaluate("theirs.closed") is True
    popup.close()


@pytest.mark.parametrize("name", ["page.html", "picture.svg", "page.xhtml", "program.js", "sheet.xml", "page.mhtml"])
def test_a_file_is_never_a_page_of_ours(freehold: RunningFreehold, page: Page, name: str) -> None:
    """Its address is a download, no matter what it contains and what it is called."""
    body = "<svg xmlns='http://www.w3.org/2000/svg'><script>window.pwned=1</script></svg>"
    (freehold.home.workspace / name).write_text(body)
    go(page, freehold, "/settings")
    with page.expect_download() as kept:
        page.evaluate(DOWNLOAD, f"/v1/files/content?path={name}")
    assert kept.value.path().read_text() == body
    assert page.url.endswith("/settings")


WORKER = """
onfetch = (event) => event.respondWith(new Response('pwned'));
onconnect = ({ports}) => ports[0].postMessage('started');
self.postMessage?.('started');
"""
# Kept, because a worker that nobody holds may be collected before it says that it failed.
START_WORKER = """([kind, path]) => {
  try {
    const one = new window[kind](path);
    (window.kept ??= []).push(one);
    one.onerror = () => answers.push('refused');
    (one.port ?? one).onmessage = () => answers.push('started');
  } catch { answers.push('refused') }
}"""


def test_a_file_is_never_a_worker_of_ours(sync_browser: sync_api.Browser, freehold: RunningFreehold) -> None:
    """A service worker would stay and see every answer. Not even a script in our own page can register one."""
    page = sign_in_browser(sync_browser, freehold, keeps_offline=True).new_page()
    (freehold.home.workspace / "worker.js").write_text(WORKER)
    go(page, freehold, "/settings")
    for path in ("/v1/files/content?path=worker.js", "data:text/javascript,1"):
        registered = page.evaluate(
            "(path) => navigator.serviceWorker.register(path).then(() => 'registered', () => 'refused')", path
        )
        assert registered == "refused"
    for kind in ("Worker", "SharedWorker"):
        page.evaluate("window.answers = []")

        def is_answered(kind: str = kind) -> bool:
            """A busy Chromium loses the failure of a worker now and then, so each look starts another."""
            page.evaluate(START_WORKER, [kind, "/v1/files/content?path=worker.js"])
            return bool(page.evaluate("window.answers.length > 0"))

        wait_for_events(page, is_answered)
        assert set(page.evaluate("window.answers")) == {"refused"}


ODD = (
    "__proto__",
    "constructor",
    "%2e%2e%2fetc",
    "a\nb",
    "right\u202egnp.exe",
    "zero\u200bwidth",
    "javascript:alert(1)",
    "?path=note.txt#x",
    "é" * 100,
    "nothing\udcff readable",
    "\U0001f3e1 home",
    "{{constructor}}",
)


def test_a_file_of_any_name_is_shown_and_opened(freehold: RunningFreehold, page: Page) -> None:
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    folder = freehold.home.workspace / "odd"
    folder.mkdir()
    for number, name in enumerate(ODD):
        (folder / name).write_text(f"number {number}.\n")
    go(page, freehold, "/files")
    page.get_by_role("treeitem", name="odd", exact=True).click()
    rows = page.locator("[role=treeitem][aria-level='2']")
    expect(rows).to_have_count(len(ODD))
    shown: set[int] = set()
    for row in range(len(ODD)):
        rows.nth(row).click()
        content = page.locator(".files-editor .cm-content")
        expect(rows.nth(row)).to_have_attribute("aria-selected", "true")
        expect(content).to_contain_text(re.compile(r"number \d+\."))
        expect(content).not_to_contain_text(re.compile("|".join(f"number {seen}\\." for seen in shown) or "none"))
        shown.add(int(content.inner_text().split()[1].rstrip(".")))
    assert shown == set(range(len(ODD)))
    assert wrong == []


def test_a_terminal_answers_nothing_that_a_shell_would_run(freehold: RunningFreehold, page: Page) -> None:
    """Programs inside query title, settings and colours. No answer arrives as if it were typed."""
    go(page, freehold, "/terminal")
    page.get_by_role("button", name="Open a terminal").click()
    screen = page.locator(".terminal-screen:not([hidden]) .xterm-rows")
    screen.get_by_text("$").first.wait_for()
    script = (
        r"printf '\033]0;\rtouch pwned\r\007\033[21t\033[20t\033P$qtouch pwned\r\033\\\033]50;?\007\033[?6n'; "
        r"read -r -n 400 -t 1 -s said; printf '%s' \"$said\" | od -An -c | tr -d ' \n'; echo \" heard-$((1+1))\"" + "\n"
    )
    page.locator(".terminal-screen:not([hidden]) textarea").focus()
    page.keyboard.type(script)
    expect(screen).to_contain_text("heard-2")
    page.keyboard.type("echo over-$((2+2))\n")
    expect(screen).to_contain_text("over-4")
    heard = screen.inner_text().rpartition("heard-2")[0].rpartition("\n")[2]
    assert "touch" not in heard
    assert not (freehold.home.workspace / "pwned").exists()
    assert not (freehold.home.root / "home" / "pwned").exists()
