"""The host tool that tells something to others. The owner is asked first: it may leave this machine."""

import json

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.errors import FreeholdError
from freehold.slots import Slot, SlotCaller
from freehold.slots.events.calls import check_event
from freehold.slots.events.contract import MAX_SUBJECT, MAX_TYPE, PublishEvent

MAX_WORDS = 16_000


def make_event_tools(slot: Slot) -> list[HostTool]:
    """The tool of the events slot; none when it is off. What happened is searched with timeline_search."""
    return [] if slot.status.state == "off" else [_publish_tool(slot).limited("events", reads=False)]


def _publish_tool(slot: Slot) -> HostTool:
    async def publish(caller: ToolCaller, given: Json) -> str:
        data = _read_data(given.get("data", "{}"))
        check_event(given["type"], given.get("subject"), data)
        shown = json.dumps(
            {"type": given["type"], "subject": given.get("subject"), "data": data}, indent=1, ensure_ascii=False
        )
        where = "in this Freehold's log" if slot.implementation == "local" else f"to {slot.implementation}"
        await ask_permission(caller, make_text_request("host", f"Publish an event {where}", shown, scope="events"))
        request = PublishEvent(given["type"], data, given.get("subject"))
        made = await slot.call(request, SlotCaller(f"session:{caller.session}"))
        return f"Published: {made.id}"

    properties: dict[str, Json] = {
        "type": {
            "type": "string",
            "minLength": 3,
            "maxLength": MAX_TYPE,
            "description": "Words with dots, such as com.example.report.done.",
        },
        "subject": {"type": "string", "minLength": 1, "maxLength": MAX_SUBJECT, "description": "What it is about."},
        "data": {"type": "string", "minLength": 2, "maxLength": MAX_WORDS, "description": "A JSON object."},
    }
    return HostTool(
        "events_publish",
        "Publish an event for programs of the user that listen. The user is asked first.",
        properties,
        ("type",),
        publish,
    )


def _read_data(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FreeholdError("tool.wrong-arguments", "events_publish: data is not a JSON object")
    return found
