"""A conversation to take away: Markdown for people, JSON for programs."""

from collections.abc import Sequence

from freehold.agents.rpc import Json
from freehold.agents.store import EventRow, SessionRow


def as_json(row: SessionRow, events: Sequence[EventRow]) -> Json:
    return {"session": row.as_json(), "events": [event.as_json() for event in events]}


def as_markdown(row: SessionRow, events: Sequence[EventRow]) -> str:
    lines = [f"# {row.title}", "", f"{row.agent}, {row.created}", ""]
    last = _last_tools(events)
    for event in events:
        data = event.data
        if event.kind == "turn.started":
            lines += [f"## Turn {event.turn}", "", *_quoted(data["prompt"]["text"]), ""]
            lines += [f"- file: `{path}`" for path in data["prompt"]["files"]]
        elif event.kind == "message":
            lines += [data["text"], ""]
        elif event.kind == "thought":
            lines += ["<details><summary>Thought</summary>", "", data["text"], "", "</details>", ""]
        elif event.kind == "tool" and last[data["id"]] == event.seq:
            lines += [*_tool(data), ""]
        elif event.kind == "plan":
            lines += [
                *(f"- [{'x' if one['status'] == 'completed' else ' '}] {one['content']}" for one in data["entries"]),
                "",
            ]
        elif event.kind == "approval" and data["state"] == "answered":
            lines += [f"*Asked: {data['title']}; answered: {data['answer']}*", ""]
        elif event.kind == "turn.ended":
            lines += [*_ended(data), ""]
    return "\n".join(lines).rstrip() + "\n"


def _last_tools(events: Sequence[EventRow]) -> dict[str, int]:
    return {event.data["id"]: event.seq for event in events if event.kind == "tool"}


def _quoted(text: str) -> list[str]:
    return [f"> {line}" for line in text.splitlines()]


def _tool(data: Json) -> list[str]:
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
    """Longer than any fence within, so that nothing breaks out of it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence


def _ended(data: Json) -> list[str]:
    words = f"*Ended: {data['stop_reason']}"
    changes = data.get("changes")
    if changes:
        words += f"; files added {changes['added']}, changed {changes['changed']}, removed {changes['removed']}"
        words += " (others worked at the same time)" if changes.get("shared") else ""
    error = data.get("error")
    return [words + "*", *([f"*{error['message']}*"] if error else [])]
