"""Exports a session: as Markdown for people, as JSON for programs."""

from collections.abc import Sequence

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.rows import SessionEventRow, SessionRow


def export_json(row: SessionRow, events: Sequence[SessionEventRow]) -> Json:
    return {"session": row.as_json(), "events": [event.as_json() for event in events]}


def export_markdown(row: SessionRow, events: Sequence[SessionEventRow]) -> str:
    lines = [f"# {row.title}", "", f"{row.agent}, {row.created}", ""]
    last = _last_tool_events(events)
    for event in events:
        data = event.data
        if event.kind == "turn.started":
            lines += [f"## Turn {event.turn}", "", *_quote(data["prompt"]["text"]), ""]
            lines += [f"- file: `{path}`" for path in data["prompt"]["files"]]
        elif event.kind == "message":
            lines += [data["text"], ""]
        elif event.kind == "thought":
            lines += ["<details><summary>Thought</summary>", "", data["text"], "", "</details>", ""]
        elif event.kind == "tool" and last[data["id"]] == event.seq:
            lines += [*_tool_lines(data), ""]
        elif event.kind == "plan":
            lines += [
                *(f"- [{'x' if one['status'] == 'completed' else ' '}] {one['content']}" for one in data["entries"]),
                "",
            ]
        elif event.kind == "approval" and data["state"] == "answered":
            lines += [f"*Asked: {data['title']}; answered: {data['answer']}*", ""]
        elif event.kind == "turn.ended":
            lines += [*_end_lines(data), ""]
    return "\n".join(lines).rstrip() + "\n"


def _last_tool_events(events: Sequence[SessionEventRow]) -> dict[str, int]:
    return {event.data["id"]: event.seq for event in events if event.kind == "tool"}


def _quote(text: str) -> list[str]:
    return [f"> {line}" for line in text.splitlines()]


def _tool_lines(data: Json) -> list[str]:
    lines = [f"**{data['kind']}** {data['title']} ({data['status']})"]
    for part in data["content"]:
        if part["type"] == "text":
            fence = _fence(part["text"])
            lines += ["", fence, part["text"].rstrip("\n"), fence]
        elif part["type"] == "diff":
            old = [f"-{line}" for line in (part["old"] or "").splitlines()]
            new = [f"+{line}" for line in part["new"].splitlines()]
            fence = _fence("\n".join([*old, *new]))
            lines += ["", f"`{part['path']}`", f"{fence}diff", *old, *new, fence]
    return lines


def _fence(text: str) -> str:
    """Longer than every fence in the text, so that the text cannot end it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def _end_lines(data: Json) -> list[str]:
    text = f"*Ended: {data['stop_reason']}"
    changes = data.get("changes")
    if changes:
        text += f"; files added {changes['added']}, changed {changes['changed']}, removed {changes['removed']}"
        text += " (other work at the same time)" if changes.get("shared") else ""
    error = data.get("error")
    return [text + "*", *([f"*{error['message']}*"] if error else [])]
