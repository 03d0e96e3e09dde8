"""Turns a saved conversation into ACP updates, for a client that loads the session."""

from collections.abc import Iterator

from freehold.builtin.conversation import ModelText, ToolRequest, ToolResult, UserMessage, UserText
from freehold.builtin.json_rpc import Json
from freehold.builtin.session import BuiltinSession
from freehold.builtin.tool_call import MAX_SHOWN, shorten


def replay_updates(session: BuiltinSession) -> Iterator[Json]:
    for message in session.messages:
        if isinstance(message, UserMessage):
            words = "\n".join(part.text for part in message.parts if isinstance(part, UserText))
            if words:
                yield _chunk("user_message_chunk", words)
        for part in message.parts:
            match part:
                case ModelText(text=text):
                    yield _chunk("agent_message_chunk", text)
                case ToolRequest():
                    yield {
                        "sessionUpdate": "tool_call",
                        "toolCallId": part.call,
                        "title": part.name,
                        "kind": "other",
                        "status": "pending",
                        "rawInput": _given(part),
                    }
                case ToolResult():
                    content = {"type": "text", "text": shorten(part.text, MAX_SHOWN)}
                    yield {
                        "sessionUpdate": "tool_call_update",
                        "toolCallId": part.call,
                        "status": "failed" if part.failed else "completed",
                        "content": [{"type": "content", "content": content}],
                    }
                case _:
                    continue


def _given(part: ToolRequest) -> Json:
    try:
        return part.parse()
    except ValueError:
        return {"text": part.arguments}


def _chunk(kind: str, text: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
