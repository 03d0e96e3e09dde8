"""The history routes of the recovery page, as pages and as JSON. The guard has checked the owner before."""

import json
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from freehold.errors import FreeholdError
from freehold.history import calls
from freehold.history.restore_event import RestoreCall
from freehold.keeper.page.forms import read_form
from freehold.keeper.page.frame import render_notice
from freehold.keeper.page.history_view import render_history, render_preview, render_report
from freehold.keeper.page.responses import JsonResponse, redirect_to
from freehold.strict_json import encode

if TYPE_CHECKING:
    from freehold.keeper.api import KeeperApi
    from freehold.keeper.history_host import HistoryHost

SHOWN_ENTRIES = 12
SHOWN_PATHS = 8
MAX_COMPARED_PATHS = 2000
MAX_REPORTS = 16
GET_METHODS = frozenset({"history.log", "history.status", "history.changes", "history.diff", "history.show"})


class RecoveryHistoryRoutes:
    """The last results of undo and redo are held in memory, so that the page after the redirect can show them."""

    def __init__(self, api: "KeeperApi") -> None:
        self._api = api
        self._reports: dict[int, calls.RestoreReport] = {}

    def table(self) -> list[Route]:
        return [
            Route("/undo", self.preview, methods=["GET"], name="undo"),
            Route("/redo", self.preview, methods=["GET"], name="redo"),
            Route("/undo", self.act, methods=["POST"], name="undo"),
            Route("/redo", self.act, methods=["POST"], name="redo"),
            Route("/recover", self.recover, methods=["POST"]),
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
        return self._reports.get(int(entry)) if entry and entry.isascii() and entry.isdigit() else None

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

    async def _restore(self, call: RestoreCall) -> Response:
        report = await self._history().call(call)
        self._reports[report.entry.id] = report
        while len(self._reports) > MAX_REPORTS:
            del self._reports[next(iter(self._reports))]
        if report.unsettled:
            return HTMLResponse(render_report(report))
        return redirect_to(f"/?done={report.entry.id}")

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
