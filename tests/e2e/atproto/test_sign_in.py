"""Sign-in from end to end: a real browser, a real PDS, a real PLC directory."""

import logging
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Response
from tests.e2e.atproto.conftest import House

from freehold.errors import FreeholdError
from freehold.identity.atproto.flow import SIGN_IN_COOKIE
from freehold.identity.atproto.resolve import resolve_handle
from freehold.identity.sessions import COOKIE

pytestmark = pytest.mark.shared_processes


def test_the_owner_is_let_in_and_no_secret_is_left_lying_about(
    house: House, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a full sign-in the log (at its most talkative), the page, its address and the database hold no secret."""
    caplog.set_level(logging.DEBUG)
    page = house.new_page()
    visited: list[str] = []
    page.on("framenavigated", lambda frame: visited.append(frame.url))
    house.begin(page)
    before = {cookie["name"]: cookie for cookie in page.context.cookies()}
    house.decide(page)
    assert page.inner_text("#message") == f"Signed in as {house.net.dids['alice.test']}"
    assert "?" not in page.url
    cookies = {cookie["name"]: cookie for cookie in page.context.cookies()}
    session = cookies[COOKIE]
    assert (session["httpOnly"], session["secure"], session["sameSite"], session["path"]) == (True, True, "Lax", "/")
    assert SIGN_IN_COOKIE not in cookies
    secrets = [session["value"], before[SIGN_IN_COOKIE]["value"]]
    log = caplog.text + "".join(capfd.readouterr())
    assert "oauth" in log  # the scan has something to scan
    files = b"".join(path.read_bytes() for path in house.database.parent.iterdir() if path.name != "sign-in-key.pem")
    for secret in secrets:
        assert secret not in log
        assert secret not in page.content()
        assert secret.encode() not in files
        assert not any(secret in url for url in visited)
    # Codes, refresh tokens and everything signed (access tokens, proofs, assertions), as this PDS spells them.
    for pattern in (r"cod-[0-9a-f]{8}", r"ref-[0-9a-f]{8}", r"eyJ[\w-]{10,}", r"code_verifier", r"BEGIN PRIVATE"):
        assert not re.search(pattern, log), pattern


def test_the_tokens_are_revoked_at_once(house: House) -> None:
    """The PDS's own database holds no token of ours when the sign-in is done."""
    house.sign_in(house.new_page())
    with sqlite3.connect(house.net.folder / "account.sqlite") as database:
        (left,) = database.execute("SELECT count(*) FROM token").fetchone()
    database.close()
    assert left == 0


def test_another_account_of_the_same_pds_is_refused(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """The PDS lets another account answer our request; we do not, and the owner sees it in the timeline."""
    page = house.new_page()
    statuses: list[int] = []

    def note(response: Response) -> None:
        if "/oauth/callback" in response.url:
            statuses.append(response.status)

    page.on("response", note)
    house.door.events.clear()
    house.sign_in(page, other="bob.test")
    assert page.title() == "This is not your house"
    assert statuses == [403]
    assert house.net.dids["alice.test"] not in page.content()
    assert COOKIE not in {cookie["name"] for cookie in page.context.cookies()}
    assert "is not the owner [sign-in.not-owner]" in caplog.text
    ((kind, data),) = house.door.events
    assert kind == "identity.sign_in_refused"
    assert house.net.dids["bob.test"] in data["reason"]


def test_denied_consent_is_explained(house: House) -> None:
    page = house.new_page()
    house.sign_in(page, decision="Deny access")
    assert page.get_attribute("body", "data-code") == "sign-in.denied"
    assert page.goto("/") is not None
    assert page.url.endswith("/sign-in")


def test_a_sign_in_that_took_too_long_is_refused(house: House) -> None:
    page = house.new_page()
    house.begin(page)
    house.door.clock.ahead += 601
    try:
        house.decide(page)
    finally:
        house.door.clock.ahead -= 601
    assert page.get_attribute("body", "data-code") == "sign-in.expired"


def test_a_request_that_expired_at_the_pds_is_refused(house: House) -> None:
    page = house.new_page()
    house.begin(page)
    house.net.advance(600)
    try:
        page.reload()
        page.wait_for_selector("#message")
        assert page.get_attribute("body", "data-code") == "sign-in.denied"
    finally:
        house.net.advance(-600)


def test_a_wrong_clock_is_named(house: House) -> None:
    page = house.new_page()
    page.goto("/")
    house.door.clock.ahead += 7200
    try:
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("body[data-outcome]")
    finally:
        house.door.clock.ahead -= 7200
    assert page.get_attribute("body", "data-outcome") == "sign-in.clock-skew"


def test_an_answer_counts_only_in_the_browser_that_asked_and_only_once(house: House) -> None:
    page = house.new_page()
    house.begin(page)
    page.context.clear_cookies(name=SIGN_IN_COOKIE)
    house.decide(page)
    assert page.get_attribute("body", "data-code") == "sign-in.other-browser"
    page.reload()
    assert page.get_attribute("body", "data-code") == "sign-in.expired"


def test_sign_out_ends_the_session_even_for_a_kept_cookie(house: House) -> None:
    page = house.new_page()
    house.sign_in(page)
    kept = next(cookie["value"] for cookie in page.context.cookies() if cookie["name"] == COOKIE)
    assert house.door.sessions.verify(kept) is not None
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.wait_for_url("**/sign-in")
    assert house.door.sessions.verify(kept) is None
    page.goto("/")
    assert page.url.endswith("/sign-in")


def test_sign_out_everywhere_ends_every_browser(house: House) -> None:
    here, there = house.new_page(), house.new_page()
    house.sign_in(here)
    house.sign_in(there)
    at = here.url
    here.get_by_role("button", name="Sign out everywhere").click()
    here.wait_for_url("**/sign-in")
    there.goto(at)
    assert there.url.endswith("/sign-in")
    assert house.door.sessions.list() == []


def test_a_handle_is_resolved_by_its_own_host_and_only_by_https(house: House) -> None:
    """As `freehold init` does: by the real PDS's /.well-known/atproto-did, and back from the DID to the handle."""
    directory = "https://plc.directory" if house.profile == "https" else f"http://localhost:{house.net.directory_port}"
    with ThreadPoolExecutor() as threads:  # the browser's loop runs in this one
        asked = threads.submit(resolve_handle, "@Alice.test", plc_url=directory, network=house.network)
        if house.profile == "https":
            assert asked.result() == house.net.dids["alice.test"]
        else:
            with pytest.raises(FreeholdError, match="handle-unknown"):
                asked.result()
