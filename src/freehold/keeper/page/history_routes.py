"""Undo and redo on :8001, as pages and as JSON. Whoever comes here has been let in by the guard."""

import json
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from freehold.errors import FreeholdError
from freehold.keeper.page.answers import Json, see
from freehold.keeper.page.forms import read_form
from freehold.keeper.page.frame import draw_said
from freehold.keeper.page.past import draw_outcome, draw_past, draw_preview

if TYPE_CHECKING:
    from freehold.keeper.archive import Archive
    from freehold.keeper.desk import Desk

ENTRIES, PATHS, COMPARED = 12, 8, 2000
OWNER = {"by": "owner"}


class PastRoutes:
    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    def table(self) -> list[Route]:
        return [
            Route("/undo", self.preview, methods=["GET"], name="undo"),
            Route("/redo", self.preview, methods=["GET"], name="redo"),
            Route("/undo", self.act, methods=["POST"], name="undo"),
            Route("/redo", self.act, methods=["POST"], name="redo"),
            Route("/recover", self.recover, methods=["POST"]),
            Route("/v1/history/{method}", self.ask, methods=["GET", "POST"]),
        ]

    async def draw(self) -> str:
        """The history part of the overview; what is wrong with the history is drawn in its place."""
        try:
            archive = self._archive()
            state = await archive.call("history.status", {})
            entries = (await archive.call("history.log", {"limit": ENTRIES}))["entries"]
            changes = {
                entry["id"]: await archive.call("history.changes", {"entry": entry["id"], "limit": PATHS})
                for entry in entries
                # An entry of a hundred thousand paths takes a while to compare, and eight of them say nothing.
                if entry["added"] + entry["changed"] + entry["removed"] <= COMPARED
            }
        except FreeholdError as error:
            return "<h2>What changed</h2>" + draw_said(error.message, error.hint, bad=True)
        return draw_past(state, entries, changes)

    async def entry(self, number: str | None) -> dict[str, Any] | None:
        """An entry that the address names; None for whatever is no entry."""
        if not number or not number.isdigit():
            return None
        try:
            answer = await self._archive().call("history.changes", {"entry": int(number), "limit": 1})
        except FreeholdError:
            return None
        found: dict[str, Any] = answer["entry"]
        return found

    async def preview(self, request: Request) -> Response:
        verb = request.url.path[1:]
        entry = _number(request.query_params.get("entry"))
        plan = await self._archive().call(f"history.{verb}", _params(entry) | {"dry_run": True})
        return HTMLResponse(draw_preview(verb, plan, entry))

    async def act(self, request: Request) -> Response:
        verb = request.url.path[1:]
        entry = _number((await read_form(request)).get("entry"))
        return self._done(await self._archive().call(f"history.{verb}", _params(entry) | {"who": OWNER}))

    async def recover(self, request: Request) -> Response:
        finish = (await read_form(request)).get("finish") == "yes"
        return self._done(await self._archive().call("history.recover", {"finish": finish, "who": OWNER}))

    async def ask(self, request: Request) -> Response:
        """Any question of the history as JSON: parameters in the query of a GET that changes nothing, else in the body."""
        method = f"history.{request.path_params['method']}"
        if request.method == "GET":
            if method not in ("history.log", "history.status", "history.changes", "history.diff", "history.show"):
                raise FreeholdError("keeper.use-post", f"{method} is asked with POST")
            params: Any = {
                name: int(value) if value.isdigit() and name != "path" else value
                for name, value in request.query_params.items()
            }
        else:
            params = _json(await request.body())
        return Json(await self._archive().call(method, params))

    @staticmethod
    def _done(outcome: dict[str, Any]) -> Response:
        if outcome["unsettled"]:
            return HTMLResponse(draw_outcome(outcome))
        return see(f"/?done={outcome['entry']['id']}")

    def _archive(self) -> "Archive":
        if self._desk.archive is None:
            raise FreeholdError("history.not-open", "The history is not open yet", hint="Try again in a moment")
        return self._desk.archive


def _params(entry: int | None) -> dict[str, Any]:
    return {} if entry is None else {"entry": entry}


def _number(text: str | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise FreeholdError("history.no-such-entry", f"{text[:40]!r} is not the number of an entry")
    return int(text)


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise FreeholdError("keeper.bad-params", "The body is not JSON") from None
    if not isinstance(found, dict):
        raise FreeholdError("keeper.bad-params", "The body is not a JSON object")
    return found
