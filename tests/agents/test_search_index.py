"""Search in conversations: what is found, what is never syntax, and what is no longer found."""

import json
import sqlite3
import tarfile
from pathlib import Path

import pytest

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions import search_index
from freehold.agents.sessions.rows import DraftEvent
from freehold.agents.sessions.schema import SCHEMA
from freehold.agents.sessions.search_index import fill_slice
from freehold.agents.sessions.store import SessionStore
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

GOLDEN = Path(__file__).parent.parent / "golden"
BEFORE_THE_INDEX = SCHEMA[:5]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    store = SessionStore(Timeline(tmp_path / "timeline.db"))
    store.prepare()
    return store


def message(text: str) -> DraftEvent:
    return "message", {"text": text, "id": "m", "role": "agent"}


def prompted(text: str, *files: str) -> DraftEvent:
    return "turn.started", {"prompt": {"text": text, "files": list(files), "images": []}, "key": "k"}


def talk(store: SessionStore, *events: DraftEvent, turn: int = 1) -> str:
    session = store.create("actor", "Untitled", None, who="owner").id
    store.append(session, turn, events)
    return session


def found(store: SessionStore, query: str) -> list[str]:
    return [row.id for row in store.search(query=query)]


def count_index_rows(store: SessionStore) -> int:
    """Asks the index itself: a word that every text of these tests has."""
    ((rows,),) = store.timeline.query("SELECT count(*) FROM agents_search WHERE agents_search MATCH 'everywhere'")
    return int(rows)


def test_one_prompt_or_message_has_every_word_and_the_last_may_be_a_beginning(store: SessionStore) -> None:
    both = talk(store, message("The release pipeline builds twice"))
    talk(store, message("the release"), message("a pipeline"))
    asked = talk(store, prompted("Fix the RELEASE and its pipelines", "src/checkout.py"))
    assert found(store, "release pipel") == [asked, both]
    assert found(store, "pipeline release") == [both]  # only the last word may be a beginning
    assert found(store, "checkout.py") == [asked]
    assert found(store, "ipeline") == []
    assert found(store, "text") == []  # the names of our own fields are not part of a conversation


def test_the_last_changed_session_comes_first_and_pages_follow_each_other(store: SessionStore) -> None:
    sessions = [talk(store, message(f"everywhere {number}")) for number in range(5)]
    while store.get(sessions[1]).updated <= store.get(sessions[-1]).updated:  # times are in milliseconds
        store.append(sessions[1], 2, [message("and again")])
    first = store.search(query="everywhere", limit=2)
    assert first[0].id == sessions[1]
    rest = store.search(query="everywhere", cursor=f"{first[-1].updated} {first[-1].id}")
    rows = first + rest
    assert {row.id for row in rows} == set(sessions)
    assert rows == sorted(rows, key=lambda row: (row.updated, row.id), reverse=True)
    store.update(sessions[0], title=None, archived=True, who="owner")
    assert sessions[0] not in found(store, "everywhere")
    assert [row.id for row in store.search(query="everywhere", archived=True)] == [sessions[0]]


def test_accents_and_case_make_no_difference_and_every_script_is_found(store: SessionStore) -> None:
    session = talk(
        store, message("Ein Café in Ångström, 日本語の学生です。 한국어로도 됩니다 \U0001f389 done\U0001f680")
    )
    for query in ("cafe", "CAFÉ", "angstrom", "学生", "日本語", "국어", "\U0001f389", "\U0001f680", "done", "学生で"):
        assert found(store, query) == [session], query
    for query in ("生学", "\U0001f40d"):
        assert found(store, query) == [], query


@pytest.mark.parametrize(
    "query",
    [
        '"', '""', "*", "-", "^", "(", "a AND", "NEAR", "NEAR(", 'NEAR("a" "b")', "OR", "NOT x", "text:hay", "{text}:",
        "hay*stack", "hay\0stack", "\ud800", "%", "_", "\\", "';--", "\U0001f9ff", "( OR " * 2000, "字" * 10_000,
        "a" * 10_000, "b " * 5_000, '" ' * 5_000, "\x01", " ",
    ],
)  # fmt: skip
def test_nothing_that_the_owner_types_is_syntax(store: SessionStore, query: str) -> None:
    talk(store, message("hay in a stack"))
    assert found(store, query) == []


