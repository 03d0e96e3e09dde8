"""Sign-in from end to end: a real browser, a real PDS, a real PLC directory."""

import logging
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Response
from tests.e2e.atproto.conftest import SignInSetup
from tests.e2e.atproto.sign_in_app import COOKIE

from freehold.errors import FreeholdError
from freehold.identity.atproto.flow import SIGN_IN_COOKIE
from freehold.identity.atproto.resolver import resolve_handle

pytestmark = pytest.mark.shared_processes


def test_the_owner_signs_in_and_no_secret_is_left_behind(
    setup: SignInSetup, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a full sign-in the debug log, the page, its address and the database have no secret."""
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="httpx2")  # a client of another room may have made it quiet
    page = setup.new_page()
    visited: list[str] = []
    page.on("framenavigated", lambda frame: visited.append(frame.url))
    setup.begin(page)
    before = {cookie["name"]: cookie for cookie in page.context.cookies()}
    setup.decide(page)
    assert page.inner_text("#message") == f"Signed in as {setup.net.dids['alice.test']}"
    assert "?" not in page.url
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    cookie = cookies[COOKIE]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"], cookie["path"]) == (True, True, "Lax", "/")
    assert SIGN_IN_COOKIE not in cookies
    secrets = [cookie["value"], before[SIGN_IN_COOKIE]["value"]]
    log = caplog.text + "".join(capfd.readouterr())
    assert "oauth" in log  # the log was captured
    files = b"".join(path.read_bytes() for path in setup.database.parent.iterdir() if path.name != "sign-in-key.pem")
    for secret in secrets:
        assert secret not in log
        assert secret not in page.content()
        assert secret.encode() not in files
        assert not any(secret in url for url in visited)
    # Codes, refresh tokens and everything signed (access tokens, proofs, assertions), in the format of this PDS.
    for pattern in (r"cod-[0-9a-f]{8}", r"ref-[0-9a-f]{8}", r"eyJ[\w-]{10,}", r"code_verifier", r"BEGIN PRIVATE"):
        assert not re.search(pattern, log), pattern


def test_the_tokens_are_revoked_at_once(setup: SignInSetup) -> None:
    """The database of the PDS has no token of ours after the sign-in."""
    setup.sign_in(setup.new_page())
    with sqlite3.connect(setup.net.folder / "account.sqlite") as database:
        (left,) = database.execute("SELECT count(*) FROM token").fetchone()
    database.close()
    assert left == 0


def test_another_account_of_the_same_pds_is_refused(setup: SignInSetup, caplog: pytest.LogCaptureFixture) -> None:
    """The PDS accepts another account for our request; Freehold refuses it and records it in the timeline."""
    page = setup.new_page()
    statuses: list[int] = []

    def note(response: Response) -> None:
        if "/oauth/callback" in response.url:
            statuses.append(response.status)

    page.on("response", note)
    setup.app.events.clear()
    setup.sign_in(page, other="bob.test")
    assert page.title() == "This Freehold belongs to someone else"
    assert statuses == [403]
    assert setup.net.dids["alice.test"] not in page.content()
    assert COOKIE not in {cookie["name"] for cookie in page.context.cookies()}
    assert "is not the owner [sign-in.not-owner]" in caplog.text
    ((kind, data),) = setup.app.events
    assert kind == "identity.sign_in_refused"
    assert setup.net.dids["bob.test"] in data["reason"]


def test_denied_consent_is_explained(setup: SignInSetup) -> None:
    page = setup.new_page()
    setup.sign_in(page, decision="Deny access")
    assert page.get_attribute("body", "data-code") == "sign-in.denied"
    assert page.goto("/") is not None
    assert page.url.endswith("/sign-in")


def test_a_sign_in_that_took_too_long_is_refused(setup: SignInSetup) -> None:
    page = setup.new_page()
    setup.begin(page)
    setup.app.clock.ahead += 601
    try:
        setup.decide(page)
    finally:
        setup.app.clock.ahead -= 601
    assert page.get_attribute("body", "data-code") == "sign-in.expired"


def test_a_request_that_expired_at_the_pds_is_refused(setup: SignInSetup) -> None:
    page = setup.new_page()
    setup.begin(page)
    setup.net.advance(600)
    try:
        page.reload()
        page.wait_for_selector("#message")
        assert page.get_attribute("body", "data-code") == "sign-in.denied"
    finally:
        setup.net.advance(-600)


def test_a_wrong_clock_is_reported(setup: SignInSetup) -> None:
    page = setup.new_page()
    page.goto("/")
    setup.app.clock.ahead += 7200
    try:
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("body[data-outcome]")
    finally:
        setup.app.clock.ahead -= 7200
    assert page.get_attribute("body", "data-outcome") == "sign-in.clock-skew"


def test_a_callback_works_once_and_only_in_the_browser_that_started(setup: SignInSetup) -> None:
    page = setup.new_page()
    setup.begin(page)
    page.context.clear_cookies(name=SIGN_IN_COOKIE)
    setup.decide(page)
    assert page.get_attribute("body", "data-code") == "sign-in.other-browser"
    page.reload()
    assert page.get_attribute("body", "data-code") == "sign-in.expired"


def test_a_copied_cookie_does_not_work_after_sign_out(setup: SignInSetup) -> None:
    page = setup.new_page()
    setup.sign_in(page)
    copied = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == COOKIE)
    assert setup.app.sign_ins.verify(copied) is not None
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in")
    assert setup.app.sign_ins.verify(copied) is None
    page.goto("/")
    assert page.url.endswith("/sign-in")


def test_sign_out_everywhere_signs_out_all_browsers(setup: SignInSetup) -> None:
    here, there = setup.new_page(), setup.new_page()
    setup.sign_in(here)
    setup.sign_in(there)
    at = here.url
    here.get_by_role("button", name="Sign out everywhere").click()
    here.wait_for_url("**/sign-in")
    there.goto(at)
    assert there.url.endswith("/sign-in")
    assert setup.app.sign_ins.list() == []


def test_a_handle_is_resolved_by_its_own_host_and_only_by_https(setup: SignInSetup) -> None:
    """Like `freehold init`: with the /.well-known/atproto-did of the real PDS, and from the DID back to the handle."""
    directory = "https://plc.directory" if setup.profile == "https" else f"http://localhost:{setup.net.directory_port}"
    with ThreadPoolExecutor() as threads:  # the event loop of the browser runs in this thread
        resolved = threads.submit(resolve_handle, "@Alice.test", plc_url=directory, network=setup.network)
        if setup.profile == "https":
            assert resolved.result() == setup.net.dids["alice.test"]
        else:
            with pytest.raises(FreeholdError, match="handle-unknown"):
                resolved.result()
