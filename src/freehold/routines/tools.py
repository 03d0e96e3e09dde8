"""Host tools of routines: an agent lists them, and adds one when the owner has approved its exact text."""

from datetime import UTC, datetime

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.threads import run_blocking
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.tool import HostTool, Json, ToolCaller
from freehold.computer.contract.conventions import WORKSPACE
from freehold.gateway.services import Services
from freehold.routines.clock import WallClock
from freehold.routines.records import Routine
from freehold.routines.routine_store import RoutineStore, plan_times
from freehold.routines.rules import check_routine
from freehold.routines.spec_text import read_spec
from freehold.routines.workflows.records import digest_source

MAX_LISTED = 200
MAX_SPEC = 8_000
KEYS = (
    "One trigger: cron, every, at, files, event, after. One piece of work: prompt, command, checklist or workflow. Bounds, such as"
    " budget, longest, hours, overlap, retries."
)


def make_routine_tools(services: Services) -> list[HostTool]:
    store = RoutineStore(services.timeline, WallClock())
    return [_list_tool(store), _add_tool(services, store)]


def _list_tool(store: RoutineStore) -> HostTool:
    async def show(caller: ToolCaller, given: Json) -> str:
        await run_blocking(store.prepare)
        found = await run_blocking(store.list_routines, "", MAX_LISTED)
        return "\n".join(_line(routine) for routine in found) or "There are no routines."

    return HostTool("routines_list", "List the user's routines: what begins by itself, and when.", {}, (), show)


def _add_tool(services: Services, store: RoutineStore) -> HostTool:
    async def add(caller: ToolCaller, given: Json) -> str:
        name, spec = given["name"], read_spec(given["routine"])
        check_routine(name, spec)
        await run_blocking(store.prepare)
        source = ""
        if spec.workflow is not None:
            # Only the file that the owner has read may run.
            text = await services.computer.files.read_text(f"{WORKSPACE}/{spec.workflow}", limit=MAX_SPEC)
            spec = spec.model_copy(update={"sha256": digest_source(text)})
            source = f"\n\n{spec.workflow}:\n{text}"
        # Exactly this text is stored: what the owner has read is what will run.
        times = [f"{moment:%Y-%m-%d %H:%M %Z}" for moment in plan_times(spec, store.clock, 3)]
        when = f"\n\nIt would begin: {', '.join(times)}" if times else ""
        text = f"[routines.{name}]\n{given['routine'].strip()}{when}{source}"
        await ask_permission(caller, make_text_request("host", f"Add the routine {name}", text))

        def put() -> Routine:
            return store.add(name, spec, who=f"session:{caller.session}")

        return _line(await run_blocking(put))

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


def _line(routine: Routine) -> str:
    following = "" if routine.next is None else f"  next {datetime.fromtimestamp(routine.next, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{routine.name}  {routine.trigger}  {routine.state}{following}"
