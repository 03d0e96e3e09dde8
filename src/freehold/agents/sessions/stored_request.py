"""Reads a permission request that was stored by this or an earlier version."""

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.request_parts import RequestPart


def read_shown(data: Json) -> Json:
    """The data with every field of today. Freehold 0.1.0 stored the command and the changes in `details` only."""
    if "parts" in data:
        return data
    details = data.get("details") or {}
    brief = {name: details[name] for name in ("command", "folder") if name in details}
    is_question = details.get("kind") == "question"
    return {
        **data,
        "details": details if is_question else brief,
        "digest": data.get("digest", ""),
        "parts": [part.as_json() for part in _read_parts(details)],
        "complete": True,
        "hidden_bytes": 0,
        "names_nothing": False,
        "runs_by_itself": False,
        "asked_again": False,
        "agent_options": [],
    }


def _read_parts(details: Json) -> list[RequestPart]:
    parts: list[RequestPart] = []
    if details.get("command") is not None:
        parts.append(RequestPart("command", "Command", str(details["command"])))
    if details.get("folder") is not None:
        parts.append(RequestPart("folder", "Folder", str(details["folder"])))
    for one in details.get("diffs") or ():
        parts.append(RequestPart("diff", "Change", path=one["path"], old=one["old"], new=one["new"]))
    for path in details.get("paths") or ():
        parts.append(RequestPart("path", "Path", str(path), str(path)))
    if details.get("input") is not None:
        parts.append(RequestPart("text", "Request", str(details["input"])))
    return parts
