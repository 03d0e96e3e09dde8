"""The progress of a restore on the recovery page. Without scripts: the page loads itself again until the restore has ended."""

from collections.abc import Sequence

from freehold.history.model import RestoreProgress
from freehold.history.restore_control import describe_phase
from freehold.keeper.page.frame import escape_text, render_page

REFRESH_SECONDS = 2
UNCHANGED = "No file has changed yet."
CANCELLED = "It was cancelled, and no file has changed. It ends in a moment."
FINISHING = "Files are being changed, so it cannot be cancelled any more. It will be finished. You can undo it then."


def render_progress(progress: RestoreProgress, *, updates: bool) -> str:
    """A page for one restore. Whoever reads slowly can switch the `updates` off."""
    name = progress.kind.capitalize()
    address = f"restore?id={progress.id}"
    if updates:
        other = f'<a href="{address}&amp;updates=off">Stop updating this page</a>'
    else:
        other = f'<a href="{address}&amp;updates=off">Update now</a> · <a href="{address}">Update by itself</a>'
    body = (
        f'<h2>{name}</h2><section class="card pad">{_render_bar(progress)}<p class="note">{_describe(progress)}</p></section>'
        f'<div class="actions">{_render_cancel(progress, focused=True)}<a class="button" href="./">Overview</a></div>'
        f'<p class="note">{other}</p>'
    )
    return render_page(f"{_describe_share(progress)}{name}", body, refresh=REFRESH_SECONDS if updates else None)


def render_running(restores: Sequence[RestoreProgress]) -> str:
    """The part of the overview about restores that run or wait; nothing when there is none."""
    if not restores:
        return ""
    rows = "".join(
        f'<div class="row"><div class="what"><b><a href="restore?id={each.id}">{each.kind.capitalize()}</a></b>'
        f"{_render_bar(each)}<p>{_describe(each)}</p></div>{_render_cancel(each)}</div>"
        for each in restores
    )
    return f'<h2>Running now</h2><section class="card">{rows}</section>'


def _render_bar(progress: RestoreProgress) -> str:
    words = escape_text(describe_phase(progress))
    state = f' value="{progress.done}" max="{progress.total}"' if progress.total else ""
    return f'<p role="status">{words}</p><progress{state} aria-label="{words}"></progress>'


def _render_cancel(progress: RestoreProgress, *, focused: bool = False) -> str:
    """The focus stays on the button when the page loads again."""
    if not progress.cancellable:
        return ""
    focus = " autofocus" if focused else ""
    return (
        f'<form method="post" action="cancel"><input type="hidden" name="id" value="{progress.id}">'
        f'<button class="main" aria-label="Cancel the {progress.kind}"{focus}>Cancel</button></form>'
    )


def _describe(progress: RestoreProgress) -> str:
    if progress.cancellable:
        return UNCHANGED
    return CANCELLED if progress.phase in ("waiting", "planning", "preparing") else FINISHING


def _describe_share(progress: RestoreProgress) -> str:
    return f"{progress.done * 100 // progress.total} % · " if progress.total else ""
