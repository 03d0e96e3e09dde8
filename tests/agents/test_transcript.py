"""What an agent's updates come to, without an agent."""

from freehold.agents.board import Board


def chunk(text: str, name: str = "m") -> dict[str, object]:
    return {"sessionUpdate": "agent_message_chunk", "messageId": name, "content": {"type": "text", "text": text}}


def test_a_piece_says_where_in_its_message_it_belongs() -> None:
    """A client that came late, or missed a piece, can tell; pieces of one pause are one."""
    board = Board()
    board.take(chunk("Hel"))
    board.take(chunk("lo"))
    assert board.take_deltas() == [{"kind": "message", "id": "m", "at": 0, "text": "Hello"}]
    board.take(chunk(" you"))
    assert board.take_deltas() == [{"kind": "message", "id": "m", "at": 5, "text": " you"}]


def test_words_before_and_after_a_tool_are_never_one_piece() -> None:
    """An agent may go on under the same name: what follows the tool is a message of its own."""
    board = Board()
    board.take(chunk("before"))
    board.take({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls"})
    board.take(chunk("after"))
    assert [(delta["at"], delta["text"]) for delta in board.take_deltas()] == [(0, "before"), (0, "after")]


def test_what_is_being_said_can_be_asked_for_whole() -> None:
    board = Board()
    assert board.speaking() == []
    board.take(chunk("Hel"))
    board.take_deltas()
    board.take(chunk("lo"))
    assert board.speaking() == [{"kind": "message", "id": "m", "at": 0, "text": "Hello"}]
    board.finish()
    assert board.speaking() == []
