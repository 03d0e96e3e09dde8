"""History, files and the timeline over HTTP, with a real keeper and a real computer behind them."""

import os
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx2
import pytest
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness
from tests.support.recovery_restore import PageReply, wait_for_result
from tests.support.signed_in import browser_headers, sign_in_to_recovery
from websockets.sync.client import connect

from freehold.client import Freehold
from freehold.history.names import read_name
from freehold.identity.sign_ins import SignIns
from freehold.identity.tokens import ApiTokens, Scope

ALL: tuple[Scope, ...] = ("read", "prompt", "files", "history")


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreeholdHarness]:
    harness = FreeholdHarness(tmp_path_factory.mktemp("harness"))
    harness.run("init", check=True)
    with harness.keeper() as keeper:
        keeper.next("ready")
        yield harness


def client(harness: FreeholdHarness, *scopes: Scope) -> httpx2.Client:
    with ApiTokens(harness.home.identity, owner=None) as tokens:
        _, secret = tokens.create(f"test-{'-'.join(scopes)}", scopes, None)
    headers = {"authorization": f"Bearer {secret}"}
    return httpx2.Client(
        base_url=f"http://localhost:{harness.gateway_port}", headers=headers, trust_env=False, timeout=60
    )


def test_the_python_client_compares_marks_and_reads_backwards(harness: FreeholdHarness) -> None:
    with ApiTokens(harness.home.identity, owner=None) as tokens:
        _, secret = tokens.create("client", ALL, None)
    (harness.home.workspace / "by-client.txt").write_text("one\n")
    with Freehold.sync(f"http://localhost:{harness.gateway_port}", token=secret, timeout=60) as home:
        first = home.history.compare().new.id
        (harness.home.workspace / "by-client.txt").write_text("two\n")
        found = home.history.compare(first, "now", path="workspace/by-client.txt")
        assert [file["word"] for file in found.files] == ["changed"]
        assert home.history.mark_good(first).good
        assert home.history.compare("good").old == home.history.compare(first).old
        (last,) = home.timeline.read(before=2**53, kinds=["history.marked_good"], limit=1).events
        assert last.data == {"entry": first}
        assert not home.history.mark_good(first, good=False).good


@pytest.fixture(scope="module")
def http(harness: FreeholdHarness) -> Iterator[httpx2.Client]:
    with client(harness, *ALL) as made:
        # The gateway answers a moment before it has reached the computer.
        wait_until(lambda: made.get("/v1/files/list").status_code == 200)
        yield made


