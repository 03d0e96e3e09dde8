"""The recovery page serves only the owner, whatever host name, origin or cookie a request has."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from tests.support.condition import DEADLINE
from tests.support.freehold import FreeholdHarness
from tests.support.held_restore import hold_undo
from tests.support.recovery_restore import PageReply, wait_for_result

from freehold.history.calls import MarkFiles, RequestAuthor
from freehold.history.model import RestoreProgress
from freehold.identity.sign_ins import COOKIE_OF_0_1, RECOVERY_COOKIE, SignIns, recovery_url, split_secret
from freehold.keeper.page.restore_view import render_progress

pytestmark = pytest.mark.shared_processes  # restarts change which processes the module's Freehold has


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: str


class Browser:
    """Sends exactly the request that a test gives."""

    def __init__(self, harness: FreeholdHarness) -> None:
        self.harness = harness
        self.origin = recovery_url(harness.keeper_port)
        self.cookie = ""
        self.base = ""

    def ask(
        self,
        method: str,
        path: str,
        *,
        host: str | None = None,
        origin: str | None = "",
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """`origin` is ours for a POST unless another (or None) is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.harness.keeper_port, timeout=DEADLINE)
        connection.putrequest(method, self.base + path, skip_host=True)
        if host != "":
            connection.putheader("Host", host or self.origin.removeprefix("http://"))
        if method == "POST" and origin is not None:
            connection.putheader("Origin", origin or self.origin)
        if self.cookie:
            connection.putheader("Cookie", self.cookie)
        if body or method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        found = Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode())
        connection.close()
        return found

    def post(self, path: str, **fields: str) -> Answer:
        return self.ask("POST", path, body=urlencode(fields).encode())

    def follow(self, answer: Answer) -> PageReply:
        """The page that an answer leads to. A restore that takes long is waited for, as its page does."""
        reply = wait_for_result(self._reply(answer), self._get)
        while reply.location:
            reply = wait_for_result(self._reply(self.ask("GET", reply.location)), self._get)
        return reply

    def _get(self, address: str) -> PageReply:
        return self._reply(self.ask("GET", address))

    def _reply(self, answer: Answer) -> PageReply:
        return PageReply(answer.status, answer.headers.get("location", "").removeprefix(self.base), answer.body)


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("page"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        yield harness
        assert keeper.stop() == 0


@pytest.fixture
def sessions(harness: FreeholdHarness) -> Iterator[SignIns]:
    with SignIns(harness.home.identity) as sessions:
        yield sessions


@pytest.fixture
def stranger(harness: FreeholdHarness) -> Browser:
    return Browser(harness)


@pytest.fixture
def owner(harness: FreeholdHarness, sessions: SignIns) -> Browser:
    browser = Browser(harness)
    answer = browser.post("/sign-in", code=sessions.create_link("keeper"))
    assert answer.status == 303, answer.body
    browser.cookie = answer.headers["set-cookie"].partition(";")[0]
    browser.base = answer.headers["location"].removesuffix("/")
    return browser


CLOSED = [
    ("GET", "/"),
    ("GET", "/undo"),
    ("GET", "/redo"),
    ("GET", "/restore"),
    ("GET", "/v1/status"),
    ("GET", "/v1/history/log"),
    ("GET", "/nowhere"),
    ("POST", "/undo"),
    ("POST", "/redo"),
    ("POST", "/recover"),
    ("POST", "/cancel"),
    ("POST", "/sign-out"),
    ("POST", "/restart"),
    ("POST", "/v1/restart/gateway"),
    ("POST", "/v1/history/undo"),
]


@pytest.mark.parametrize(("method", "path"), CLOSED)
@pytest.mark.parametrize("cookie", ["", f"{COOKIE_OF_0_1}=made-up", f"{RECOVERY_COOKIE}=made-up", "\x7f;;=;" * 50])
def test_a_stranger_gets_nothing(stranger: Browser, method: str, path: str, cookie: str) -> None:
    stranger.cookie = cookie
    answer = stranger.ask(method, path)
    if method == "GET" and not path.startswith("/v1/"):
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
    else:
        assert answer.status == 401
    assert "gateway" not in answer.body


def test_every_route_that_is_not_open_is_in_the_list_above() -> None:
    from freehold.keeper.page.guard import OPEN
    from freehold.keeper.page.routes import PageRoutes

    routes = PageRoutes.__new__(PageRoutes)
    from freehold.keeper.page.history_routes import RecoveryHistoryRoutes

    routes._history = RecoveryHistoryRoutes.__new__(RecoveryHistoryRoutes)
    known = {(method, path) for method, path in CLOSED} | set(OPEN)
    patterns = {"/v1/restart/{program}": "/v1/restart/gateway"}
    for route in routes.table():
        for method in (route.methods or set()) - {"HEAD"}:
            path = patterns.get(route.path, route.path)
            if path == "/v1/history/{method}":
                path = "/v1/history/log" if method == "GET" else "/v1/history/undo"
            assert (method, path) in known


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost",
        "localhost:1",
        "evil.localhost:{port}",
        "localhost:{port}.evil.example",
        "127.0.0.1.nip.io:{port}",
    ],
)
def test_another_host_name_is_refused_even_with_the_owners_cookie(owner: Browser, host: str) -> None:
    answer = owner.ask("GET", "/", host=host.format(port=owner.harness.keeper_port))
    assert answer.status in (400, 421)


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://localhost:1", "https://localhost:{port}"]
)
def test_a_form_from_another_site_changes_nothing(owner: Browser, origin: str | None) -> None:
    before = owner.harness.programs()
    origin = origin.format(port=owner.harness.keeper_port) if origin else origin
    for path in ("/v1/restart/gateway", "/restart", "/undo", "/sign-out", "/sign-in"):
        assert owner.ask("POST", path, origin=origin).status == 403
    after = owner.harness.programs()
    assert {name: one.pid for name, one in before.items()} == {name: one.pid for name, one in after.items()}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/livez"), ("GET", "/sign-in"), ("GET", "/"), ("POST", "/undo"), ("GET", "/v1/x")]
)
def test_no_response_allows_scripts_frames_or_caching(stranger: Browser, method: str, path: str) -> None:
    headers = stranger.ask(method, path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_the_probe_needs_no_sign_in(stranger: Browser) -> None:
    assert stranger.ask("GET", "/livez").body == "ok\n"


def test_a_code_signs_in_once_with_a_cookie_that_scripts_and_other_sites_do_not_get(
    stranger: Browser, sessions: SignIns
) -> None:
    code = sessions.create_link("keeper")
    answer = stranger.post("/sign-in", code=f" {code.lower()} ")
    assert answer.status == 303
    cookie = answer.headers["set-cookie"]
    for mark in (RECOVERY_COOKIE, "HttpOnly", "Secure", "SameSite=strict", "Path=/"):
        assert mark in cookie
    assert "Domain" not in cookie
    assert stranger.post("/sign-in", code=code).status == 401


def test_a_sign_in_link_is_not_a_code_for_the_keeper(stranger: Browser, sessions: SignIns) -> None:
    assert stranger.post("/sign-in", code=sessions.create_link("browser")).status == 401


def test_too_many_failed_codes_are_refused_for_a_while(tmp_path_factory: pytest.TempPathFactory) -> None:
    """In a Freehold of its own: the others must still be able to sign in."""
    harness = FreeholdHarness(tmp_path_factory.mktemp("guess"))
    with harness.keeper("--broken", "--loop-deaths", "2") as keeper:
        keeper.next("not-ready")
        browser = Browser(harness)
        assert [browser.post("/sign-in", code="AAAAA").status for _ in range(21)] == [401] * 20 + [429]
        assert keeper.stop() == 0


def test_a_cookie_alone_opens_nothing_and_neither_does_the_address(owner: Browser, stranger: Browser) -> None:
    """A browser sends the cookie to every port of its name, for example to an app that `ssh -L` forwards."""
    stranger.cookie = owner.cookie
    for method, path in CLOSED:
        assert stranger.ask(method, path).status in (303, 401)
    stranger.cookie, stranger.base = f"{RECOVERY_COOKIE}=planted", owner.base
    for method, path in CLOSED:
        assert stranger.ask(method, path).status in (303, 401)
    owner.cookie = f"other=1; {owner.cookie}"
    assert owner.ask("GET", "/v1/status").status == 200


def test_no_link_or_form_of_a_page_leaves_the_address_of_the_sign_in(owner: Browser) -> None:
    """Each is relative: an absolute one would lose the key, and the owner the sign-in."""
    for path in ("/", "/undo", "/redo"):
        body = owner.ask("GET", path).body
        for target in re.findall(r'(?:href|action)="([^"]*)"', body):
            assert not target.startswith("/") or target == "/sign-in", target
            assert "/" not in target.removeprefix("./") or target.startswith("http"), target


def test_a_sign_in_of_the_control_center_does_not_open_the_recovery_page(stranger: Browser, sessions: SignIns) -> None:
    _, secret = sessions.create(None, label="test", address="", method="link")
    cookie, key = split_secret(secret)
    stranger.cookie, stranger.base = f"{RECOVERY_COOKIE}={cookie}", f"/~{key}"
    assert stranger.ask("GET", "/v1/status").status == 401


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_a_browser_at_a_shared_name_is_sent_to_the_name_of_the_recovery_page(owner: Browser, name: str) -> None:
    answer = owner.ask("GET", "/", host=f"{name}:{owner.harness.keeper_port}")
    assert (answer.status, answer.headers["location"]) == (303, f"{owner.origin}/")
    assert owner.ask("GET", "/livez", host=f"{name}:{owner.harness.keeper_port}").body == "ok\n"


STALLED = (
    b"",
    b"GET / HTTP/1.1\r\nHost: ",
    b"POST /sign-in HTTP/1.1\r\nHost: recovery.localhost:%d\r\nOrigin: http://recovery.localhost:%d\r\n"
    b"Content-Length: 1000\r\n\r\ncode=",
)


def test_200_stalled_connections_do_not_keep_the_owner_out(
    harness: FreeholdHarness, owner: Browser, stranger: Browser, sessions: SignIns
) -> None:
    """Silent ones, and ones that stop in the head or in the body of a request. A new browser can sign in as well."""
    port = harness.keeper_port
    with ExitStack() as stack:
        for number in range(200):
            stalled = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=DEADLINE))
            start = STALLED[number % 3]
            stalled.sendall(start % (port, port) if b"%d" in start else start)
        for _ in range(3):
            assert owner.ask("GET", "/v1/status").status == 200
        assert stranger.post("/sign-in", code=sessions.create_link("keeper")).status == 303


