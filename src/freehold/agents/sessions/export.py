"""Exports a session piece by piece, however long it is: as Markdown for people, as JSON for programs."""

import json
from collections.abc import Callable, Iterable, Iterator

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.rows import SessionEventRow, SessionRow

ReadEvents = Callable[[], Iterable[SessionEventRow]]
"""All events, from the first one on, each time it is called."""
PIECE = 64 * 1024
"""Bytes that are sent at once, at least."""


def gather_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces."""
    found = bytearray()
    for piece in pieces:
        found += piece
        if len(found) >= PIECE:
            yield bytes(found)
            found.clear()
    yield bytes(found)


def export_json(row: SessionRow, read: ReadEvents) -> Iterator[bytes]:
    """In ASCII: an agent's text may contain half of a character, which has no UTF-8."""
    yield b'{"session": %s, "events": [' % json.dumps(row.as_json()).encode("ascii")
    separator = b""
    for event in read():
        yield separator + json.dumps(event.as_json()).encode("ascii")
        separator = b", "
    yield b"]}"


def export_markdown(row: SessionRow, read: ReadEvents) -> Iterator[bytes]:
    """Half of a character becomes a question mark."""
    last = {event.data["id"]: event.seq for event in read() if event.kind == "tool"}
    space = ""
    for lines in _list_parts(row, read(), last):
        text = space + "".join(f"{line}\n" for line in lines)
        plain = text.rstrip()
        space = text[len(plain) :]
        yield plain.encode("utf-8", "replace")
    yield b"\n"


def _list_parts(row: SessionRow, events: Iterable[SessionEventRow], last: dict[str, int]) -> Iterator[list[str]]:
    """`last`: the number of the last event of each tool call, which has all of it."""
    yield [f"# {row.title}", "", f"{row.agent}, {row.created}", ""]
    for event in events:
        data = event.data
        if event.kind == "turn.started":
            yield [f"## Turn {event.turn}", "", *_quote(data["prompt"]["text"]), ""]
            yield [f"- file: `{path}`" for path in data["prompt"]["files"]]
        elif event.kind == "message":
            yield [data["text"], ""]
        elif event.kind == "thought":
            yield ["<details><summary>Thought</summary>", "", data["text"], "", "</details>", ""]
        elif event.kind == "tool" and last.get(data["id"]) == event.seq:
            yield [*_tool_lines(data), ""]
        elif event.kind == "plan":
            entries = data["entries"]
            yield [*(f"- [{'x' if one['status'] == 'completed' else ' '}] {one['content']}" for one in entries), ""]
        elif event.kind == "approval" and data["state"] == "answered":
            yield [f"*Asked: {data['title']}; answered: {data['answer']}*", ""]
        elif event.kind == "turn.ended":
            yield [*_end_lines(data), ""]


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
