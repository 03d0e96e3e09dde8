"""AT Protocol sign-in from end to end: the gateway, a real browser, a real PDS, a real PLC directory."""

import logging
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page
from tests.e2e.atproto.conftest import SignInSetup

from freehold.errors import FreeholdError
from freehold.identity.atproto.flow import SIGN_IN_COOKIE
from freehold.identity.atproto.resolver import resolve_handle
from freehold.identity.sign_ins import COOKIE

pytestmark = pytest.mark.shared_processes


def is_signed_in(page: Page) -> bool:
    return bool(page.evaluate("fetch('/v1/me').then((answer) => answer.ok)"))


def heading(page: Page) -> str:
    return page.get_by_role("heading").first.inner_text()


def test_the_owner_signs_in_and_no_secret_is_left_behind(
    setup: SignInSetup, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a full sign-in the debug log, the page, its address and the database have no secret."""
    caplog.set_level(logging.DEBUG)
    page = setup.begin()
    visited: list[str] = []
    page.on("framenavigated", lambda frame: visited.append(frame.url))
    before = {cookie["name"]: cookie for cookie in page.context.cookies()}
    assert setup.decide(page) == 303
    assert is_signed_in(page)
    assert "?" not in page.url
    (sign_in,) = setup.services.sign_ins.list()
    assert (sign_in.did, sign_in.method) == (setup.net.dids["alice.test"], "atproto")
    assert "identity.signed_in" in [event.kind for event in setup.services.timeline.read()]
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    cookie = cookies[COOKIE]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"], cookie["path"]) == (True, True, "Lax", "/")
    assert SIGN_IN_COOKIE not in cookies
    log = caplog.text + "".join(capfd.readouterr())
    assert "oauth" in log  # the log was captured
    files = b"".join(
        path.read_bytes() for path in setup.home.root.iterdir() if path.is_file() and path.suffix != ".pem"
    )
    for secret in (cookie["value"], before[SIGN_IN_COOKIE]["value"]):
        assert secret not in log
        assert secret not in page.content()
        assert secret.encode() not in files
        assert not any(secret in url for url in visited)
    # Codes, refresh tokens and everything signed (access tokens, proofs, assertions), in the format of this PDS.
    for pattern in (r"cod-[0-9a-f]{8}", r"ref-[0-9a-f]{8}", r"eyJ[\w-]{10,}", r"code_verifier", r"BEGIN PRIVATE"):
        assert not re.search(pattern, log), pattern
    with sqlite3.connect(setup.net.folder / "account.sqlite") as database:
        (tokens,) = database.execute("SELECT count(*) FROM token").fetchone()
    database.close()
    assert tokens == 0, "our tokens at the PDS are revoked at once"


def test_the_owner_signs_out(setup: SignInSetup) -> None:
    page = setup.begin()
    setup.decide(page)
    copied = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == COOKIE)
    assert setup.services.sign_ins.verify(copied) is not None
    page.goto("/settings")
    page.locator("header.head").get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert setup.services.sign_ins.verify(copied) is None
    assert "identity.signed_out" in [event.kind for event in setup.services.timeline.read()]


def test_the_browser_is_led_to_the_page_that_it_wanted(setup: SignInSetup) -> None:
    """Even after a denied consent: the code that a program waits with is still in its field."""
    page = setup.begin("/device#BCDF-GHJK")
    assert setup.decide(page, "Deny access") in (400, 401, 403)
    page.get_by_role("link", name="Back to the sign-in page").click()
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("input[autocomplete=current-password]")
    assert setup.decide(page) == 303
    assert page.get_by_label("Code").input_value() == "BCDF-GHJK"
    assert "freehold-return" not in " ".join(cookie["name"] for cookie in page.context.cookies())


def test_another_account_of_the_same_pds_is_refused(setup: SignInSetup, caplog: pytest.LogCaptureFixture) -> None:
    """The PDS accepts another account for our request; Freehold refuses it and records it in the timeline."""
    page = setup.begin(other="bob.test")
    assert setup.decide(page) == 403
    assert heading(page) == "This Freehold belongs to someone else"
    assert setup.net.dids["alice.test"] not in page.content()
    assert COOKIE not in {cookie["name"] for cookie in page.context.cookies()}
    assert not is_signed_in(page)
    assert "is not the owner [sign-in.not-owner]" in caplog.text
    (refused,) = [event for event in setup.services.timeline.read() if event.data.get("code") == "sign-in.not-owner"]
    assert refused.kind == "identity.sign_in_refused"
    assert setup.net.dids["bob.test"] in str(refused.data["reason"])


def test_denied_consent_is_explained(setup: SignInSetup) -> None:
    page = setup.begin()
    assert setup.decide(page, "Deny access") in (400, 401, 403)
    page.get_by_role("link", name="Back to the sign-in page").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert not is_signed_in(page)


def test_a_sign_in_that_took_too_long_is_refused(setup: SignInSetup) -> None:
    page = setup.begin()
    setup.clock.ahead += 601
    try:
        assert 400 <= setup.decide(page) < 500
    finally:
        setup.clock.ahead -= 601
    assert heading(page) == "This sign-in has expired"


def test_a_request_that_expired_at_the_pds_is_refused(setup: SignInSetup) -> None:
    page = setup.begin()
    setup.net.advance(600)
    try:
        with page.expect_response("**/oauth/callback?*") as answered:
            page.reload()
    finally:
        setup.net.advance(-600)
    assert 400 <= answered.value.status < 500
    page.get_by_role("link", name="Back to the sign-in page").wait_for()
    assert not is_signed_in(page)


def test_a_wrong_clock_is_reported(setup: SignInSetup) -> None:
    page = setup.new_page()
    page.goto("/")
    setup.clock.ahead += 7200
    try:
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("alert").get_by_text("clock").first.wait_for()
    finally:
        setup.clock.ahead -= 7200


def test_a_callback_works_once_and_only_in_the_browser_that_started(setup: SignInSetup) -> None:
    page = setup.begin()
    page.context.clear_cookies(name=SIGN_IN_COOKIE)
    assert 400 <= setup.decide(page) < 500
    assert heading(page) == "This sign-in started in another browser"
    page.reload()
    assert heading(page) == "This sign-in has expired"


def test_a_handle_is_resolved_by_its_own_host_and_only_by_https(setup: SignInSetup) -> None:
    """Like `freehold init`: with the /.well-known/atproto-did of the real PDS, and from the DID back to the handle."""
    with ThreadPoolExecutor() as threads:  # the event loop of the browser runs in this thread
        resolved = threads.submit(resolve_handle, "@Alice.test", plc_url=setup.directory, network=setup.network)
        if setup.profile == "https":
            assert resolved.result() == setup.net.dids["alice.test"]
        else:
            with pytest.raises(FreeholdError, match="handle-unknown"):
                resolved.result()