def test_what_looks_like_syntax_is_found_where_it_was_written(store: SessionStore) -> None:
    session = talk(store, message('use NEAR and OR, "quoted" -flag, snake_case, a.b-c, 100% \ud800 \0 zero'))
    for query in ("NEAR", "OR", '"quoted"', "-flag", "snake_ca", "a.b-c", "100%", "and OR", "zero"):
        assert found(store, query) == [session], query


def test_titles_are_found_by_any_part_and_its_marks_are_plain(store: SessionStore) -> None:
    session = store.create("actor", "100% done: ünïcode?", None, who="owner").id
    assert found(store, "00% d") == [session]
    assert found(store, "code?") == [session]
    assert found(store, "100_") == []


def test_what_is_deleted_or_rewound_leaves_the_index(store: SessionStore) -> None:
    kept = talk(store, message("everywhere kept"))
    rewound = talk(store, prompted("everywhere one"), message("everywhere two"))
    store.append(rewound, 2, [message("everywhere three")])
    copied = store.create("actor", "Copy", None, who="owner", parent=rewound).id
    store.copy_events(rewound, copied)
    assert count_index_rows(store) == 7
    store.rewind(rewound, 2, who="owner")
    assert found(store, "three") == [copied]
    store.delete(copied, who="owner")
    assert found(store, "three") == []
    store.delete(rewound, who="owner")
    assert found(store, "everywhere") == [kept]
    assert count_index_rows(store) == 1
    with store.timeline.transaction() as tx:
        tx.execute("INSERT INTO agents_search (agents_search) VALUES ('integrity-check')")


def write_old_home(timeline: Timeline, events: int) -> None:
    """Two conversations as a Freehold without the index stored them."""
    timeline.ensure_schema("agents", *BEFORE_THE_INDEX)
    with timeline.transaction() as tx:
        for session in ("old", "older"):
            tx.execute(
                "INSERT INTO agents_session (id, title, named, agent, status, created, updated, seq) "
                "VALUES (?, 'Old', 1, 'actor', 'idle', '', ?, ?)",
                (session, session, events),
            )
            for seq in range(1, events + 1):
                data = json.dumps({"text": f"everywhere wörd{seq}"})
                tx.execute("INSERT INTO agents_event VALUES (?, ?, '', 1, 'message', ?)", (session, seq, data))


def test_an_old_home_is_found_before_while_and_after_its_index_is_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "FILL_ROWS", 10)
    with Timeline(tmp_path / "timeline.db") as timeline:
        write_old_home(timeline, 25)
        store = SessionStore(timeline)
        store.prepare()
        slices = 0
        while True:
            assert found(store, "everywhere") == ["older", "old"]
            assert found(store, "everywhere wörd25") == ["older", "old"]
            if not fill_slice(timeline):
                break
            slices += 1
        assert slices == 6
        assert count_index_rows(store) == 50
        assert found(store, "WORD25") == ["older", "old"]


def test_a_fill_that_is_cut_short_goes_on_and_what_happens_meanwhile_is_indexed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "FILL_ROWS", 10)
    with Timeline(tmp_path / "timeline.db") as timeline:
        write_old_home(timeline, 25)
        SessionStore(timeline).prepare()
        fill_slice(timeline)
    with Timeline(tmp_path / "timeline.db") as timeline:
        store = SessionStore(timeline)
        store.prepare()
        ((session, following),) = timeline.query("SELECT session, next FROM agents_search_fill WHERE next > 0")
        assert following == 11
        store.append(session, 2, [message("everywhere said meanwhile")])
        assert found(store, "meanwhile") == [session]
        store.rewind(session, 2, who="owner")
        store.append(session, 3, [message("everywhere said after that")])
        other = {"old": "older", "older": "old"}[session]
        store.delete(other, who="owner")
        while fill_slice(timeline):
            pass
        assert found(store, "everywhere") == [session]
        assert count_index_rows(store) == 26


def test_the_home_of_0_1_0_is_searched_before_and_after_its_index_is_filled(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "0.1.0" / "home.tar.gz") as tar:
        file = tar.extractfile("home/timeline.db")
        assert file is not None
        (tmp_path / "timeline.db").write_bytes(file.read())
    expected = json.loads((GOLDEN / "0.1.0" / "expected.json").read_text())
    session = next(each for each in expected["sessions"] if each["title"] == "A dark page")
    says = next(event["says"] for event in session["transcript"] if event["kind"] == "turn.started")
    with Timeline(tmp_path / "timeline.db") as timeline:
        store = SessionStore(timeline)
        store.prepare()
        before = found(store, says)
        assert session["id"] in before
        while fill_slice(timeline):
            pass
        assert found(store, says) == before
        ((rows,),) = timeline.query("SELECT count(*) FROM agents_search_fill")
        assert rows == 0