def get(http: httpx2.Client, address: str, **query: Any) -> Any:
    answer = http.get(address, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(http: httpx2.Client, path: str, text: str) -> None:
    assert http.put("/v1/files/content", params={"path": path}, content=text.encode()).status_code == 200


pytestmark = pytest.mark.shared_processes


def test_two_points_are_compared_and_now_is_one_of_them(http: httpx2.Client) -> None:
    """The comparison with now includes changes that are not recorded yet."""
    put(http, "compared.txt", "one\n")
    first = get(http, "/v1/history/compare")["new"]["id"]
    put(http, "compared.txt", "two\n")
    found = get(http, "/v1/history/compare", old=first, path="workspace/compared.txt")
    assert found["new"]["id"] > first
    assert [(file["word"], file["added"], file["removed"]) for file in found["files"]] == [("changed", 1, 1)]
    assert "-one\n+two\n" in found["files"][0]["text"]
    back = get(http, "/v1/history/compare", old=found["new"]["id"], new=first)
    assert "-two\n+one\n" in back["files"][0]["text"]


@pytest.mark.parametrize("query", [{"old": "-1"}, {"old": "then"}, {"new": "good"}, {"new": "1e3"}, {"limit": 0}])
def test_invalid_points_are_refused(http: httpx2.Client, query: dict[str, Any]) -> None:
    assert http.get("/v1/history/compare", params=query).status_code == 422


def test_a_calm_history_has_no_notice(http: httpx2.Client) -> None:
    answer = http.get("/v1/history/notices")
    assert (answer.status_code, answer.json()) == (200, [])


def test_a_known_good_point_is_marked_compared_with_and_recorded(http: httpx2.Client) -> None:
    assert http.get("/v1/history/compare", params={"old": "good"}).status_code == 404
    put(http, "good.txt", "fine\n")
    entry = get(http, "/v1/history/compare")["new"]["id"]
    assert http.post(f"/v1/history/{entry}/good", json={}).json()["good"] is True
    put(http, "good.txt", "broken\n")
    found = get(http, "/v1/history/compare", old="good")
    assert (found["old"]["id"], found["old"]["good"]) == (entry, True)
    assert http.post(f"/v1/history/{entry}/good", json={"good": False}).json()["good"] is False
    assert http.get("/v1/history/compare", params={"old": "good"}).status_code == 404
    marks = get(http, "/v1/timeline", kind=["history.marked_good", "history.unmarked_good"])["events"]
    assert [event["data"] for event in marks[-2:]] == [{"entry": entry}, {"entry": entry}]
    assert http.post("/v1/history/999999/good", json={}).json()["error"]["code"] == "history.no-such-entry"


@pytest.mark.parametrize("method", ["changes", "diff"])
def test_the_gateway_and_the_keeper_answer_alike_for_an_entry_that_does_not_exist(
    harness: FreeholdHarness, http: httpx2.Client, method: str
) -> None:
    gateway = http.get(f"/v1/history/999999{'' if method == 'changes' else '/diff'}")
    with SignIns(harness.home.identity, owner=None) as sign_ins:
        owner = sign_in_to_recovery(sign_ins, harness.keeper_port)
    keeper = httpx2.get(
        f"http://localhost:{harness.keeper_port}{owner.base}/v1/history/{method}",
        params={"entry": 999999},
        headers=owner.headers,
        trust_env=False,
        timeout=60,
    )
    assert gateway.json()["error"]["code"] == "history.no-such-entry"
    assert (gateway.status_code, gateway.json()) == (404, keeper.json())
    assert keeper.status_code == 404


def test_marking_and_comparing_need_their_scopes(harness: FreeholdHarness) -> None:
    with client(harness, "read") as reader, client(harness, "files") as other:
        assert reader.post("/v1/history/1/good", json={}).status_code == 403
        for path in ("/v1/history/compare", "/v1/history/1/diff", "/v1/history/1/file?path=workspace/x"):
            assert reader.get(path).status_code == 403, "a token that reads no files has read a file"
        assert other.get("/v1/history/compare").status_code == 200
        assert other.get("/v1/history").status_code == 403
        assert reader.get("/v1/files/search", params={"query": "x"}).status_code == 403


def list_pages(http: httpx2.Client, path: str, **query: Any) -> list[list[str]]:
    """The names of each page."""
    pages: list[list[str]] = []
    after = ""
    while after is not None:
        page = get(http, "/v1/files/list", path=path, after=after, **query)
        pages.append([entry["name"] for entry in page["entries"]])
        after = page["next"]
    return pages


def test_a_large_folder_is_listed_page_by_page(harness: FreeholdHarness, http: httpx2.Client) -> None:
    """Every name once, in the order of its bytes, and no answer longer than a page."""
    folder = harness.home.workspace / "large"
    folder.mkdir()
    odd = [b"\xff", b"\x01", b"back\\slash", "ä".encode(), b"Z", b"a b", b"n0.txt"]
    names = sorted([*odd, *(b"n%05d" % number for number in range(2_300))])
    for name in names:
        os.close(os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    pages = list_pages(http, "large")
    assert [len(page) for page in pages] == [1000, 1000, len(names) - 2000]
    assert [read_name(name) for page in pages for name in page] == names
    assert [len(page) for page in list_pages(http, "large", limit=700)] == [700, 700, 700, 207]
    assert len(get(http, "/v1/files/list", path="large")["entries"]) == 1000
    for limit in (0, 1001, 300_000):
        assert http.get("/v1/files/list", params={"path": "large", "limit": limit}).status_code == 422


def test_a_page_that_ends_with_the_folder_has_no_next(harness: FreeholdHarness, http: httpx2.Client) -> None:
    folder = harness.home.workspace / "exact"
    folder.mkdir()
    assert list_pages(http, "exact") == [[]]
    for name in "abcd":
        (folder / name).touch()
    assert list_pages(http, "exact", limit=2) == [["a", "b"], ["c", "d"]]
    assert list_pages(http, "exact", limit=4) == [["a", "b", "c", "d"]]
    assert list_pages(http, "exact", limit=3) == [["a", "b", "c"], ["d"]]
    (folder / "b").unlink()  # the name after which the next page begins
    assert get(http, "/v1/files/list", path="exact", after="b", limit=2)["entries"][0]["name"] == "c"


def test_a_path_of_any_length_harms_only_its_own_request(http: httpx2.Client) -> None:
    """The first of these once ended the link to the computer, and every running turn with it."""
    opened = http.post("/v1/files/folder", json={"path": "still-here"})
    assert opened.status_code == 201
    for length in (256, 2_000, 4_095, 4_096, 16_000, 16_385):
        for path in ("x" * length, "ä" * (length // 2), "x/" * (length // 2), "\\xff" * (length // 4)):
            for address in ("/v1/files/stat", "/v1/files/list", "/v1/files/content", "/v1/files/tree"):
                answer = http.get(address, params={"path": path})
                assert answer.status_code in (400, 404, 422), f"{address} {length}: {answer.text[:300]}"
        body = {"path": "x" * length, "to": "y" * length}
        for address in ("/v1/files/move", "/v1/files/copy"):
            assert http.post(address, json=body).status_code in (400, 404, 422)
        assert http.get("/v1/files/search", params={"path": "x" * length, "query": "x"}).status_code in (400, 404, 422)
    assert get(http, "/v1/files/stat", path="still-here")["kind"] == "folder"


def test_search_skips_folders_of_package_managers(http: httpx2.Client) -> None:
    put(http, "src/haystack.py", "a = 1\nneedle = 2\n")
    put(http, "node_modules/x/index.js", "needle\n")
    put(http, ".venv/lib.py", "needle\n")
    found = get(http, "/v1/files/search", query="NEEDLE")
    assert [(hit["path"], hit["line"], hit["column"], hit["text"]) for hit in found["hits"]] == [
        ("src/haystack.py", 2, 1, "needle = 2")
    ]
    everything = get(http, "/v1/files/search", query="needle", all=True)
    assert {hit["path"] for hit in everything["hits"]} == {
        "src/haystack.py",
        "node_modules/x/index.js",
        ".venv/lib.py",
    }
    assert get(http, "/v1/files/search", query="needle", all=True, limit=1)["more"] is True
    assert http.get("/v1/files/search", params={"query": "(", "regex": True}).status_code == 400


async def test_the_timeline_is_read_backwards(gateway: RunningGateway) -> None:
    """The newest events before a number, in order, page by page to the beginning."""
    for number in range(5):
        gateway.services.timeline.append("test.happened", {"number": number})
    gateway.services.timeline.append("other.happened", {})
    headers = gateway.token("read")
    seen: list[int] = []
    before: int | None = 2**53
    while before is not None:
        query: dict[str, str | int] = {"before": before, "kind": "test.*", "limit": 2}
        page = (await gateway.http.get("/v1/timeline", params=query, headers=headers)).json()
        seen = [event["data"]["number"] for event in page["events"]] + seen
        before = page["next"]
    assert seen == [0, 1, 2, 3, 4]


def test_changes_through_the_files_api_are_recorded_with_author_and_reason(http: httpx2.Client) -> None:
    before = get(http, "/v1/history/compare")["new"]["id"]
    put(http, "by-hand.txt", "one\n")
    assert http.post("/v1/files/move", json={"path": "by-hand.txt", "to": "moved.txt"}).status_code == 200
    assert http.post("/v1/files/remove", json={"path": "not-there"}).status_code == 404
    entry = get(http, "/v1/history/compare")["new"]
    assert entry["id"] > before
    assert entry["who"] == {"by": "owner", "via": "token", "token": "test-read-prompt-files-history"}
    assert entry["why"] == "saved by-hand.txt, moved by-hand.txt to moved.txt"
    assert http.post("/v1/files/remove", json={"path": "moved.txt"}).status_code == 200
    assert get(http, "/v1/history/compare")["new"]["why"] == "removed moved.txt"


def test_changes_in_a_terminal_are_recorded_as_that_terminals(harness: FreeholdHarness, http: httpx2.Client) -> None:
    with client(harness, "read", "terminal") as made:
        opened = made.post("/v1/terminals", json={}).json()["id"]
        address = f"ws://localhost:{harness.gateway_port}/v1/terminals/{opened}/socket"
        headers = {"authorization": made.headers["authorization"]}
        with connect(address, additional_headers=headers, proxy=None) as socket:
            socket.send(b"echo x > typed.txt; echo do''ne\n")
            seen = b""
            while b"done" not in seen:
                seen += bytes(socket.recv(timeout=30, decode=False))
        assert made.delete(f"/v1/terminals/{opened}").status_code == 200
    entry = get(http, "/v1/history/compare")["new"]
    assert entry["who"] == {"by": "terminal", "terminal": opened}
    assert entry["why"] == "worked in a terminal"


@pytest.fixture
def browser(harness: FreeholdHarness) -> Iterator[tuple[httpx2.Client, httpx2.Client, str, str]]:
    """A sign-in at the gateway and one at the recovery page, and their ids."""
    with SignIns(harness.home.identity, owner=None) as sign_ins:
        sign_in, secret = sign_ins.create(None, label="test", address="127.0.0.1", method="link")
        recovery = sign_in_to_recovery(sign_ins, harness.keeper_port)
    at_gateway = (f"http://localhost:{harness.gateway_port}", browser_headers(harness.gateway_port, secret))
    at_keeper = (f"http://localhost:{harness.keeper_port}{recovery.base}", recovery.headers)
    gateway, page = (
        httpx2.Client(base_url=address, headers=headers, trust_env=False, timeout=60)
        for address, headers in (at_gateway, at_keeper)
    )
    with gateway, page:
        yield gateway, page, sign_in.id, recovery.sign_in.id


def read_listed_fates(html: str) -> list[tuple[str, str]]:
    """The words and paths that the recovery page lists."""
    listed = re.findall(r'<span class="fate">(.*?)</span><span class="mono">(.*?)</span>', html)
    return [(unescape(word), unescape(path)) for word, path in listed]


def test_the_recovery_page_and_the_gateway_show_the_same_fates(
    harness: FreeholdHarness, browser: tuple[httpx2.Client, httpx2.Client, str, str]
) -> None:
    gateway, page, *_ = browser
    folder = harness.home.workspace / "fates"
    folder.mkdir()
    for name in ("changed", "gone", "script"):
        (folder / name).write_text(name)
    first = get(gateway, "/v1/history/compare")["new"]["id"]
    (folder / "changed").write_text("new")
    (folder / "gone").unlink()
    (folder / "script").chmod(0o755)
    (folder / "<added>").write_text("x")
    entry = get(gateway, "/v1/history/compare")["new"]["id"]
    assert entry == first + 1

    plan = gateway.post("/v1/history/plan", json={"action": "undo", "entry": entry}).json()
    planned = [(step["word"], step["path"].removeprefix("workspace/fates/")) for step in plan["steps"]]
    assert planned == [("remove", "<added>"), ("restore", "changed"), ("restore", "gone"), ("set mode", "script")]
    preview = page.get("/undo", params={"entry": entry}).text
    assert read_listed_fates(preview) == [(step["word"], step["path"]) for step in plan["steps"]]
    assert plan["summary"] in preview

    done = undo_on_page(page, entry=str(entry))
    assert done.status == 303, done.body
    result = page.get(done.location).text
    by_page = read_listed_fates(result)
    assert gateway.post("/v1/history/redo", json={}).status_code == 200
    report = gateway.post("/v1/history/undo", json={"entry": entry}).json()
    assert by_page == [(fate["word"], fate["path"]) for fate in report["fates"]]
    assert [path for _, path in by_page] == [step["path"] for step in plan["steps"]]
    assert report["counts"] == plan["counts"]
    assert report["summary"] in result


def undo_on_page(page: httpx2.Client, **fields: str) -> PageReply:
    def read(answer: httpx2.Response) -> PageReply:
        location = answer.headers.get("location", "").removeprefix(page.base_url.path.rstrip("/"))
        return PageReply(answer.status_code, location, answer.text)

    return wait_for_result(read(page.post("/undo", data=fields)), lambda address: read(page.get(address)))


def test_every_way_to_undo_records_who_asked(
    harness: FreeholdHarness, http: httpx2.Client, browser: tuple[httpx2.Client, httpx2.Client, str, str]
) -> None:
    gateway, page, sign_in, recovery = browser
    token = "test-read-prompt-files-history"

    def read_last() -> tuple[dict[str, str], dict[str, Any], str, str]:
        entry = get(http, "/v1/history", limit=1)["entries"][0]
        kinds = ["history.undone", "history.redone", "history.restored", "history.reverted"]

        def find_event() -> dict[str, Any] | None:
            events: list[dict[str, Any]] = get(http, "/v1/timeline", kind=kinds, before=2**53, limit=1)["events"]
            return next((event for event in events if event["data"]["entry"] == entry["id"]), None)

        event = wait_until(find_event)  # the keeper adds it to the timeline a moment after its reply
        assert event is not None
        return entry["who"], event["data"]["asked_by"], event["who"], event["kind"]

    put(http, "who.txt", "one\n")
    first = get(http, "/v1/history/compare")["new"]["id"]
    put(http, "who.txt", "two\n")
    second = get(http, "/v1/history/compare")["new"]["id"]

    by_browser = {"by": "owner", "via": "browser", "sign_in": sign_in}
    by_token = {"by": "owner", "via": "token", "token": token}
    by_page = {"by": "owner", "via": "recovery_page", "sign_in": recovery}
    by_command = {"by": "owner", "via": "command_line"}

    assert gateway.post("/v1/history/undo", json={}).status_code == 200
    assert read_last() == (by_browser, by_browser, "owner", "history.undone")
    assert http.post("/v1/history/redo", json={}).status_code == 200
    assert read_last() == (by_token, by_token, f"token:{token}", "history.redone")
    assert http.post("/v1/history/restore", json={"entry": first}).status_code == 200
    assert read_last() == (by_token, by_token, f"token:{token}", "history.restored")
    assert gateway.post("/v1/history/revert", json={"entry": second, "choose": {"": "old"}}).status_code == 200
    assert read_last() == (by_browser, by_browser, "owner", "history.reverted")
    assert undo_on_page(page).location.startswith("/?done=")
    assert read_last() == (by_page, by_page, "owner", "history.undone")
    assert f"by owner (recovery page, sign-in {recovery})" in page.get("/").text
    # The page knows who asks; a request cannot claim to be someone else.
    assert page.post("/v1/history/redo", json={"who": {"by": "agent", "agent": "claude"}}).status_code == 200
    assert read_last() == (by_page, by_page, "owner", "history.redone")
    harness.environment.pop("SSH_CONNECTION", None)
    assert harness.run("restore", str(second)).returncode == 0
    assert read_last() == (by_command, by_command, "owner", "history.restored")
    assert "owner (command line)" in harness.run("log", "-n", "1").stdout