def test_signing_out_ends_the_sign_in(owner: Browser) -> None:
    assert owner.post("/sign-out").headers["location"] == "/sign-in"
    assert owner.ask("GET", "/v1/status").status == 401


def test_status_and_restart_as_json(owner: Browser) -> None:
    status = json.loads(owner.ask("GET", "/v1/status").body)
    assert status["ready"]
    before = {one["name"]: one["pid"] for one in status["programs"]}
    found = json.loads(owner.ask("POST", "/v1/restart/computer").body)
    assert (found["name"], found["state"]) == ("computer", "ready")
    assert found["pid"] != before["computer"]
    missing = owner.ask("POST", "/v1/restart/nothing")
    assert missing.status == 404
    assert json.loads(missing.body)["error"]["code"] == "keeper.no-such-program"


def test_a_body_that_is_too_large_is_refused_unread(owner: Browser) -> None:
    assert owner.ask("POST", "/undo", headers={"Transfer-Encoding": "chunked"}, body=b"").status in (400, 413)
    assert owner.post("/sign-in", code="x" * 20_000).status == 413


def test_undo_and_redo_as_json_and_as_pages(owner: Browser) -> None:
    harness = owner.harness
    target = harness.home.workspace / "page.txt"
    target.write_text("before")
    harness.call(MarkFiles("before"))
    target.write_text("after")
    who = RequestAuthor(by="agent", agent="<b>bold</b>", prompt="do it")
    harness.call(MarkFiles("after", who=who))

    page = owner.ask("GET", "/").body
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "<b>bold" not in page
    assert "workspace/page.txt" in owner.ask("GET", "/undo").body
    done = owner.post("/undo")
    assert done.status == 303, done.body
    assert "Undone: 1 restored" in owner.follow(done).body
    assert target.read_text() == "before"
    redone = json.loads(owner.ask("POST", "/v1/history/redo", body=b'{"who": {"by": "owner"}}').body)
    assert redone["unsettled"] == []
    assert target.read_text() == "after"
    entries = json.loads(owner.ask("GET", "/v1/history/log?limit=2").body)["entries"]
    assert [entry["kind"] for entry in entries] == ["redo", "undo"]