def test_a_search_uses_the_index_and_reads_no_event(store: SessionStore) -> None:
    talk(store, message("everywhere"))
    condition, given = search_index.make_condition("everywhere")
    plan = store.timeline.query(f"EXPLAIN QUERY PLAN SELECT id FROM agents_session WHERE {condition}", given)
    assert any("VIRTUAL TABLE INDEX" in row[3] for row in plan)
    ((rows,),) = store.timeline.query("SELECT count(*) FROM agents_search_fill")
    assert rows == 0
    assert sqlite3.sqlite_version_info >= (3, 25)  # the tokenizer's option `categories`


def test_an_odd_event_can_be_stored_and_deleted(store: SessionStore) -> None:
    odd: list[Json] = [{"text": "x" * 500_000}, {"text": ""}, {"text": "\ud83d half"}]
    session = talk(store, *[("message", data) for data in odd])
    assert found(store, "half") == [session]
    store.delete(session, who="owner")


def test_unfinished_turns_are_found_without_reading_the_ended_ones(store: SessionStore) -> None:
    for state in ("sent", "queued"):
        plan = store.timeline.query(
            f"EXPLAIN QUERY PLAN SELECT DISTINCT session FROM agents_turn WHERE state = '{state}'"
        )
        assert f"agents_turn_{state}" in plan[0][3]


def test_a_search_that_takes_too_long_is_ended_and_holds_up_no_other_reader(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent can write what is slow to search: one character, half a million times."""
    session = talk(store, *[message("\u7684" * 60_000)] * 3)
    monkeypatch.setattr("freehold.agents.sessions.store.SEARCH_TIMEOUT", 0.0)
    with store.timeline._reading, pytest.raises(FreeholdError) as slow:  # no search waits for the others either
        store.search(query="\u7684" * 100)
    assert slow.value.code == "session.search.too-slow"
    monkeypatch.undo()
    assert [row.id for row in store.search(query="\u7684" * 100)] == [session]


def test_a_long_phrase_is_searched_by_its_begin() -> None:
    for query in ("\u7684" * 200, "\u7684" * 30 + " " + "\u7684" * 170, "word " * 200, "a\u7684" * 100):
        condition, (phrase, *likes) = search_index.make_condition(query)
        words = [word for word in phrase.replace('"', " ").replace("*", " ").split() if word]
        assert 0 < len(words) <= search_index.MAX_WORDS, query
        assert condition.count("LIKE") == len(likes)


def test_the_begin_of_a_long_message_is_found_and_all_of_it_leaves_the_index(store: SessionStore) -> None:
    """Half a million characters held up every other writer for a second."""
    session = talk(store, message("begin " + "x " * search_index.MAX_INDEXED + " end"))
    assert found(store, "begin") == [session]
    assert found(store, "end") == []
    store.delete(session, who="owner")
    assert found(store, "begin") == []
    with store.timeline.transaction() as tx:
        tx.execute("INSERT INTO agents_search (agents_search) VALUES ('integrity-check')")


def test_a_large_conversation_leaves_the_index_in_slices(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one piece it held up every other writer for minutes. When it is cut short, everything is found again."""
    monkeypatch.setattr(search_index, "SLICE_TEXT", 30)
    session = talk(store, *(message(f"everywhere {number}") for number in range(10)))
    copied = store.create("actor", "Copy", None, who="owner", parent=session).id
    store.copy_events(session, copied)
    assert count_index_rows(store) == 20
    left = []
    while search_index.remove_index_slice(store.timeline, session):
        left.append(count_index_rows(store) - 10)
        assert sorted(found(store, "everywhere 0")) == sorted([session, copied])  # still found, without the index
    assert left == [7, 4, 1, 0]
    while fill_slice(store.timeline):
        pass
    assert count_index_rows(store) == 20
    store.delete(session, who="owner")
    assert found(store, "everywhere") == [copied]
    assert count_index_rows(store) == 10
    with store.timeline.transaction() as tx:
        tx.execute("INSERT INTO agents_search (agents_search) VALUES ('integrity-check')")
