"""The front door of a whole Freehold, in a real browser: the one-time link, the way out, and a program that asks to come in."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.e2e.atproto.serving import serve
from tests.e2e.house import PATIENCE, REPOSITORY, Freehold, freehold_up, launch, signed_in
from tests.gateway.running import listen

from freehold.gateway.app import build_app
from freehold.gateway.house import open_house
from freehold.home import Home, ensure_private_folder
from freehold.identity.atproto.fetch import Network
from freehold.identity.sessions import COOKIE
from freehold.manifest import load_manifest

pytestmark = pytest.mark.shared_processes

POST = "([path, body]) => fetch(path, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(body)}).then((answer) => answer.status)"
DELETE = "(path) => fetch(path, {method: 'DELETE'}).then((answer) => answer.status)"
GET = "(path) => fetch(path).then((answer) => answer.status)"
LISTEN = """() => new Promise((done) => {
  const socket = new WebSocket(`ws://${location.host}/v1/socket`)
  socket.onopen = () => done('open')
  window.ended = new Promise((ended) => socket.onclose = (event) => { done('closed'); ended(event.code) })
})"""
TERMINAL = """async () => {
  const headers = {'content-type': 'application/json'}
  const opened = await fetch('/v1/terminals', {method: 'POST', headers, body: '{}'}).then((answer) => answer.json())
  const socket = new WebSocket(`ws://${location.host}/v1/terminals/${opened.id}/socket`)
  window.ended = new Promise((ended) => socket.onclose = (event) => ended(event.code))
  return new Promise((shown) => socket.onmessage = () => shown('a prompt'))
}"""
ENDED = "(within) => Promise.race([window.ended, new Promise((late) => setTimeout(() => late(null), within))])"


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Freehold]:
    with freehold_up(tmp_path_factory.mktemp("up")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = launch(playwright)
        yield launched
        launched.close()


def new_page(browser: Browser) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(15_000)
    return page


def test_a_link_signs_in_one_browser_once(freehold: Freehold, browser: Browser) -> None:
    """Its token is in the fragment, which is never sent, and gone from the address bar when the page is there."""
    page = new_page(browser)
    asked: list[str] = []
    violations: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: violations.append(message.text) if "Content Security" in message.text else None)
    token = freehold.link.partition("#")[2]
    assert len(token) > 40
    with page.expect_response("**/v1/sign-in/link") as answered:
        page.goto(freehold.link)
    assert answered.value.status == 200
    page.wait_for_url(lambda url: "sign-in" not in url)
    assert "#" not in page.url
    assert page.evaluate(GET, "/v1/me") == 200
    assert not any(token in url for url in asked)
    assert token not in page.content()
    assert violations == []
    (cookie,) = [cookie for cookie in page.context.cookies() if cookie["name"] == COOKIE]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"], cookie["path"]) == (True, True, "Lax", "/")
    assert page.evaluate("document.cookie") == ""
    other = new_page(browser)
    other.goto(freehold.link)
    other.get_by_text("This link has been used").wait_for()
    assert other.evaluate(GET, "/v1/me") == 401
    assert "#" not in other.url


def test_signing_out_ends_the_session_even_for_a_kept_cookie(freehold: Freehold, browser: Browser) -> None:
    context = signed_in(browser, freehold)
    kept = context.cookies()
    page = context.new_page()
    page.goto(freehold.url)
    assert page.evaluate(POST, ["/v1/sign-out", {}]) == 200
    assert page.evaluate(GET, "/v1/me") == 401
    thief = browser.new_context()
    thief.add_cookies(kept)  # type: ignore[arg-type]
    stolen = thief.new_page()
    stolen.goto(freehold.url)
    assert stolen.evaluate(GET, "/v1/me") == 401


def test_signing_out_everywhere_closes_the_other_browsers_socket(freehold: Freehold, browser: Browser) -> None:
    """Within a second."""
    here, there = (signed_in(browser, freehold).new_page() for _ in range(2))
    for page in (here, there):
        page.goto(freehold.url)
        assert page.evaluate(LISTEN) == "open"
    assert here.evaluate(DELETE, "/v1/sign-ins?keep_current=true") == 200
    assert there.evaluate(ENDED, 1_000) == 4401
    assert there.evaluate(GET, "/v1/me") == 401
    assert here.evaluate(ENDED, 0) is None
    assert here.evaluate(GET, "/v1/me") == 200


def test_signing_a_browser_out_closes_its_terminal(freehold: Freehold, browser: Browser) -> None:
    """Within a second; the terminal itself lives on for the owner to come back to."""
    here, there = (signed_in(browser, freehold).new_page() for _ in range(2))
    there.goto(freehold.url)
    assert there.evaluate(TERMINAL) == "a prompt"
    here.goto(freehold.url)
    assert here.evaluate(DELETE, "/v1/sign-ins?keep_current=true") == 200
    assert there.evaluate(ENDED, 1_000) == 4401
    terminals = here.evaluate("fetch('/v1/terminals').then((answer) => answer.json())")
    assert [terminal["ended"] for terminal in terminals] == [False]


def test_a_socket_is_not_for_who_is_outside(freehold: Freehold, browser: Browser) -> None:
    page = new_page(browser)
    page.goto(freehold.url)
    assert page.evaluate(LISTEN) == "closed"
    assert page.evaluate(ENDED, 1_000) == 1006  # refused before it was one


def test_a_program_gets_its_token_by_the_owners_hand(freehold: Freehold, browser: Browser) -> None:
    """`freehold login` in a terminal, its code on the device page, and the token where only the owner can read it. Who is
    not signed in yet does that in another tab, and goes on in this one."""
    login = freehold.verb("login", freehold.url, "--name", "laptop", "--no-browser", "--json")
    assert login.stderr is not None
    shown = ""
    while not (found := re.search(r"http\S+/device#[A-Z]{4}-[A-Z]{4}", shown)):
        line = login.stderr.readline()
        assert line, "no code was shown"
        shown += line
    page = new_page(browser)
    page.goto(found[0])
    page.get_by_text("freehold open").wait_for()
    elsewhere = page.context.new_page()
    elsewhere.goto(freehold.new_link())
    elsewhere.wait_for_url(lambda url: "sign-in" not in url)
    elsewhere.close()
    page.evaluate("window.dispatchEvent(new Event('focus'))")  # headless, a page never loses it
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="laptop").wait_for()
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("status").wait_for()
    said, _ = login.communicate(timeout=PATIENCE)
    assert login.returncode == 0
    assert json.loads(said)["name"] == "laptop"
    logins = Path(freehold.environment["XDG_CONFIG_HOME"]) / "freehold" / "logins.json"
    token = json.loads(logins.read_text())[freehold.url]["token"]
    assert token not in said + shown
    assert token not in page.content()


def test_the_script_of_the_guide_takes_back_what_was_done(freehold: Freehold, tmp_path: Path) -> None:
    """The second block of docs/guides/api.md as it stands there, but for the address and the token."""
    guide = (REPOSITORY / "docs" / "guides" / "api.md").read_text()
    block = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[1]
    said = _done(freehold.verb("token", "create", "script", "--scope", "read", "--scope", "history", "--json"))
    token = json.loads(said)["token"]
    _done(freehold.verb("run", "echo by-hand > noted"))
    script = tmp_path / "script.py"
    script.write_text(block.replace('"http://localhost:3000"', f'"{freehold.url}", token=open("token").read()'))
    (tmp_path / "token").write_text(token)
    shown = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=freehold.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "echo by-hand > noted" in shown.stdout
    assert not (freehold.home.workspace / "noted").exists()
    _done(freehold.verb("token", "revoke", "script"))


def _done(verb: "subprocess.Popen[str]") -> str:
    said, complained = verb.communicate(timeout=PATIENCE)
    assert verb.returncode == 0, complained
    return said


def test_a_directory_that_does_not_answer_is_explained(browser: Browser, tmp_path: Path) -> None:
    """The button of the sign-in page says what is wrong and can be pressed again."""
    home = Home(root=tmp_path, run=tmp_path / "run")
    ensure_private_folder(home.run)
    listener, nobody = listen(), listen()
    directory = f"http://localhost:{nobody.getsockname()[1]}"
    nobody.close()
    port = listener.getsockname()[1]
    owner = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
    home.manifest.write_text(f'[owner]\ndid = "{owner}"\nplc_url = "{directory}"\n[gateway]\nport = {port}\n')
    network = Network(plain=frozenset({directory}))
    with (
        open_house(home, load_manifest(home.manifest, {}), network) as house,
        serve(build_app(house), listener, lifespan=True),
    ):
        page = new_page(browser)
        page.goto(f"http://localhost:{port}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").get_by_text("cannot be reached").wait_for()
        page.get_by_role("button", name="Sign in").wait_for()
        page.close()


def test_no_secret_is_left_lying_about(freehold: Freehold, browser: Browser) -> None:
    """After a sign-in: not in any log, on any command line, in any environment or page."""
    context = signed_in(browser, freehold)
    page = context.new_page()
    page.goto(freehold.url)
    page.evaluate(LISTEN)
    page.wait_for_load_state()
    secrets = [cookie["value"] for cookie in context.cookies()]
    secrets.append(freehold.link.partition("#")[2])
    logins = Path(freehold.environment["XDG_CONFIG_HOME"]) / "freehold" / "logins.json"
    secrets += [entry["token"] for entry in json.loads(logins.read_text()).values()]
    assert len(secrets) == 3
    places = {str(path): path.read_bytes() for path in freehold.home.logs.rglob("*") if path.is_file()}
    assert any(places.values())
    for pid in freehold.family():
        for name in ("cmdline", "environ"):
            places[f"{pid} {name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    assert sum(name.endswith("cmdline") for name in places) >= 3
    for path in (freehold.home.timeline, freehold.home.identity):
        for file in path.parent.glob(f"{path.name}*"):
            places[str(file)] = file.read_bytes()
    places["page"] = page.content().encode()
    for secret in secrets:
        assert [name for name, content in places.items() if secret.encode() in content] == []
