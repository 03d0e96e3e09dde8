"""Host tools for work items. An agent acts in its own name: it releases and closes only what it holds."""

import json
from typing import Any

from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.slots import Slot, SlotCall, SlotCaller
from freehold.slots.beads.contract import (
    KINDS,
    MAX_PRIORITY,
    MAX_TITLE,
    Bead,
    BeadDetails,
    ClaimBead,
    CloseBead,
    CommentBead,
    CreateBead,
    GetBead,
    ListBeads,
    ReleaseBead,
)

MAX_LISTED = 50
MAX_WORDS = 16_000
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 64, "description": "The id of the item."}
_LONG: Json = {"type": "string", "minLength": 1, "maxLength": MAX_WORDS}


def make_bead_tools(slot: Slot) -> list[HostTool]:
    """The tools of the beads slot; none when it is off."""
    if slot.status.state == "off":
        return []
    tools = [_list_tool(slot), _show_tool(slot), _create_tool(slot), *_change_tools(slot)]
    return [one.limited("beads", reads=one.name in ("beads_list", "beads_show")) for one in tools]


async def _call(slot: Slot, caller: ToolCaller, request: SlotCall[Any]) -> Any:
    return await slot.call(request, SlotCaller(f"session:{caller.session}"))


def _list_tool(slot: Slot) -> HostTool:
    async def list_items(caller: ToolCaller, given: Json) -> str:
        mine = f"session:{caller.session}" if given.get("mine", False) else None
        wanted = ListBeads(
            ready=given.get("ready", False), holder=mine, text=given.get("text"), limit=given.get("limit", 20)
        )
        page = await _call(slot, caller, wanted)
        return "\n".join(_line(bead) for bead in page.beads) or "There are no such items."

    properties: dict[str, Json] = {
        "ready": {
            "type": "boolean",
            "description": "Only items that can be begun: open, and waiting for no other item.",
        },
        "mine": {"type": "boolean", "description": "Only items that you hold."},
        "text": {"type": "string", "maxLength": 200, "description": "Text in the title or the description."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED, "description": "How many at most."},
    }
    return HostTool("beads_list", "List the user's work items, the most important first.", properties, (), list_items)


def _show_tool(slot: Slot) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        return _describe(await _call(slot, caller, GetBead(given["id"])))

    return HostTool("beads_show", "Show one work item with its comments.", {"id": _ID}, ("id",), show)


def _create_tool(slot: Slot) -> HostTool:
    async def create(caller: ToolCaller, given: Json) -> str:
        request = CreateBead(
            given["title"],
            given.get("description", ""),
            given.get("kind", "task"),
            given.get("priority", 2),
            tuple(given.get("labels", ())),
            given.get("parent"),
            tuple(given.get("needs", ())),
        )
        return _line(await _call(slot, caller, request))

    texts = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 64}}
    properties: dict[str, Json] = {
        "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE},
        "description": {**_LONG, "minLength": 0},
        "kind": {"type": "string", "maxLength": 20, "description": f"One of: {', '.join(KINDS)}."},
        "priority": {"type": "integer", "minimum": 0, "maximum": MAX_PRIORITY, "description": "0 is first."},
        "labels": {**texts, "maxItems": 20},
        "parent": {**_ID, "description": "The item that it is part of."},
        "needs": {**texts, "maxItems": 100, "description": "Ids of items that must be closed first."},
    }
    return HostTool("beads_create", "Create a work item for the user or for later.", properties, ("title",), create)


def _change_tools(slot: Slot) -> list[HostTool]:
    async def claim(caller: ToolCaller, given: Json) -> str:
        return _line(await _call(slot, caller, ClaimBead(given["id"])))

    async def release(caller: ToolCaller, given: Json) -> str:
        return _line(await _call(slot, caller, ReleaseBead(given["id"])))

    async def comment(caller: ToolCaller, given: Json) -> str:
        return _line(await _call(slot, caller, CommentBead(given["id"], given["text"])))

    async def close(caller: ToolCaller, given: Json) -> str:
        return _line(await _call(slot, caller, CloseBead(given["id"], given["reason"], given["evidence"])))

    why = {**_LONG, "description": "Why it is closed."}
    evidence = {**_LONG, "description": "What shows that it is done, such as a test that passes and its output."}
    return [
        HostTool("beads_claim", "Take a work item, so that nobody else works on it.", {"id": _ID}, ("id",), claim),
        HostTool("beads_release", "Give back a work item that you hold.", {"id": _ID}, ("id",), release),
        HostTool("beads_comment", "Comment on a work item.", {"id": _ID, "text": _LONG}, ("id", "text"), comment),
        HostTool(
            "beads_close",
            "Close a work item that is done.",
            {"id": _ID, "reason": why, "evidence": evidence},
            ("id", "reason", "evidence"),
            close,
        ),
    ]


def _line(bead: Bead) -> str:
    state = "blocked" if bead.blocked else bead.status.replace("_", " ")
    held = f", held by {bead.holder}" if bead.holder else ""
    return f"{bead.id}  P{bead.priority}  {bead.kind}  {state}{held}  {bead.title}"


def _describe(details: BeadDetails) -> str:
    bead = details.bead
    facts = {
        "labels": bead.labels,
        "part of": bead.parent,
        "needs": bead.needs,
        "blocks": details.blocks,
        "children": details.children,
        "closed because": bead.close_reason,
        "evidence": bead.evidence,
    }
    shown = {name: value for name, value in facts.items() if value}
    lines = [_line(bead), *([json.dumps(shown, ensure_ascii=False)] if shown else [])]
    if bead.description:
        lines += ["", bead.description]
    for one in details.comments:
        lines += ["", f"Comment by {one.author}:", *(f"> {line}" for line in one.text.splitlines())]
    return "\n".join(lines)
