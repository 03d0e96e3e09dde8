"""Host tools of routines: an agent lists them, and adds one when the owner has approved its exact text."""

from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.gateway.services import Services

MAX_SPEC = 8_000
KEYS = (
    "One trigger: cron, every, at, files, event, after. One piece of work: prompt, command, checklist or workflow. Bounds, such as"
    " budget, longest, hours, overlap, retries."
)


def make_routine_tools(services: Services) -> list[HostTool]:
    return [_list_tool(services), _add_tool(services)]


def _list_tool(services: Services) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        from freehold.routines.tool_calls import list_routines

        return await list_routines(services)

    return HostTool("routines_list", "List the user's routines: what begins by itself, and when.", {}, (), show)


def _add_tool(services: Services) -> HostTool:
    async def add(caller: ToolCaller, given: Json) -> str:
        from freehold.routines.tool_calls import add_routine

        return await add_routine(services, caller, given)

    properties: dict[str, Json] = {
        "name": {"type": "string", "minLength": 1, "maxLength": 63, "description": "Small letters, digits, - and _."},
        "routine": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_SPEC,
            "description": f'Its keys as TOML, one a line, without a header. {KEYS} Example:\ncron = "0 7 * * MON-FRI"\nprompt = "Report what changed since yesterday."',
        },
    }
    words = "Add a routine: work that begins by itself, at times or when something happens. The user is asked first."
    return HostTool("routines_add", words, properties, ("name", "routine"), add)
