"""The routes of the recovery page. The guard has already checked each request."""

import asyncio
import collections
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from freehold.errors import FreeholdError
from freehold.identity.sign_ins import RECOVERY_COOKIE, split_secret
from freehold.keeper.page.forms import read_form
from freehold.keeper.page.guard import KEY_PREFIX
from freehold.keeper.page.history_routes import RecoveryHistoryRoutes
from freehold.keeper.page.history_view import describe_report
from freehold.keeper.page.overview import render_overview
from freehold.keeper.page.responses import JsonResponse, error_response, redirect_to
from freehold.keeper.page.restore_jobs import RestoreJobs
from freehold.keeper.page.restore_view import render_running
from freehold.keeper.page.sign_in import render_sign_in
from freehold.strict_json import encode

if TYPE_CHECKING:
    from freehold.keeper.api import KeeperApi

log = logging.getLogger(__name__)

MAX_FAILED_TRIES, FAILED_TRIES_SECONDS = 20, 60.0  # of all browsers together


class PageRoutes:
    def __init__(self, api: "KeeperApi", jobs: RestoreJobs) -> None:
        self._api = api
        self._history = RecoveryHistoryRoutes(api, jobs)
        self._tries: collections.deque[float] = collections.deque(maxlen=MAX_FAILED_TRIES)

    def table(self) -> list[Route]:
        return [
            Route("/livez", self.livez),
            Route("/", self.overview),
            Route("/sign-in", self.sign_in_page, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/restart", self.restart_form, methods=["POST"]),
            Route("/v1/status", self.status),
            Route("/v1/restart/{program}", self.restart, methods=["POST"]),
            *self._history.table(),
        ]

    def errors(self) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
        return {FreeholdError: self._explained, HTTPException: self._no_such, Exception: self._bug}

    async def livez(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def status(self, request: Request) -> Response:
        return JsonResponse(encode(await self._api.status()))

    async def restart(self, request: Request) -> Response:
        return JsonResponse(encode(await self._api.restart(request.path_params["program"])))

    async def overview(self, request: Request) -> Response:
        report = self._history.find_report(request.query_params.get("done"))
        notice = describe_report(report) if report is not None else self._history.describe_cancelled(request)
        status, running = await self._api.status(), await self._history.list_running()
        history = render_running(running) + await self._history.render(report)
        return HTMLResponse(render_overview(status, history, notice, is_moving=bool(running)))

    async def restart_form(self, request: Request) -> Response:
        await self._api.restart((await read_form(request)).get("program", ""), wait=False)
        return redirect_to("/")

    async def sign_in_page(self, request: Request) -> Response:
        if request.state.owner is not None:
            return redirect_to("/")
        return HTMLResponse(render_sign_in())

    async def sign_in(self, request: Request) -> Response:
        now = asyncio.get_running_loop().time()
        if len(self._tries) == MAX_FAILED_TRIES and now - self._tries[0] < FAILED_TRIES_SECONDS:
            return HTMLResponse(render_sign_in("Too many failed tries", "Try again in a minute"), status_code=429)
        code = (await read_form(request)).get("code", "")[:64]
        found = await asyncio.to_thread(
            self._api.sign_ins.redeem_link,
            code,
            label=request.headers.get("user-agent", ""),
            address=request.client.host if request.client else "",
            purpose="keeper",
        )
        if found is None:
            self._tries.append(now)
            self._api.keeper.record("identity.sign_in_refused", {"where": "keeper"}, who="anyone")
            return HTMLResponse(
                render_sign_in(
                    "This code is not valid",
                    "It was used already or is too old. Make a new one with: freehold open --keeper",
                ),
                status_code=401,
            )
        sign_in, secret = found
        self._api.keeper.record(
            "identity.signed_in", {"where": "keeper", "session": sign_in.id, "method": sign_in.method}, who="owner"
        )
        cookie, key = split_secret(secret)
        response = redirect_to(f"{KEY_PREFIX}{key}/")
        response.set_cookie(RECOVERY_COOKIE, cookie, secure=True, httponly=True, samesite="strict", path="/")
        return response

    async def sign_out(self, request: Request) -> Response:
        """Ends the sign-in that was used."""
        await asyncio.to_thread(self._api.sign_ins.revoke, request.state.owner.id)
        response = redirect_to("/sign-in")
        response.delete_cookie(RECOVERY_COOKIE, secure=True, httponly=True, samesite="strict", path="/")
        return response

    async def _explained(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, FreeholdError):
            return await self._bug(request, error)
        return error_response(request.scope, error)

    async def _no_such(self, request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            refused = FreeholdError("keeper.method", f"This address does not accept {request.method}")
        else:
            refused = FreeholdError("keeper.no-such-page", "There is no such page")
        return error_response(request.scope, refused)

    async def _bug(self, request: Request, error: Exception) -> Response:
        error_id = secrets.token_hex(6)
        log.error("%s failed [%s]", request.url.path, error_id, exc_info=error)
        return error_response(request.scope, FreeholdError("keeper.bug", "An internal error occurred"), error_id)
