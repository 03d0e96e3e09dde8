"""What can be asked on :8001. Whoever comes here has been let in by the guard."""

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
from freehold.identity.sessions import COOKIE, RECOVERY_COOKIE
from freehold.keeper.page.answers import Json, refusal, see
from freehold.keeper.page.forms import read_form
from freehold.keeper.page.overview import draw_overview
from freehold.keeper.page.past import describe_done
from freehold.keeper.page.past_routes import PastRoutes
from freehold.keeper.page.signing import draw_sign_in

if TYPE_CHECKING:
    from freehold.keeper.desk import Desk

log = logging.getLogger(__name__)

TRIES, TRIES_WITHIN = 20, 60.0  # that failed, by anybody


class Routes:
    def __init__(self, desk: "Desk") -> None:
        self._desk = desk
        self._past = PastRoutes(desk)
        self._tries: collections.deque[float] = collections.deque(maxlen=TRIES)

    def table(self) -> list[Route]:
        return [
            Route("/livez", self.livez),
            Route("/", self.overview),
            Route("/sign-in", self.sign_in_page, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
            Route("/restart/{program}", self.restart_form, methods=["POST"]),
            Route("/v1/status", self.status),
            Route("/v1/restart/{program}", self.restart, methods=["POST"]),
            *self._past.table(),
        ]

    def errors(self) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
        return {FreeholdError: self._explained, HTTPException: self._no_such, Exception: self._bug}

    async def livez(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def status(self, request: Request) -> Response:
        return Json(await self._desk.status())

    async def restart(self, request: Request) -> Response:
        return Json(await self._desk.restart(request.path_params["program"]))

    async def overview(self, request: Request) -> Response:
        done = await self._past.entry(request.query_params.get("done"))
        said = describe_done(done) if done is not None else ""
        return HTMLResponse(draw_overview(await self._desk.status(), await self._past.draw(), said))

    async def restart_form(self, request: Request) -> Response:
        await self._desk.restart(request.path_params["program"], wait=False)
        return see("/")

    async def sign_in_page(self, request: Request) -> Response:
        if request.state.owner is not None:
            return see("/")
        return HTMLResponse(draw_sign_in())

    async def sign_in(self, request: Request) -> Response:
        now = asyncio.get_running_loop().time()
        if len(self._tries) == TRIES and now - self._tries[0] < TRIES_WITHIN:
            return HTMLResponse(draw_sign_in("Too many tries", "Wait a minute"), status_code=429)
        code = (await read_form(request)).get("code", "")[:64]
        found = await asyncio.to_thread(
            self._desk.sessions.redeem_link,
            code,
            label=request.headers.get("user-agent", ""),
            address=request.client.host if request.client else "",
            purpose="keeper",
        )
        if found is None:
            self._tries.append(now)
            self._desk.keeper.record("identity.sign_in_refused", {"where": "keeper"}, who="anyone")
            return HTMLResponse(
                draw_sign_in(
                    "That code is not valid",
                    "It may have been used or be too old: freehold open --keeper makes a new one",
                ),
                status_code=401,
            )
        session, secret = found
        self._desk.keeper.record(
            "identity.signed_in", {"where": "keeper", "session": session.id, "method": session.method}, who="owner"
        )
        answer = see("/")
        answer.set_cookie(RECOVERY_COOKIE, secret, secure=True, httponly=True, samesite="strict", path="/")
        return answer

    async def sign_out(self, request: Request) -> Response:
        """Ends the session that was used here, wherever it came from."""
        await asyncio.to_thread(self._desk.sessions.revoke, request.state.owner.id)
        answer = see("/sign-in")
        for name in (RECOVERY_COOKIE, COOKIE):
            answer.delete_cookie(name, secure=True, httponly=True, samesite="strict", path="/")
        return answer

    async def _explained(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, FreeholdError):
            return await self._bug(request, error)
        status = 404 if error.code.endswith(("no-such-program", "no-such-entry", "no-entry")) else 409
        return refusal(request.scope, status, error)

    async def _no_such(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        words = "There is no such page" if status == 404 else "That is not how this is asked"
        return refusal(request.scope, status, FreeholdError("keeper.no-such-page", words))

    async def _bug(self, request: Request, error: Exception) -> Response:
        error_id = secrets.token_hex(6)
        log.error("%s failed [%s]", request.url.path, error_id, exc_info=error)
        return refusal(request.scope, 500, FreeholdError("keeper.bug", "Something failed inside the keeper"), error_id)
