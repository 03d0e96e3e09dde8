"""Session events that are built from an agent's updates, without an agent."""

from freehold.agents.sessions.transcript import OpenMessage, TranscriptBuilder


def chunk(text: str, name: str = "m") -> dict[str, object]:
    return {"sessionUpdate": "agent_message_chunk", "messageId": name, "content": {"type": "text", "text": text}}


def test_a_delta_has_its_position_in_the_message() -> None:
    """A client that missed a delta can see that. The chunks between two pauses are one delta."""
    builder = TranscriptBuilder()
    builder.add_update(chunk("Hel"))
    builder.add_update(chunk("lo"))
    assert builder.pop_deltas() == [{"kind": "message", "id": "m", "at": 0, "text": "Hello"}]
    builder.add_update(chunk(" you"))
    assert builder.pop_deltas() == [{"kind": "message", "id": "m", "at": 5, "text": " you"}]


def test_text_before_and_after_a_tool_call_is_never_one_delta() -> None:
    """An agent may use the same message id again: the text after the tool call is a message of its own."""
    builder = TranscriptBuilder()
    builder.add_update(chunk("before"))
    builder.add_update({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls"})
    builder.add_update(chunk("after"))
    assert [(delta["at"], delta["text"]) for delta in builder.pop_deltas()] == [(0, "before"), (0, "after")]


def test_a_message_that_is_not_finished_can_be_read_completely() -> None:
    builder = TranscriptBuilder()
    assert builder.unfinished_messages() == []
    builder.add_update(chunk("Hel"))
    builder.pop_deltas()
    builder.add_update(chunk("lo"))
    assert builder.unfinished_messages() == [{"kind": "message", "id": "m", "at": 0, "text": "Hello"}]
    assert [builder.open_message(1, at) for at in (2, 3, 4)] == [
        OpenMessage(1, "message", "m", at, "Hello"[at:]) for at in (2, 3, 4)
    ]
    assert builder.open_message(1, 5) is None
    assert builder.open_message(2, 4) == OpenMessage(1, "message", "m", 0, "Hello")
    builder.finish_message()
    assert builder.unfinished_messages() == []
