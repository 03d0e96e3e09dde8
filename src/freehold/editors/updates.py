"""The events of a session as updates of ACP."""

from typing import Any

from freehold.agents.visible_text import make_visible
from freehold.client.session_models import SessionUpdate
from freehold.editors.paths import EditorPaths

Json = dict[str, Any]
COMMANDS: list[Json] = [
    {"name": "undo", "description": "Take back the last change of the files, by whoever it was made"},
    {"name": "redo", "description": "Take back the last undo"},
    {"name": "log", "description": "Show the last changes of the files"},
]
"""What Freehold itself answers, without the agent."""
_CHUNKS = {"message": "agent_message_chunk", "thought": "agent_thought_chunk"}
_SIGNS = {"added": "+", "changed": "~", "removed": "-"}


class UpdateTranslator:
    """Of one session. What was sent as parts of a message is not sent again with the whole one."""

    def __init__(self, paths: EditorPaths) -> None:
        self._paths = paths
        self._sent: dict[str, int] = {}
        self._calls: set[str] = set()

    def translate(self, update: SessionUpdate) -> list[Json]:
        data = update.data
        match update.kind:
            case "message" | "thought" if data.get("role") != "user":
                return self._translate_text(update.kind, data, whole=not update.is_delta)
            case "tool":
                return [self._translate_call(data)]
            case "plan":
                return [{"sessionUpdate": "plan", "entries": data.get("entries") or []}]
            case "info" if data.get("title"):
                return [{"sessionUpdate": "session_info_update", "title": data["title"]}]
            case "options" if data.get("mode"):
                return [{"sessionUpdate": "current_mode_update", "currentModeId": data["mode"]}]
            case "commands":
                return [commands_update(data.get("commands") or [])]
            case "turn.ended":
                return self._translate_end(data)
            case _:
                return []

    def replay(self, update: SessionUpdate) -> list[Json]:
        """The same for a stored event, with the prompts of the owner."""
        if update.kind != "turn.started":
            return self.translate(update)
        prompt = update.data.get("prompt") or {}
        return [text_update("user_message_chunk", str(prompt.get("text") or ""))]

    def _translate_text(self, kind: str, data: Json, *, whole: bool) -> list[Json]:
        name, text = f"{kind} {data.get('id')}", str(data.get("text") or "")
        sent = self._sent.get(name, 0)
        at = 0 if whole else int(data.get("at") or 0)
        left = text[max(0, sent - at) :]
        self._sent[name] = max(sent, at + len(text))
        if whole:
            del self._sent[name]
        return [text_update(_CHUNKS[kind], left)] if left else []

    def _translate_call(self, data: Json) -> Json:
        name = str(data.get("id"))
        is_new = name not in self._calls
        self._calls.add(name)
        return {
            "sessionUpdate": "tool_call" if is_new else "tool_call_update",
            "toolCallId": name,
            "title": make_visible(str(data.get("title") or "Tool call"), lines=False),
            "kind": data.get("kind") or "other",
            "status": data.get("status") or "pending",
            "locations": [{"path": self._paths.to_editor(path)} for path in data.get("locations") or ()],
            "content": [part for one in data.get("content") or () if (part := self.content(one)) is not None],
            "rawInput": data.get("raw_input"),
        }

    def content(self, part: Json) -> Json | None:
        if part.get("type") == "diff":
            path = self._paths.to_editor(str(part.get("path")))
            return {"type": "diff", "path": path, "oldText": part.get("old"), "newText": part.get("new") or ""}
        if part.get("type") == "text":
            return {"type": "content", "content": {"type": "text", "text": part.get("text") or ""}}
        return None

    def _translate_end(self, data: Json) -> list[Json]:
        changes = data.get("changes")
        counts = [f"{sign}{changes[name]}" for name, sign in _SIGNS.items() if changes.get(name)] if changes else []
        if not counts:
            return []
        return [text_update("agent_message_chunk", f"\n\n*Files {' '.join(counts)}. `/undo` takes this back.*")]


def text_update(kind: str, text: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def commands_update(commands: list[Json]) -> Json:
    own = {one["name"] for one in COMMANDS}
    others = [{"name": one["name"], "description": one.get("description") or ""} for one in commands]
    return {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [*COMMANDS, *(one for one in others if one["name"] not in own)],
    }
