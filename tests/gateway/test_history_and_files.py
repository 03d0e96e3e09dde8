"""History, files and the timeline over HTTP, with a real keeper and a real computer behind them."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.gateway.running import Running
from tests.keeper.running import Stead
from websockets.sync.client import connect

from freehold.client import Freehold
from freehold.identity.tokens import Scope, Tokens

ALL: tuple[Scope, ...] = ("read", "files", "history")


@pytest.fixture(scope="module")
def stead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stead]:
    stead = Stead(tmp_path_factory.mktemp("stead"))
    stead.run("init", check=True)
    with stead.keeper() as keeper:
        keeper.next("ready")
        yield stead


def client(stead: Stead, *scopes: Scope) -> httpx2.Client:
    with Tokens(stead.home.identity, owner=None) as tokens:
        _, secret = tokens.create(f"test-{'-'.join(scopes)}", scopes, None)
    headers = {"authorization": f"Bearer {secret}"}
    return httpx2.Client(
        base_url=f"http://localhost:{stead.gateway_port}", headers=headers, trust_env=False, timeout=60
    )


def test_the_python_client_compares_marks_and_reads_backwards(stead: Stead) -> None:
    with Tokens(stead.home.identity, owner=None) as tokens:
        _, secret = tokens.create("client", ALL, None)
    (stead.home.workspace / "by-client.txt").write_text("one\n")
    with Freehold.sync(f"http://localhost:{stead.gateway_port}", token=secret, timeout=60) as home:
        first = home.history.compare().new.id
        (stead.home.workspace / "by-client.txt").write_text("two\n")
        found = home.history.compare(first, "now", path="workspace/by-client.txt")
        assert [file["word"] for file in found.files] == ["changed"]
        assert home.history.mark_good(first).good
        assert home.history.compare("good").old == home.history.compare(first).old
        (last,) = home.timeline.read(before=2**53, kinds=["history.marked_good"], limit=1).events
        assert last.data == {"entry": first}
        assert not home.history.mark_good(first, good=False).good


@pytest.fixture(scope="module")
def http(stead: Stead) -> Iterator[httpx2.Client]:
    with client(stead, *ALL) as made:
        yield made


def get(http: httpx2.Client, address: str, **query: Any) -> Any:
    answer = http.get(address, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(http: httpx2.Client, path: str, text: str) -> None:
    assert http.put("/v1/files/content", params={"path": path}, content=text.encode()).status_code == 200


pytestmark = pytest.mark.shared_processes


def test_two_points_are_compared_and_now_is_one_of_them(http: httpx2.Client) -> None:
    """Also what history has not taken yet is in the comparison with now."""
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
def test_points_that_are_none_are_refused(http: httpx2.Client, query: dict[str, Any]) -> None:
    assert http.get("/v1/history/compare", params=query).status_code == 422


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


def test_marking_and_comparing_need_their_scopes(stead: Stead) -> None:
    with client(stead, "read") as reader, client(stead, "files") as other:
        assert reader.post("/v1/history/1/good", json={}).status_code == 403
        assert reader.get("/v1/history/compare").status_code == 200
        assert other.get("/v1/history/compare").status_code == 403
        assert reader.get("/v1/files/search", params={"query": "x"}).status_code == 403


def test_text_is_searched_without_what_package_managers_keep(http: httpx2.Client) -> None:
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


async def test_the_timeline_is_read_backwards(gateway: Running) -> None:
    """The newest before a number, in order, page by page to the beginning."""
    for number in range(5):
        gateway.house.timeline.append("test.happened", {"number": number})
    gateway.house.timeline.append("other.happened", {})
    headers = gateway.token("read")
    seen: list[int] = []
    before: int | None = 2**53
    while before is not None:
        query: dict[str, str | int] = {"before": before, "kind": "test.*", "limit": 2}
        page = (await gateway.http.get("/v1/timeline", params=query, headers=headers)).json()
        seen = [event["data"]["number"] for event in page["events"]] + seen
        before = page["next"]
    assert seen == [0, 1, 2, 3, 4]


def test_what_is_saved_moved_and_removed_by_hand_is_the_owners_and_says_why(http: httpx2.Client) -> None:
    before = get(http, "/v1/history/compare")["new"]["id"]
    put(http, "by-hand.txt", "one\n")
    assert http.post("/v1/files/move", json={"path": "by-hand.txt", "to": "moved.txt"}).status_code == 200
    assert http.post("/v1/files/remove", json={"path": "not-there"}).status_code == 404
    entry = get(http, "/v1/history/compare")["new"]
    assert entry["id"] > before
    assert entry["who"] == {"by": "owner", "agent": "token:test-read-files-history"}
    assert entry["why"] == "saved by-hand.txt, moved by-hand.txt to moved.txt"
    assert http.post("/v1/files/remove", json={"path": "moved.txt"}).status_code == 200
    assert get(http, "/v1/history/compare")["new"]["why"] == "removed moved.txt"


def test_what_is_written_in_a_terminal_of_the_page_is_that_terminals(stead: Stead, http: httpx2.Client) -> None:
    with client(stead, "read", "terminal") as made:
        opened = made.post("/v1/terminals", json={}).json()["id"]
        address = f"ws://localhost:{stead.gateway_port}/v1/terminals/{opened}/socket"
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
