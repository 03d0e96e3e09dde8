"""A permission request: what the agent wants to do, exactly and with nothing hidden."""

import hashlib
import json
import shlex
from dataclasses import dataclass

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.tool_call import ToolCall
from freehold.agents.visible_text import make_visible

MAX_SHOWN = 60_000
MAX_SHOWN_TITLE = 500


@dataclass(frozen=True)
class PermissionRequest:
    """One action to allow. `digest` identifies it: a tool call that changes becomes another request.

    Permission rules match `subjects`: the command, or each path. They are empty when the call does not say what it
    does.
    """

    kind: str
    title: str
    details: Json
    subjects: tuple[str, ...]
    digest: str
    tool: str | None = None


def request_for(tool: ToolCall) -> PermissionRequest:
    """The permission request of a tool call, with the exact command or change."""
    raw = tool.raw_input
    command = _read_command(raw)
    diffs = [part for part in tool.content if part["type"] == "diff"]
    details: Json = {}
    if command is not None:
        details["command"] = _shown(command)
        folder = raw.get("cwd") if isinstance(raw, dict) else None
        if isinstance(folder, str):
            details["folder"] = _shown(folder)
    if diffs:
        details["diffs"] = [
            {"path": _shown(one["path"]), "old": one["old"] and _shown(one["old"]), "new": _shown(one["new"])}
            for one in diffs
        ]
    if not details:
        # Some agents describe the action in the title only. Then the title is shown and counts for the digest.
        details["input"] = _shown(json.dumps(raw, ensure_ascii=False, indent=1) if raw is not None else tool.title)
        details["paths"] = [_shown(place) for place in tool.locations]
    paths = tuple(dict.fromkeys([one["path"] for one in diffs] or tool.locations))
    if tool.kind == "execute":
        subjects = (command,) if command is not None else ()
    else:
        # A call with a command that claims to be an edit matches neither command rules nor path rules.
        subjects = paths if command is None else ()
    rest = None if command or diffs else tool.title if raw is None else raw
    identity = json.dumps([tool.kind, command, diffs, rest], sort_keys=True)
    return PermissionRequest(
        tool.kind,
        make_visible(tool.title, lines=False)[:MAX_SHOWN_TITLE],
        details,
        subjects,
        hashlib.sha256(identity.encode()).hexdigest(),
        tool.id,
    )


def _read_command(raw: object) -> str | None:
    given = raw.get("command", raw.get("cmd")) if isinstance(raw, dict) else None
    if isinstance(given, str):
        return given
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        return shlex.join(given)
    return None


def _shown(text: str) -> str:
    shown = make_visible(text)
    if len(shown) <= MAX_SHOWN:
        return shown
    return f"{shown[:MAX_SHOWN]}\n⟨{len(shown) - MAX_SHOWN} more characters are not shown⟩"
