"""The history routes of the recovery page, as pages and as JSON. The guard has checked the owner before."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.history.model import RestoreProgress
from freehold.history.restore_control import CANCELLED_CODE
from freehold.history.restore_event import RestoreCall
from freehold.keeper.page.forms import read_form
from freehold.keeper.page.frame import render_notice
from freehold.keeper.page.history_view import render_history, render_preview, render_report
from freehold.keeper.page.responses import JsonResponse, redirect_to
from freehold.keeper.page.restore_jobs import RestoreJob, RestoreJobs
from freehold.keeper.page.restore_view import render_progress
from freehold.strict_json import encode

if TYPE_CHECKING:
    from freehold.keeper.api import KeeperApi
    from freehold.keeper.history_host import HistoryHost

SHOWN_ENTRIES = 12
SHOWN_PATHS = 8
MAX_COMPARED_PATHS = 2000
SHORT_SECONDS = 1.0
"""A restore that takes longer has a page of its own."""
GET_METHODS = frozenset(
    {"history.log", "history.status", "history.changes", "history.diff", "history.show", "history.restores"}
)


class RecoveryHistoryRoutes:
    def __init__(self, api: "KeeperApi", jobs: RestoreJobs) -> None:
        self._api = api
        self._jobs = jobs

    def table(self) -> list[Route]:
        return [
            Route("/undo", self.preview, methods=["GET"], name="undo"),
            Route("/redo", self.preview, methods=["GET"], name="redo"),
            Route("/undo", self.act, methods=["POST"], name="undo"),
            Route("/redo", self.act, methods=["POST"], name="redo"),
            Route("/recover", self.recover, methods=["POST"]),
            Route("/restore", self.show_restore, methods=["GET"]),
            Route("/cancel", self.cancel, methods=["POST"]),
            Route("/v1/history/{method}", self.answer_json, methods=["GET", "POST"]),
        ]

    async def render(self, report: calls.RestoreReport | None = None) -> str:
        """The history part of the overview, or the error that prevents it."""
        try:
            history = self._history()
            status = await history.call(calls.GetHistoryStatus())
            entries = (await history.call(calls.ListEntries(limit=SHOWN_ENTRIES))).entries
            changes = {
                entry.id: await history.call(calls.ListEntryChanges(entry.id, limit=SHOWN_PATHS))
                for entry in entries
                # It takes long to compare an entry with very many paths, and the first eight of them say little.
                if entry.added + entry.changed + entry.removed <= MAX_COMPARED_PATHS
            }
        except FreeholdError as error:
            return "<h2>What changed</h2>" + render_notice(error.message, error.hint, bad=True)
        return render_history(status, entries, changes, report)

    def find_report(self, entry: str | None) -> calls.RestoreReport | None:
        """The result that was recorded as this entry, if it is one of the last ones."""
        return self._jobs.find_report(int(entry)) if entry and entry.isascii() and entry.isdigit() else None

    async def list_running(self) -> tuple[RestoreProgress, ...]:
        """The restores that run or wait, whoever asked for them."""
        try:
            return (await self._history().call(calls.ListRestores())).restores
        except FreeholdError:  # it is not open yet: there is no restore
            return ()

    def describe_cancelled(self, request: Request) -> str:
        job = self._jobs.find(request.query_params.get("cancelled", ""))
        return job.error.message if job is not None and job.error is not None else ""

    async def preview(self, request: Request) -> Response:
        verb = request.url.path[1:]
        entry = _read_number(request.query_params.get("entry"))
        call = calls.PlanUndo(entry) if verb == "undo" else calls.PlanRedo()
        return HTMLResponse(render_preview(verb, await self._history().call(call), entry))

    async def act(self, request: Request) -> Response:
        entry = _read_number((await read_form(request)).get("entry"))
        who = make_author(request)
        call = calls.UndoChanges(entry, who=who) if request.url.path == "/undo" else calls.RedoChanges(who=who)
        return await self._restore(call)

    async def recover(self, request: Request) -> Response:
        finish = (await read_form(request)).get("finish") == "yes"
        return await self._restore(calls.RecoverRestore(finish, who=make_author(request)))

    async def answer_json(self, request: Request) -> Response:
        """Any call of history as JSON. The parameters of a GET are in its query, those of a POST in its body."""
        method = f"history.{request.path_params['method']}"
        if request.method == "GET":
            if method not in GET_METHODS:
                raise FreeholdError("keeper.use-post", f"{method} needs a POST request")
            params: dict[str, Any] = {
                name: int(value) if value.isdigit() and name != "path" else value
                for name, value in request.query_params.items()
            }
        else:
            params = _read_json(await request.body())
            if method in {f"history.{verb}" for verb in ("undo", "redo", "restore", "revert", "recover")}:
                # The page knows who asks; the body must not say otherwise.
                params["who"] = encode(make_author(request))
        return JsonResponse(await self._history().call_json(method, params))

    async def show_restore(self, request: Request) -> Response:
        """How far a restore is. When it has ended: its result."""
        id = request.query_params.get("id", "")
        job = self._jobs.find(id)
        if job is not None and job.ended.is_set():
            return self._show_result(job)
        progress = next((each for each in await self.list_running() if each.id == id), None)
        if progress is None and job is None:
            return redirect_to("/")
        progress = progress or RestoreProgress(id, "restore", "waiting", 0, 0, cancellable=True)
        return HTMLResponse(render_progress(progress, updates=request.query_params.get("updates") != "off"))

    async def cancel(self, request: Request) -> Response:
        """Cancel a restore that has changed no file yet. What it says afterwards is on its own page."""
        id = (await read_form(request)).get("id", "")
        await self._history().call(calls.CancelRestore(id))
        job = self._jobs.find(id)
        if job is not None:
            await job.wait(SHORT_SECONDS)
        return redirect_to(f"/restore?{urlencode({'id': id[:64]})}")

    async def _restore(self, call: RestoreCall) -> Response:
        job = self._jobs.start(call, self._history().call)
        if await job.wait(SHORT_SECONDS):
            return self._show_result(job)
        return redirect_to(f"/restore?id={job.id}")

    def _show_result(self, job: RestoreJob) -> Response:
        if job.error is not None and job.error.code == CANCELLED_CODE:
            return redirect_to(f"/?cancelled={job.id}")
        if job.report is None:
            raise job.error or FreeholdError("keeper.stopping", "The keeper is stopping")
        if job.report.unsettled:
            return HTMLResponse(render_report(job.report))
        return redirect_to(f"/?done={job.report.entry.id}")

    def _history(self) -> "HistoryHost":
        if self._api.history is None:
            raise FreeholdError("history.not-open", "The history is not open yet", hint="Try again in a moment")
        return self._api.history


def make_author(request: Request) -> calls.RequestAuthor:
    """The owner, with the sign-in that the guard has found."""
    return calls.RequestAuthor(by="owner", via="recovery_page", sign_in=request.state.owner.id)


def _read_number(text: str | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise FreeholdError("history.no-such-entry", f"{text[:40]!r} is not an entry number")
    return int(text)


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise FreeholdError("keeper.bad-params", "The body is not JSON") from None
    if not isinstance(found, dict):
        raise FreeholdError("keeper.bad-params", "The body is not a JSON object")
    return found
