"""What the host tools of routines do. Loaded at their first call."""

from datetime import UTC, datetime

from freehold.agents.sessions.permission_request import make_text_request
from freehold.agents.threads import run_blocking
from freehold.agents.tools.definitions import ask_permission
from freehold.agents.tools.tool import Json, ToolCaller
from freehold.computer.contract.conventions import WORKSPACE
from freehold.gateway.services import Services
from freehold.routines.clock import WallClock
from freehold.routines.records import Routine
from freehold.routines.routine_store import RoutineStore, plan_times
from freehold.routines.rules import check_routine
from freehold.routines.spec_text import read_spec
from freehold.routines.tools import MAX_SPEC
from freehold.routines.workflows.records import digest_source

MAX_LISTED = 200


async def list_routines(services: Services) -> str:
    store = RoutineStore(services.timeline, WallClock())
    await run_blocking(store.prepare)
    found = await run_blocking(store.list_routines, "", MAX_LISTED)
    return "\n".join(_line(routine) for routine in found) or "There are no routines."


async def add_routine(services: Services, caller: ToolCaller, given: Json) -> str:
    store = RoutineStore(services.timeline, WallClock())
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


def _line(routine: Routine) -> str:
    following = "" if routine.next is None else f"  next {datetime.fromtimestamp(routine.next, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{routine.name}  {routine.trigger}  {routine.state}{following}"
