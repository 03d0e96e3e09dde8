"""apply_patch."""

from freehold.builtin.json_rpc import Json
from freehold.builtin.patch import PatchedFile, apply_patch_text
from freehold.builtin.tool_call import ToolError, make_diff
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tools.files import read_text, replace_text


async def apply_patch(ctx: ToolContext, patch: str) -> str:
    """Change several places or files at once. If one part does not apply, nothing is changed.

    The format is
    *** Begin Patch
    *** Update File: path
    @@ a line before the change, if the place is not unique
     an unchanged line
    -a removed line
    +an added line
    *** Add File: path
    +every line of the file
    *** Delete File: path
    *** End Patch
    A unified diff is also accepted.

    Args:
        patch: The patch.
    """
    session = ctx.session

    def read(path: str) -> str | None:
        place, _ = session.resolve_path(path)
        return read_text(place) if place.exists() else None

    try:
        outcomes, problem = apply_patch_text(patch, read), None
    except ToolError as trouble:
        outcomes, problem = [], trouble
    paths = [outcome.path for outcome in outcomes]
    title = f"Patch {', '.join(paths[:3])}{' …' if len(paths) > 3 else ''}" if paths else "Patch"
    async with ctx.start_call(title, "edit", {"patch": patch}, paths) as tool_call:
        if problem is not None:
            raise problem
        shown = [_shown(ctx, outcome) for outcome in outcomes]
        await tool_call.ask_permission(shown, inside=all(session.resolve_path(path)[1] for path in paths))
        for outcome in outcomes:
            if read(outcome.path) != outcome.old:
                raise ToolError(f"{outcome.path} has changed since it was read; read it again")
        for outcome in outcomes:
            place, _ = session.resolve_path(outcome.path)
            if outcome.new is None:
                place.unlink()
            else:
                replace_text(place, outcome.old, outcome.new)
        await tool_call.end("", content=shown)
        return f"Changed {', '.join(dict.fromkeys(paths))}"


def _shown(context: ToolContext, outcome: PatchedFile) -> Json:
    return make_diff(str(context.session.resolve_path(outcome.path)[0]), outcome.old, outcome.new or "")
