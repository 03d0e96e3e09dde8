"""The settings pages in a real browser, with a complete Freehold: programs, isolation, models, budgets, agents, access."""

import json
import re
import socket
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from tests.support.agents import link_agents
from tests.support.browser import CHROMIUM, PHONE, run_browser_beside, sign_in_browser
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, prepare_harness, run_harness

from freehold.egress.models.ledger import Ledger, UsageRecord, ensure_tables
from freehold.egress.models.usage import TokenCounts
from freehold.home import Home, ensure_private_folder
from freehold.timeline import Timeline

pytestmark = pytest.mark.shared_processes

KEY = "sk-real-0123456789"
SECTIONS = ("health", "isolation", "models", "budgets", "agents", "access", "storage", "appearance")
MANIFEST = """
[models.near]
kind = "openai"
base_url = "{url}/v1"
key = "secret:near"
budget = {{ day_cost = 5.0 }}

[agents.tiny]
package = "pypi:tiny-agent==1.0"
command = "python3 -m tiny"
"""
# Progress is shown for a short time only, so every change of it is recorded.
WATCH = """() => {
  window.seen = []
  const look = () => window.seen.push(...[...document.querySelectorAll('#trying, [role=status]')].map((one) => one.textContent))
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true})
}"""


class Provider(BaseHTTPRequestHandler):
    """Lists its models for a request with the key."""

    def do_GET(self) -> None:
        known = self.headers["authorization"] == f"Bearer {KEY}"
        body = json.dumps({"data": [{"id": "gpt-5"}, {"id": "gpt-5-mini"}]} if known else {}).encode()
        self.send_response(200 if known else 401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


@contextmanager
def provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def write_wheel(folder: Path) -> Path:
    """A folder with one package, the only source that pip may use."""
    folder.mkdir()
    about = "tiny_agent-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_agent-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-agent\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        names = ("tiny.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD")
        wheel.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in names))
    return folder