def test_a_long_undo_shows_how_far_it_is_until_its_result(owner: Browser) -> None:
    with hold_undo(owner.harness.home) as held:
        sent = owner.post("/undo")
        held.wait()
        assert sent.status == 303
        address = sent.headers["location"].removeprefix(owner.base)
        assert address.startswith("/restore?id=")
        page = owner.ask("GET", address).body
        assert re.search(r'role="status">Preparing the files: [1-9]\d* of 3\d\d<', page)
        assert re.search(r'<progress value="[1-9]\d*" max="3\d\d" aria-label="Preparing the files: ', page)
        assert "No file has changed yet." in page
        assert 'http-equiv="refresh"' in page
        assert 'http-equiv="refresh"' not in owner.ask("GET", f"{address}&updates=off").body
        overview = owner.ask("GET", "/").body
        assert "Running now" in overview
        assert address[1:] in overview
        held.release()
        assert "Undone: 301 restored" in owner.follow(sent).body
    assert "Running now" not in owner.ask("GET", "/").body


def test_a_long_undo_is_cancelled_with_its_button_and_nothing_has_changed(owner: Browser) -> None:
    home = owner.harness.home
    with hold_undo(home) as held:
        (large,) = [each for each in home.workspace.glob("held-*/large") if each.stat().st_size == 3]
        sent = owner.post("/undo")
        held.wait()
        page = owner.ask("GET", sent.headers["location"].removeprefix(owner.base)).body
        form = re.search(r'action="cancel"><input type="hidden" name="id" value="([0-9a-f]+)"><button', page)
        assert form is not None, page
        cancelled = owner.post("/cancel", id=form[1])
        assert cancelled.status == 303
        waiting = owner.ask("GET", cancelled.headers["location"].removeprefix(owner.base)).body
        assert "It was cancelled, and no file has changed." in waiting
        assert "<button" not in waiting
        held.release()
        assert "The undo was cancelled. Nothing was changed" in owner.follow(cancelled).body
        assert large.read_text() == "new"


