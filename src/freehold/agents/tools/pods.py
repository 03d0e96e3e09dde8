"""Host tools for personal data. An agent reaches only what the owner has granted it, and can ask for more."""

from typing import Any

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.sessions.reach import Reach
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.memory import FindFacts, SessionFacts
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.slots import Slot, SlotCall, SlotCaller
from freehold.slots.pods.checks import check_folder
from freehold.slots.pods.contract import (
    MAX_MEDIA,
    MAX_PATH,
    AccessMode,
    FindDocuments,
    GetDocument,
    GrantAccess,
    ListFolder,
    ListGrants,
    PodPage,
    PutDocument,
)

MAX_READ = 100_000
MAX_WRITTEN = 64_000
_REACHES: dict[Reach, str] = {
    "once": " for one call: the next one there uses it up",
    "conversation": " in this conversation",
    "always": "",
}
_PATH: Json = {"type": "string", "minLength": 1, "maxLength": MAX_PATH, "description": "Such as notes/today.md."}
_FOLDER: Json = {"type": "string", "maxLength": MAX_PATH, "description": "Such as notes/. Empty: everything."}


def make_pod_tools(slot: Slot, find_facts: FindFacts) -> list[HostTool]:
    """The tools of the pods slot; none when it is off."""
    if slot.status.state == "off":
        return []
    calls = _Calls(slot, find_facts)
    tools = [_list_tool(calls), _read_tool(calls), _write_tool(calls), _request_tool(calls)]
    return [one.limited("pods", reads=one.name in ("pods_list", "pods_read")) for one in tools]


class _Calls:
    def __init__(self, slot: Slot, find_facts: FindFacts) -> None:
        self._slot = slot
        self._find_facts = find_facts

    async def find_facts(self, caller: ToolCaller) -> SessionFacts:
        return await self._find_facts(caller.session)

    async def call(self, caller: ToolCaller, request: SlotCall[Any]) -> Any:
        facts = await self.find_facts(caller)
        return await self._slot.call(request, SlotCaller(f"session:{caller.session}", facts.agent, facts.above))

    async def call_as_owner(self, request: SlotCall[Any]) -> Any:
        return await self._slot.call(request, SlotCaller("owner"))


def _list_tool(calls: _Calls) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        if not given.get("folder") and "media" not in given:
            grants = (await calls.call(caller, ListGrants())).grants
            rows = [f"{one.folder or '/'}  {one.mode}{', for one call' if one.once else ''}" for one in grants]
            return "\n".join(rows) or "You have no access yet. Ask for it with pods_request."
        folder = given.get("folder", "")
        wanted = FindDocuments(given["media"], folder) if "media" in given else ListFolder(folder)
        page: PodPage = await calls.call(caller, wanted)
        rows = [f"{one.path}  {one.media or 'folder'}  {'' if one.size is None else one.size}" for one in page.entries]
        return "\n".join([*rows, *(["…"] if page.cursor else [])]) or "Nothing is there."

    media = {"type": "string", "maxLength": MAX_MEDIA, "description": "Search below the folder, such as image/*."}
    properties = {"folder": {**_FOLDER, "description": "Default: the folders that you may reach."}, "media": media}
    return HostTool("pods_list", "List the user's personal documents that you may reach.", properties, (), show)


def _read_tool(calls: _Calls) -> HostTool:
    async def read(caller: ToolCaller, given: Json) -> str:
        found = await calls.call(caller, GetDocument(given["path"]))
        try:
            text = (found.content or b"").decode()
        except UnicodeDecodeError:
            return f"It is not text: {found.info.media}, {found.info.size} bytes."
        return text if len(text) <= MAX_READ else text[:MAX_READ] + "\n… (cut off)"

    return HostTool("pods_read", "Read one of the user's personal documents.", {"path": _PATH}, ("path",), read)


def _write_tool(calls: _Calls) -> HostTool:
    async def write(caller: ToolCaller, given: Json) -> str:
        request = PutDocument(given["path"], given.get("media", "text/plain"), given["content"])
        made = await calls.call(caller, request)
        return f"Written: {made.path}, {made.size} bytes."

    properties = {
        "path": _PATH,
        "content": {"type": "string", "maxLength": MAX_WRITTEN},
        "media": {"type": "string", "maxLength": MAX_MEDIA, "description": "Default: text/plain."},
    }
    return HostTool("pods_write", "Write a personal document of the user.", properties, ("path", "content"), write)


def _request_tool(calls: _Calls) -> HostTool:
    async def request(caller: ToolCaller, given: Json) -> str:
        """The owner sees exactly what each answer allows."""
        folder, facts = check_folder(given["folder"]), await calls.find_facts(caller)
        mode: AccessMode = "write" if given.get("write", False) else "read"
        act, shown, agent = "read and change" if mode == "write" else "read", folder or "/", facts.agent
        reaches = (
            f"Once: one call in {shown}, such as one list or one document.",
            f"This conversation: {act} everything in {shown} in this conversation, until you delete it or revoke this.",
            f"Always: {act} everything in {shown} in every conversation of {agent}, until you revoke it.",
        )
        words = "\n".join((f"{agent} asks to {act} {shown}:", given["why"], "", *reaches))
        asked = make_text_request("host", f"Let {agent} {act} {shown}", words, (f"pods {shown}",), scope="admin")
        reach = await ask_permission(caller, asked)
        if reach == "always":
            await calls.call_as_owner(GrantAccess(agent, folder, mode))
        if reach != "always" or facts.above:
            # A run reaches no more than the agents for which it works, unless the owner has told it so itself.
            grant = GrantAccess(agent, folder, mode, session=caller.session, once=reach == "once")
            await calls.call_as_owner(grant)
        return f"The user lets you {act} {shown}{_REACHES[reach]}."

    properties: dict[str, Json] = {
        "folder": _FOLDER,
        "write": {"type": "boolean", "description": "Default: reading only."},
        "why": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What you need it for."},
    }
    return HostTool(
        "pods_request",
        "Ask the user for access to a folder of personal documents.",
        properties,
        ("folder", "why"),
        request,
    )
