"""Turns a saved conversation into ACP updates, for a client that loads the session."""

from collections.abc import Iterator

from pydantic_ai.messages import ModelMessagesTypeAdapter, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from freehold.builtin.json_rpc import Json
from freehold.builtin.session import BuiltinSession
from freehold.builtin.tool_call import MAX_SHOWN, shorten


def replay_updates(session: BuiltinSession) -> Iterator[Json]:
    for message in ModelMessagesTypeAdapter.validate_python(session.messages):
        for part in message.parts:
            match part:
                case UserPromptPart(content=content):
                    words = content if isinstance(content, str) else [word for word in content if isinstance(word, str)]
                    yield _chunk("user_message_chunk", words if isinstance(words, str) else "\n".join(words))
                case TextPart(content=content):
                    yield _chunk("agent_message_chunk", content)
                case ToolCallPart():
                    yield {
                        "sessionUpdate": "tool_call",
                        "toolCallId": part.tool_call_id,
                        "title": part.tool_name,
                        "kind": "other",
                        "status": "pending",
                        "rawInput": part.args_as_dict(),
                    }
                case ToolReturnPart():
                    text = {"type": "text", "text": shorten(part.model_response_str(), MAX_SHOWN)}
                    yield {
                        "sessionUpdate": "tool_call_update",
                        "toolCallId": part.tool_call_id,
                        "status": "completed" if part.outcome == "success" else "failed",
                        "content": [{"type": "content", "content": text}],
                    }
                case _:
                    continue


def _chunk(kind: str, text: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
