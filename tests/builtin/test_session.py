"""How the built-in agent stores a conversation: appended, cut where the program was killed, and read from 0.1.0."""

import json
from pathlib import Path

import pytest

from freehold.builtin.conversation import (
    Message,
    ModelMessage,
    ModelText,
    OpaquePart,
    TokenUsage,
    ToolRequest,
    ToolResult,
    UserImage,
    UserMessage,
    UserText,
)
from freehold.builtin.session import data_folder, fork_session, list_sessions, load_session, new_session

OLD = Path(__file__).parent / "session-0.1.0.json"
MESSAGES: list[Message] = [
    UserMessage((UserText("Look"), UserImage("AAAA", "image/png"))),
    ModelMessage(
        (OpaquePart("responses", {"type": "reasoning"}), ModelText("Yes."), ToolRequest("c1", "read", "{}", "sig")),
        TokenUsage(10, 5, 2),
    ),
    UserMessage((ToolResult("c1", "read", "text", failed=True),)),
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_messages_come_back_as_they_were(tmp_path: Path) -> None:
    session = new_session(str(tmp_path), [])
    for message in MESSAGES:
        session.append(message)
    assert load_session(session.id, str(tmp_path), []).messages == MESSAGES


def test_a_turn_writes_its_own_messages_and_no_others(tmp_path: Path) -> None:
    session = new_session(str(tmp_path), [])
    sizes = []
    for _ in range(50):
        before = _log(session.id).stat().st_size if _log(session.id).exists() else 0
        session.append(MESSAGES[0])
        sizes.append(_log(session.id).stat().st_size - before)
    assert len(set(sizes)) == 1


def test_a_shorter_conversation_replaces_the_longer_one(tmp_path: Path) -> None:
    session = new_session(str(tmp_path), [])
    for message in MESSAGES:
        session.append(message)
    session.replace_messages(MESSAGES[:1])
    session.append(MESSAGES[1])
    assert load_session(session.id, str(tmp_path), []).messages == MESSAGES[:2]


def test_a_message_that_was_being_written_at_a_kill_is_cut_off(tmp_path: Path) -> None:
    session = new_session(str(tmp_path), [])
    session.append(MESSAGES[0])
    whole = _log(session.id).read_bytes()
    session.append(MESSAGES[1])
    line = _log(session.id).read_bytes()[len(whole) :]
    for cut in range(len(line)):
        _log(session.id).write_bytes(whole + line[:cut])
        loaded = load_session(session.id, str(tmp_path), [])
        assert loaded.messages == MESSAGES[:1]
        loaded.append(MESSAGES[2])
        assert load_session(session.id, str(tmp_path), []).messages == [MESSAGES[0], MESSAGES[2]]


def test_a_fork_has_the_messages_and_goes_its_own_way(tmp_path: Path) -> None:
    session = new_session(str(tmp_path), [])
    session.append(MESSAGES[0])
    fork = fork_session(session.id, str(tmp_path), [])
    fork.append(MESSAGES[1])
    assert load_session(session.id, str(tmp_path), []).messages == MESSAGES[:1]
    assert load_session(fork.id, str(tmp_path), []).messages == MESSAGES[:2]
    assert {row["sessionId"] for row in list_sessions()} == {session.id, fork.id}


def test_a_conversation_of_0_1_0_is_read_and_continued(tmp_path: Path) -> None:
    name = "0" * 32
    place = data_folder() / "sessions" / f"{name}.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(OLD.read_bytes())
    for _ in range(2):
        session = load_session(name, str(tmp_path), [])
        assert (session.mode, session.title) == ("accept-edits", "Look at this")
        first, answer, results, done, last = session.messages[:5]
        assert first == UserMessage((UserText("Look at this"), UserImage("+//+IGltYWdl", "image/png")))
        assert isinstance(answer, ModelMessage)
        assert answer.usage == TokenUsage(100, 20, 50)
        assert [(part.call, part.parse()) for part in answer.tool_requests] == [
            ("c1", {"path": "a.txt"}),
            ("c2", {"command": "ls"}),
        ]
        assert results.parts[0] == ToolResult("c1", "read", "the text")
        assert isinstance(results.parts[1], ToolResult)
        assert results.parts[1].failed
        assert done.parts == (ModelText("Done."),)
        assert last.parts == (UserText("And now?"),)
    session.append(ModelMessage((ModelText("Now this."),)))
    assert len(load_session(name, str(tmp_path), []).messages) == 6
    assert "messages" not in json.loads(place.read_bytes())


def _log(name: str) -> Path:
    return data_folder() / "sessions" / f"{name}.jsonl"
