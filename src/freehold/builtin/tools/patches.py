"""apply_patch."""

from pydantic_ai import RunContext

from freehold.builtin.patch import Outcome, apply
from freehold.builtin.step import Trouble, diff
from freehold.builtin.tools.files import read_text, replace_text
from freehold.builtin.wire import Json
from freehold.builtin.work import Work


async def apply_patch(ctx: RunContext[Work], patch: str) -> str:
    """Change several places or files at once: all of it is done, or nothing when a part does not fit.

    The form is
    *** Begin Patch
    *** Update File: path
    @@ a line before the change, if it is not clear where
     a line that stays
    -a line that goes
    +a line that comes
    *** Add File: path
    +every line of it
    *** Delete File: path
    *** End Patch
    A unified diff does as well.

    Args:
        patch: The patch.
    """
    session = ctx.deps.session

    def read(path: str) -> str | None:
        place, _ = session.within(path)
        return read_text(place) if place.exists() else None

    try:
        outcomes, problem = apply(patch, read), None
    except Trouble as trouble:
        outcomes, problem = [], trouble
    paths = [outcome.path for outcome in outcomes]
    title = f"Patch {', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}" if paths else "Patch"
    async with ctx.deps.step(ctx.tool_call_id, title, "edit", {"patch": patch}, paths) as step:
        if problem is not None:
            raise problem
        shown = [_shown(ctx.deps, outcome) for outcome in outcomes]
        await step.permit(shown, inside=all(session.within(path)[1] for path in paths))
        for outcome in outcomes:
            if read(outcome.path) != outcome.old:
                raise Trouble(f"{outcome.path} has changed in the meantime; read it again")
        for outcome in outcomes:
            place, _ = session.within(outcome.path)
            if outcome.new is None:
                place.unlink()
            else:
                replace_text(place, outcome.old, outcome.new)
        await step.end("", content=shown)
        return f"Changed {', '.join(dict.fromkeys(paths))}"


def _shown(work: Work, outcome: Outcome) -> Json:
    return diff(str(work.session.within(outcome.path)[0]), outcome.old, outcome.new or "")