def test_a_restore_that_changes_files_has_no_button_and_says_that_it_is_finished() -> None:
    page = render_progress(RestoreProgress("one", "revert", "changing", 20, 80, cancellable=False), updates=True)
    assert "Changing the files: 20 of 80" in page
    assert "It will be finished." in page
    assert "<title>25 % · Revert" in page
    assert "<button" not in page


def test_a_restore_that_is_not_known_leads_to_the_overview(owner: Browser) -> None:
    assert owner.ask("GET", "/restore?id=none").headers["location"] == f"{owner.base}/"
    assert owner.post("/cancel", id="none").status == 303


def test_a_get_never_changes_anything(owner: Browser) -> None:
    for verb in ("undo", "redo", "restore", "revert", "collect", "recover", "mark"):
        assert owner.ask("GET", f"/v1/history/{verb}").status == 405


def test_names_of_files_are_shown_as_text(owner: Browser) -> None:
    harness = owner.harness
    names = [b"<script>alert(1)<", b'"onload="x', b"not utf-8 \xff\xfe", b"line\nbreak", "\u202eevil".encode()]
    for name in names:
        (harness.home.workspace / name.decode(errors="surrogateescape")).write_text("x")
    harness.call(MarkFiles("after", why="<img src=x>"))
    for path in ("/", "/undo"):
        body = owner.ask("GET", path).body
        assert "<script" not in body
        assert "<img" not in body
        assert '"onload=' not in body


@pytest.mark.parametrize(
    "path",
    [
        "/undo?entry=abc",
        "/undo?entry=-1",
        "/undo?entry=99999999999999999999",
        "/undo?entry=424242",
        "/?done=x",
        "/?cancelled=<b>",
        "/restore?id=<b>&updates=<b>",
        "/v1/history/nothing",
        "/%00",
        "/undo/../../etc/passwd",
    ],
)
def test_odd_addresses_cause_no_internal_error(owner: Browser, path: str) -> None:
    answer = owner.ask("GET", path)
    assert answer.status < 500
    assert "Traceback" not in answer.body
