"""Sign-in to a complete Freehold in a real browser: the one-time link, signing out, and a program that asks for a token."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.e2e.atproto.app_server import serve
from tests.gateway.running_gateway import listen
from tests.support.browser import OWN_REQUESTS, PAGE_TIMEOUT, sign_in_browser
from tests.support.freehold import PROCESS_TIMEOUT, ROOT
from tests.support.running_freehold import RunningFreehold

from freehold.gateway.app import build_app
from freehold.gateway.services import open_services
from freehold.home import Home, ensure_private_folder
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.manifest import load_manifest

pytestmark = pytest.mark.shared_processes

POST = "([path, body]) => asOwner(path, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(body)}).then((answer) => answer.status)"
DELETE = "(path) => asOwner(path, {method: 'DELETE'}).then((answer) => answer.status)"
GET = "(path) => asOwner(path).then((answer) => answer.status)"
LISTEN = """() => new Promise((done) => {
  const socket = ownSocket(`/v1/socket`)
  socket.onopen = () => done('open')
  window.ended = new Promise((ended) => socket.onclose = (event) => { done('closed'); ended(event.code) })
})"""
TERMINAL = """async () => {
  const headers = {'content-type': 'application/json'}
  const opened = await asOwner('/v1/terminals', {method: 'POST', headers, body: '{}'}).then((answer) => answer.json())
  const socket = ownSocket(`/v1/terminals/${opened.id}/socket`)
  window.ended = new Promise((ended) => socket.onclose = (event) => ended(event.code))
  return new Promise((shown) => socket.onmessage = () => shown('a prompt'))
}"""
ENDED = "window.ended"


def new_page(browser: Browser) -> Page:
    context = browser.new_context()
    context.add_init_script(OWN_REQUESTS)
    page = context.new_page()
    page.set_default_timeout(PAGE_TIMEOUT)
    return page


def test_a_link_signs_in_one_browser_once(freehold: RunningFreehold, sync_browser: Browser) -> None:
    """Its token is in the fragment, which is never sent to a server, and is gone from the address bar afterwards."""
    page = new_page(sync_browser)
    asked: list[str] = []
    violations: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: violations.append(message.text) if "Content Security" in message.text else None)
    token = freehold.first_link.partition("#")[2]
    assert len(token) > 40
    with page.expect_response("**/v1/sign-in/link") as answered:
        page.goto(freehold.first_link)
    assert answered.value.status == 200
    page.wait_for_url(lambda url: "sign-in" not in url)
    assert "#" not in page.url
    assert page.evaluate(GET, "/v1/me") == 200
    assert not any(token in url for url in asked)
    assert token not in page.content()
    assert violations == []
    assert page.context.cookies() == []
    other = new_page(sync_browser)
    other.goto(freehold.first_link)
    other.get_by_text("This sign-in link was already used").wait_for()
    assert other.evaluate(GET, "/v1/me") == 401
    assert "#" not in other.url


def test_signing_out_ends_the_sign_in_even_for_a_copied_key(freehold: RunningFreehold, sync_browser: Browser) -> None:
    context = sign_in_browser(sync_browser, freehold)
    kept = context.storage_state()
    page = context.new_page()
    page.goto(freehold.pages)
    assert page.evaluate(POST, ["/v1/sign-out", {}]) == 200
    assert page.evaluate(GET, "/v1/me") == 401
    thief = sync_browser.new_context(storage_state=kept)
    thief.add_init_script(OWN_REQUESTS)
    stolen = thief.new_page()
    stolen.goto(freehold.pages)
    assert stolen.evaluate(GET, "/v1/me") == 401


def test_signing_out_everywhere_closes_the_other_browsers_socket(
    freehold: RunningFreehold, sync_browser: Browser
) -> None:
    here, there = (sign_in_browser(sync_browser, freehold).new_page() for _ in range(2))
    for page in (here, there):
        page.goto(freehold.pages)
        assert page.evaluate(LISTEN) == "open"
    assert here.evaluate(DELETE, "/v1/sign-ins?keep_current=true") == 200
    assert there.evaluate(ENDED) == 4401
    assert there.evaluate(GET, "/v1/me") == 401
    assert here.evaluate("Promise.race([window.ended, Promise.resolve('open')])") == "open"
    assert here.evaluate(GET, "/v1/me") == 200


def test_signing_a_browser_out_closes_its_terminal(freehold: RunningFreehold, sync_browser: Browser) -> None:
    """The terminal itself continues, and the owner finds it again."""
    here, there = (sign_in_browser(sync_browser, freehold).new_page() for _ in range(2))
    there.goto(freehold.pages)
    assert there.evaluate(TERMINAL) == "a prompt"
    here.goto(freehold.pages)
    assert here.evaluate(DELETE, "/v1/sign-ins?keep_current=true") == 200
    assert there.evaluate(ENDED) == 4401
    terminals = here.evaluate("asOwner('/v1/terminals').then((answer) => answer.json())")
    assert [terminal["ended"] for terminal in terminals] == [False]


def test_a_socket_needs_a_sign_in(freehold: RunningFreehold, sync_browser: Browser) -> None:
    page = new_page(sync_browser)
    page.goto(freehold.pages)
    assert page.evaluate(LISTEN) == "closed"
    assert page.evaluate(ENDED) == 1006  # refused before it was open


def test_a_program_gets_a_token_when_the_owner_allows_it(freehold: RunningFreehold, sync_browser: Browser) -> None:
    """`freehold login` in a terminal, its code on the device page, and the token in a file that only the owner can read.
    An owner who is not signed in yet signs in in another tab and continues in this one."""
    login = freehold.harness.start("login", freehold.url, "--name", "laptop", "--no-browser", "--json")
    assert login.stderr is not None
    shown = ""
    while not (found := re.search(r"http\S+/device#[A-Z]{4}-[A-Z]{4}", shown)):
        line = login.stderr.readline()
        assert line, "freehold login printed no code"
        shown += line
    page = new_page(sync_browser)
    page.goto(found[0])
    page.get_by_text("freehold open").wait_for()
    elsewhere = page.context.new_page()
    elsewhere.goto(freehold.harness.make_sign_in_link())
    elsewhere.wait_for_url(lambda url: "sign-in" not in url)
    elsewhere.close()
    page.evaluate("window.dispatchEvent(new Event('focus'))")  # a headless page never loses the focus
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("heading", name="laptop").wait_for()
    page.get_by_role("button", name="Allow").click()
    page.get_by_role("status").wait_for()
    output, _ = login.communicate()
    assert login.returncode == 0
    assert json.loads(output)["name"] == "laptop"
    logins = freehold.harness.config / "freehold" / "logins.json"
    token = json.loads(logins.read_text())[freehold.url]["token"]
    assert token not in output + shown
    assert token not in page.content()


def test_the_script_in_the_guide_undoes_a_change(freehold: RunningFreehold, tmp_path: Path) -> None:
    """The second block of docs/guides/api.md, with another address and token."""
    guide = (ROOT / "docs" / "guides" / "api.md").read_text()
    block = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[1]
    scopes = [word for scope in ("read", "prompt", "history") for word in ("--scope", scope)]
    output = _finish(freehold.harness.start("token", "create", "script", *scopes, "--json"))
    token = json.loads(output)["token"]
    _finish(freehold.harness.start("run", "echo by-hand > noted"))
    script = tmp_path / "script.py"
    script.write_text(block.replace('"http://localhost:3000"', f'"{freehold.url}", token=open("token").read()'))
    (tmp_path / "token").write_text(token)
    shown = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=freehold.harness.environment,
        capture_output=True,
        text=True,
        timeout=PROCESS_TIMEOUT,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "echo by-hand > noted" in shown.stdout
    assert not (freehold.home.workspace / "noted").exists()
    _finish(freehold.harness.start("token", "revoke", "script"))


def _finish(command: "subprocess.Popen[str]") -> str:
    output, errors = command.communicate()
    assert command.returncode == 0, errors
    return output


def test_a_directory_that_does_not_answer_is_explained(sync_browser: Browser, tmp_path: Path) -> None:
    """The sign-in page says what is wrong, and its button can be pressed again."""
    home = Home(root=tmp_path, run=tmp_path / "run")
    ensure_private_folder(home.run)
    listener, nobody = listen(), listen()
    directory = f"http://localhost:{nobody.getsockname()[1]}"
    nobody.close()
    port = listener.getsockname()[1]
    owner = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
    home.manifest.write_text(f'[owner]\ndid = "{owner}"\nplc_url = "{directory}"\n[gateway]\nport = {port}\n')
    network = NetworkOverrides(plain=frozenset({directory}))
    with (
        open_services(home, load_manifest(home.manifest, {}), network) as services,
        serve(build_app(services), listener, lifespan=True),
    ):
        page = new_page(sync_browser)
        page.goto(f"http://localhost:{port}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").get_by_text("cannot be reached").wait_for()
        page.get_by_role("button", name="Sign in").wait_for()
        page.close()


def test_no_secret_is_stored_in_plain_text(freehold: RunningFreehold, sync_browser: Browser) -> None:
    """After a sign-in: not in any log, on any command line, in any environment or page."""
    context = sign_in_browser(sync_browser, freehold)
    page = context.new_page()
    page.goto(freehold.pages)
    page.evaluate(LISTEN)
    page.wait_for_load_state()
    secrets = [page.evaluate("localStorage.getItem('freehold.sign-in')")]
    secrets.append(freehold.first_link.partition("#")[2])
    logins = freehold.harness.config / "freehold" / "logins.json"
    secrets += [entry["token"] for entry in json.loads(logins.read_text()).values()]
    assert len(secrets) == 3
    places = {str(path): path.read_bytes() for path in freehold.home.logs.rglob("*") if path.is_file()}
    assert any(places.values())
    for pid in freehold.keeper.family():
        for name in ("cmdline", "environ"):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile by itself
                places[f"{pid} {name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    assert sum(name.endswith("cmdline") for name in places) >= 3
    for path in (freehold.home.timeline, freehold.home.identity):
        for file in path.parent.glob(f"{path.name}*"):
            places[str(file)] = file.read_bytes()
    places["page"] = page.content().encode()
    for secret in secrets:
        assert [name for name, content in places.items() if secret.encode() in content] == []