def record_usage(home: Home, days: int, model: str, cost: float | None) -> None:
    """Record usage of a model, this many days ago."""
    at = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with Timeline(home.timeline) as timeline:
        ensure_tables(timeline)
        record = UsageRecord("near", model, "s1", "1", TokenCounts(5_000, 500), cost, False, "answered", at)
        Ledger(timeline).close(record, 10, [])


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFreehold]:
    folder = tmp_path_factory.mktemp("freehold")
    wheels = write_wheel(folder / "wheels")
    environment = {"FREEHOLD_SSH_ENABLED": "true", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    harness = prepare_harness(folder, FreeholdOptions(environment=environment))
    home = harness.home
    ensure_private_folder(home.root)
    with provider() as url:
        home.manifest.write_text(MANIFEST.format(url=url))
        record_usage(home, 0, "gpt-5", 4.4)
        record_usage(home, 3, "gpt-5", 1.0)
        record_usage(home, 3, "mystery", None)
        link_agents(home.agents, ("builtin",))
        with run_harness(harness) as freehold:
            yield freehold


def go(page: Page, freehold: RunningFreehold, path: str) -> None:
    page.goto(freehold.pages + path)
    page.get_by_text("Live", exact=True).wait_for(state="attached")


def press_twice(button: Locator) -> None:
    """The first press asks for a second one. The page ignores a second press that comes at once."""
    expect(button).to_be_enabled()
    button.evaluate("(it) => { it.click(); return new Promise((on) => setTimeout(on, 500)).then(() => it.click()) }")


def pid_of(page: Page, program: str) -> str:
    row = page.locator(f"[data-program={program}]")
    expect(row).to_contain_text(re.compile(r"pid \d+"))
    found = re.search(r"pid (\d+)", row.inner_text())
    assert found is not None
    return found[1]


def test_programs_are_shown_and_one_is_restarted(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/health")
    row = page.locator("[data-program=ssh]")
    expect(row.locator(".chip")).to_have_text("idle")
    with socket.create_connection(("127.0.0.1", freehold.harness.ssh_port)):
        for program in ("keeper", "gateway", "computer", "ssh"):
            expect(page.locator(f"[data-program={program}] .chip")).to_have_text("ready")
    assert pid_of(page, "keeper") == str(freehold.keeper.process.pid)
    expect(page.get_by_role("button", name="Restart keeper")).to_have_count(0)
    expect(page.get_by_role("heading", name=re.compile("Components"))).to_contain_text("all components work")
    before = pid_of(page, "ssh")
    page.get_by_role("button", name="Restart ssh").click()
    expect(page.get_by_role("button", name="Restart ssh: press again to confirm")).to_have_text(re.compile("Ends open"))
    page.keyboard.press("Escape")
    assert pid_of(page, "ssh") == before
    press_twice(page.get_by_role("button", name="Restart ssh"))
    expect(row).not_to_contain_text(f"pid {before} ")
    expect(row.locator(".chip")).to_have_text("idle")


def test_a_restart_of_the_gateway_leaves_the_page_as_it_was(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/health")
    page.evaluate("() => { window.same = true }")
    before = pid_of(page, "gateway")
    press_twice(page.get_by_role("button", name="Restart gateway"))
    expect(page.locator("[data-program=gateway]")).not_to_contain_text(f"pid {before} ")
    page.get_by_text("Live", exact=True).wait_for()
    assert page.evaluate("window.same") is True


def test_the_doctor_tries_every_escape_and_its_report_stays(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/isolation")
    expect(page.get_by_label("Result")).to_contain_text("was not tested")
    page.evaluate(WATCH)
    page.get_by_role("button", name="Run the quick check").click()
    expect(page.get_by_label("Result")).to_contain_text("is running")
    # Other requests are answered meanwhile.
    assert page.evaluate("asOwner('/v1/models').then((answer) => answer.status)") == 200
    verdict = page.get_by_label("Result")
    expect(verdict).to_contain_text(re.compile(r"All \d+ escape attempts were refused"))
    assert any(re.fullmatch(r"\d+ of \d+ attempts made", line) for line in page.evaluate("window.seen"))
    attempt = page.locator("[data-outcome=refused]", has_text="host-passwords")
    attempt.locator("summary").click()
    expect(attempt.locator(".health-seen")).to_contain_text("/etc/shadow")
    page.reload()
    expect(verdict).to_contain_text(re.compile(r"All \d+ escape attempts"))
    expect(verdict).to_contain_text("by owner")


def test_a_key_goes_in_and_never_comes_out(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/models")
    model = page.locator("[data-model=near]")
    expect(model).to_contain_text("key near is missing")
    model.get_by_role("button", name="Test near").click()
    expect(model).to_contain_text("The key of the model provider near is missing")
    for value, words in (("sk-wrong-0123456789", "refuses the key"), (KEY, "It responds and offers 2 models")):
        page.get_by_role("button", name=re.compile("^(Set|Replace) near$")).click()
        field = page.get_by_label("Value")
        assert (field.get_attribute("type"), field.get_attribute("autocomplete")) == ("password", "new-password")
        field.fill(value)
        page.get_by_role("button", name="Save key").click()
        expect(model).to_contain_text("key near is in the vault")
        model.get_by_role("button", name="Test near").click()
        expect(model).to_contain_text(words)
    names = [re.compile("The agent chooses"), re.compile("^gpt-5"), re.compile("^gpt-5-mini")]
    expect(model.get_by_label("Model when none is chosen").get_by_role("option")).to_have_text(names)
    assert KEY not in page.content()
    assert KEY not in page.evaluate("asOwner('/v1/secrets').then((answer) => answer.text())")

    page.get_by_role("button", name="Add a key").click()
    page.get_by_label("Name").fill("spare")
    page.get_by_label("Value").fill("ghp-0123456789")
    page.get_by_role("button", name="Save key").click()
    spare = page.locator("[data-key=spare]")
    expect(spare).to_contain_text("not used by a model")
    press_twice(page.get_by_role("button", name="Delete spare"))
    expect(spare).to_have_count(0)


def test_usage_is_shown_and_a_budget_warns_stops_and_is_lifted(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/budgets")
    day = page.locator("[data-budget='near day_cost']")
    expect(day).to_contain_text("$4.40 of $5.00 today")
    expect(day).to_contain_text("More than 80 % is used")
    chart = page.get_by_role("img", name=re.compile(r"^\$5\.40 in 30 days, at most \$4\.40 on a day"))
    expect(chart.locator(".models-segment")).to_have_count(2)
    expect(chart.locator(".models-unpriced")).to_have_count(1)
    table = page.get_by_role("table", name=re.compile("By model"))
    expect(table.get_by_role("row", name=re.compile("gpt-5"))).to_contain_text("$5.40")
    expect(table.get_by_role("row", name=re.compile("mystery"))).to_contain_text("price unknown")
    expect(page.get_by_text("The price of mystery is unknown")).to_be_visible()
    page.get_by_role("button", name="Tokens", exact=True).click()
    expect(page.get_by_role("img", name=re.compile("16 k|17 k"))).to_be_visible()

    page.get_by_role("button", name="Set limits").click()
    page.get_by_role("dialog").get_by_role("combobox").select_option("near")
    field = page.get_by_role("textbox", name="Dollars per day")
    expect(field).to_have_value("5")
    field.fill("-1")
    page.get_by_role("dialog").get_by_role("button", name="Set limits").click()
    expect(page.get_by_role("dialog")).to_contain_text("a number above zero")
    field.fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Set limits").click()
    expect(day).to_contain_text("Used up")
    press_twice(day.get_by_role("button", name=re.compile("^Lift")))
    expect(day).to_contain_text("Lifted until the end of the day")
    expect(day.get_by_role("button")).to_have_count(0)


def test_two_presses_stop_everything_and_one_lifts_it(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/history")
    page.keyboard.press("Control+k")
    page.keyboard.type("stop all")
    page.keyboard.press("Enter")
    switch = page.get_by_label("Kill switch")
    expect(switch.get_by_role("button", name="Press again to stop")).to_be_focused()
    page.wait_for_function("(since) => performance.now() - since > 400", arg=page.evaluate("performance.now()"))
    page.keyboard.press("Enter")
    expect(switch).to_contain_text("All agents are stopped")
    expect(switch).to_contain_text("by owner")
    assert page.evaluate("asOwner('/v1/stop').then((answer) => answer.json())")["stopped"] is True
    # The page sees that it is lifted on the command line.
    assert freehold.harness.run("stop", "--lift").stdout.startswith("Agents and model requests are allowed again")
    expect(switch.get_by_role("button", name="Stop all agents")).to_be_visible()
    button = switch.get_by_role("button")
    button.evaluate("(it) => { it.click(); it.click() }")
    expect(button).to_have_text("Press again to stop")
    assert page.evaluate("asOwner('/v1/stop').then((answer) => answer.json())")["stopped"] is False
    button.press("Escape")
    expect(button).to_have_text("Stop all agents")
    press_twice(button)
    expect(switch).to_contain_text("All agents are stopped")
    switch.get_by_role("button", name="Let agents work again").click()
    expect(button).to_have_text("Stop all agents")


def test_agents_are_added_tested_and_removed(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/agents")
    own = page.locator("[data-agent=builtin]")
    expect(own).to_contain_text("ready")
    own.get_by_role("button", name=re.compile("^Test")).click()
    expect(own).to_contain_text("The agent works.")
    expect(own).to_contain_text("memory")

    tiny = page.locator("[data-agent=tiny]")
    expect(tiny).to_contain_text("not installed")
    page.evaluate(WATCH)
    tiny.get_by_role("button", name="Add tiny").click()
    expect(tiny).to_contain_text("ready")
    expect(tiny).to_contain_text("1.0")
    assert any("choosing versions" in line for line in page.evaluate("window.seen"))
    press_twice(tiny.get_by_role("button", name="Remove tiny"))
    expect(tiny).to_contain_text("not installed")


def test_signed_in_browsers_and_keys_are_listed_and_revoked(
    freehold: RunningFreehold, context: BrowserContext, page: Page
) -> None:
    assert context.browser is not None
    other = sign_in_browser(context.browser, freehold)
    go(page, freehold, "/settings/access")
    rows = page.get_by_role("region", name="Signed-in browsers").get_by_role("listitem")
    expect(rows).to_have_count(2)
    rows.get_by_role("button", name="Sign out").click()
    expect(rows).to_have_count(1)
    theirs = other.new_page()
    theirs.goto(freehold.pages + "/sign-in")
    assert theirs.evaluate("asOwner('/v1/me').then((answer) => answer.status)") == 401
    other.close()
    key = page.evaluate(
        """() => asOwner('/v1/ssh/keys', {method: 'POST', headers: {'content-type': 'application/json'}, body: '{"label": "desk"}'})
          .then((answer) => answer.status)"""
    )
    assert key == 201
    page.reload()
    page.get_by_role("button", name="Revoke desk").click()
    expect(page.get_by_text("No valid keys.")).to_be_visible()


def test_a_phone_shows_the_list_and_each_section_separately(freehold: RunningFreehold, page: Page) -> None:
    page.set_viewport_size(PHONE)
    go(page, freehold, "/settings")
    sections = page.get_by_role("navigation", name="Settings")
    expect(page.get_by_role("heading", name="Programs")).to_be_hidden()
    sections.get_by_role("link", name=re.compile("Storage")).click()
    expect(page.get_by_role("heading", name="The computer")).to_be_visible()
    expect(sections).to_be_hidden()
    page.get_by_role("main").get_by_role("link", name="Settings").click()
    expect(sections).to_be_visible()
    for section in SECTIONS:
        go(page, freehold, f"/settings/{section}")
        expect(page.locator(".settings-body h3, .settings-body .rows, .settings-body .card").first).to_be_visible()
        wide = "document.querySelector('main').scrollWidth > innerWidth || document.body.scrollWidth > innerWidth"
        assert not page.evaluate(wide), section


def test_a_browser_may_install_it(freehold: RunningFreehold, sync_browser: Browser) -> None:
    """The shell without windows installs nothing and never complains: this needs the whole Chromium."""
    with run_browser_beside(sync_browser, program=CHROMIUM) as chromium:
        page = sign_in_browser(chromium, freehold).new_page()
        go(page, freehold, "/settings/appearance")
        devtools = page.context.new_cdp_session(page)
        manifest = devtools.send("Page.getAppManifest")
        assert manifest["errors"] == []
        host = {"host": freehold.pages.removeprefix("http://")}
        for icon in json.loads(manifest["data"])["icons"]:
            answer = page.request.get(freehold.url + icon["src"], headers=host)
            assert answer.headers["content-type"] == icon["type"]
        errors = devtools.send("Page.getInstallabilityErrors")["installabilityErrors"]
        assert [error["errorId"] for error in errors] == ["in-incognito"]  # every context of Playwright is incognito


def test_the_frame_of_the_browser_has_the_colour_of_the_theme(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/appearance")
    page.get_by_role("button", name="Dark").click()
    colours = "[...document.querySelectorAll('meta[name=theme-color]')].map((meta) => meta.content)"
    assert page.evaluate(colours) == ["#141816", "#141816"]
    page.get_by_role("button", name="Same as the system").click()
    assert page.evaluate(colours) == ["#faf8f4", "#141816"]


def test_the_rules_of_what_is_kept_are_shown_with_their_places(freehold: RunningFreehold, page: Page) -> None:
    page.goto(freehold.pages + "/settings/storage")
    kept = page.get_by_role("region", name="What is kept")
    timeline = kept.get_by_role("listitem").filter(has_text="timeline-archive")
    expect(timeline).to_contain_text("Events older than 92 days move to compressed files")
    expect(timeline).to_contain_text("Change it with retention.timeline in freehold.toml.")
    expect(timeline).to_contain_text(str(freehold.home.timeline))
    expect(kept.get_by_role("listitem").filter(has_text="Logs")).to_contain_text(str(freehold.home.logs))


def test_the_path_of_the_home_is_shown(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/appearance")
    expect(page.get_by_text(str(Path(freehold.home.root)))).to_be_visible()


def test_every_setting_is_found_and_changed_where_it_is_safe(freehold: RunningFreehold, page: Page) -> None:
    go(page, freehold, "/settings/manifest")
    page.get_by_label("Find a setting").fill("code.keep_contexts")
    page.get_by_role("button", name="Change code.keep_contexts").click()
    page.get_by_label("Value of code.keep_contexts").fill("many")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".settings-manifest").get_by_role("alert")).to_be_visible()
    page.get_by_label("Value of code.keep_contexts").fill("2h")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("after a restart")).to_be_visible()
    assert 'keep_contexts = "2h"' in freehold.home.manifest.read_text()
    page.get_by_role("button", name="Change code.keep_contexts").click()
    page.get_by_role("button", name="Use the default").click()
    expect(page.get_by_text("after a restart")).to_have_count(0)
    page.get_by_label("Find a setting").fill("gateway.public_url")
    page.get_by_role("button", name="How to change gateway.public_url").click()
    expect(page.get_by_text("Add public_url under [gateway] in freehold.toml.")).to_be_visible()
