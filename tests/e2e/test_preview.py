"""The preview page in a real browser: a server in the computer, shown in a frame with an origin of its own."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import FrameLocator, Page, expect
from tests.support.browser import wait_for_promise
from tests.support.running_freehold import RunningFreehold

pytestmark = pytest.mark.shared_processes

PORT = 8123
APP = """
import http.server, itertools
count = itertools.count(1)
class App(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        words = f"<h1>{self.path}</h1><p>seen {next(count)} times</p><a target=_top href='/away'>leave</a>"
        body = f"<!doctype html><link rel=icon href='data:,'><body>{words}".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", %d), App).serve_forever()
"""
START = """async (line) => {
  const headers = {'content-type': 'application/json'}
  const made = await asOwner('/v1/terminals', {method: 'POST', headers, body: '{}'}).then((answer) => answer.json())
  const socket = ownSocket(`/v1/terminals/${made.id}/socket`)
  await new Promise((done) => { socket.onmessage = done })
  socket.send(new TextEncoder().encode(line))
  return made.id
}"""
LISTED = """(port) => asOwner('/v1/preview/ports').then((answer) => answer.json())
  .then(({ports}) => ports.some((one) => one.port === port))"""
STOP = "(id) => asOwner('/v1/terminals/' + id, {method: 'DELETE'}).then((answer) => answer.status)"


@pytest.fixture(autouse=True)
def program(freehold: RunningFreehold) -> None:
    (freehold.home.workspace / "app.py").write_text(APP % PORT)


@pytest.fixture
def app(page: Page, freehold: RunningFreehold) -> Iterator[str]:
    """Runs the app in a terminal for one test. Returns the terminal's id."""
    page.goto(freehold.pages + "/settings")
    terminal = start(page)
    yield terminal
    page.evaluate(STOP, terminal)


def start(page: Page) -> str:
    wait_for_promise(page, "asOwner('/v1/files/list').then((answer) => answer.ok)")
    terminal = str(page.evaluate(START, "exec python3 app.py\n"))
    wait_for_promise(page, LISTED, PORT)
    return terminal


def open_preview(page: Page, freehold: RunningFreehold, path: str = f"/preview?port={PORT}") -> FrameLocator:
    page.goto(freehold.pages + path)
    return page.frame_locator(f"iframe[title='Preview of port {PORT}']")


def test_a_server_that_starts_is_shown_without_a_reload(freehold: RunningFreehold, page: Page) -> None:
    """While nothing runs, the page says how to start something."""
    page.goto(freehold.pages + "/preview")
    page.get_by_role("heading", name="No server is running").wait_for()
    page.evaluate("window.same = true")
    terminal = start(page)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="/", exact=True)).to_be_visible()
    expect(page.get_by_label("Port")).to_contain_text(f"{PORT} · python3")
    origin = f"{PORT}.preview.localhost"
    expect(page.locator(".preview-origin")).to_contain_text(origin)
    (inside,) = [one for one in page.frames if one != page.main_frame]
    assert inside.evaluate("location.hostname") == origin
    assert ".freehold" not in inside.url

    page.evaluate(STOP, terminal)
    page.get_by_role("heading", name="No server is running").wait_for()
    assert page.evaluate("window.same") is True


def test_an_app_that_restarts_is_shown_again(freehold: RunningFreehold, page: Page, app: str) -> None:
    frame = open_preview(page, freehold)
    expect(frame.get_by_text("seen 1 times")).to_be_visible()
    page.get_by_role("button", name="Reload").click()
    expect(frame.get_by_text("seen 2 times")).to_be_visible()
    page.evaluate(STOP, app)
    absent = page.get_by_text(f"No program listens on port {PORT}.")
    absent.wait_for()
    again = start(page)
    expect(absent).to_have_count(0)
    expect(frame.get_by_text("seen 1 times")).to_be_visible()
    page.evaluate(STOP, again)


def test_a_path_can_be_typed_and_another_origin_cannot(freehold: RunningFreehold, page: Page, app: str) -> None:
    frame = open_preview(page, freehold)
    path = page.get_by_label("Path")
    path.fill("about?x=1")
    path.press("Enter")
    expect(frame.get_by_role("heading", name="/about?x=1")).to_be_visible()
    path.fill("http://localhost:1/elsewhere")
    path.press("Enter")
    expect(path).to_have_attribute("aria-invalid", "true")
    expect(frame.get_by_role("heading", name="/about?x=1")).to_be_visible()


def test_the_app_cannot_take_the_tab_elsewhere(freehold: RunningFreehold, page: Page, app: str) -> None:
    """Neither by a script nor by a link that the owner clicks."""
    frame = open_preview(page, freehold)
    frame.get_by_role("link", name="leave").click()
    (inside,) = [one for one in page.frames if one != page.main_frame]
    refused = inside.evaluate("(() => { try { top.location = '/away'; return 'gone' } catch { return 'refused' } })()")
    assert refused == "refused"
    assert inside.evaluate("(() => { try { return top.document.title } catch { return 'closed' } })()") == "closed"
    expect(page.get_by_role("button", name="Reload")).to_be_visible()
    assert page.url.startswith(freehold.pages)


def test_it_is_drawn_as_wide_as_a_phone_or_a_tablet(freehold: RunningFreehold, page: Page, app: str) -> None:
    """Even in a window that is narrower than that."""
    page.set_viewport_size({"width": 900, "height": 700})
    frame = open_preview(page, freehold)
    expect(frame.get_by_role("heading")).to_be_visible()
    (inside,) = [one for one in page.frames if one != page.main_frame]
    for name, wide in (("Phone", 390), ("Tablet", 820)):
        page.get_by_role("button", name=name).click()
        inside.wait_for_function("(wide) => innerWidth === wide", arg=wide)
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
        box = page.locator(".preview-device").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 900
    page.get_by_role("button", name="Full width").click()
    inside.wait_for_function("innerWidth !== 820 && innerWidth > 600")


def test_it_opens_in_a_tab_of_its_own(freehold: RunningFreehold, page: Page, app: str) -> None:
    frame = open_preview(page, freehold)
    expect(frame.get_by_role("heading")).to_be_visible()
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Open in a new tab").click()
    tab = opened.value
    tab.get_by_role("heading", name="/", exact=True).wait_for()
    assert tab.evaluate("[location.hostname, location.pathname, opener]") == [f"{PORT}.preview.localhost", "/", None]
    tab.close()


def test_it_fits_a_phone(freehold: RunningFreehold, page: Page, app: str) -> None:
    """At full width, even if a device was chosen on a larger screen."""
    frame = open_preview(page, freehold)
    page.get_by_role("button", name="Tablet").click()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(frame.get_by_role("heading")).to_be_visible()
    (inside,) = [one for one in page.frames if one != page.main_frame]
    inside.wait_for_function("innerWidth === 390")
    assert page.evaluate("document.body.scrollWidth <= innerWidth")
    box = page.locator("iframe").bounding_box()
    assert box is not None
    assert (box["width"], box["height"] > 500) == (390, True)


def test_the_keyboard_and_the_palette_lead_here(freehold: RunningFreehold, page: Page) -> None:
    page.goto(freehold.pages + "/settings")
    page.get_by_role("heading", name="Settings").first.wait_for()
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.get_by_role("heading", name="No server is running").wait_for()
    page.get_by_role("button", name="Open a session").click()
    page.wait_for_url("**/sessions**")
    page.keyboard.press("Control+k")
    page.keyboard.type("preview")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="No server is running").wait_for()
