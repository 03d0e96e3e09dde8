"""A minimal application on `freehold.identity` with the sign-in routes of the gateway."""

import asyncio
import json
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from freehold.identity.atproto.attempts import ATTEMPT_TTL
from freehold.identity.atproto.fetcher import NetworkOverrides
from freehold.identity.atproto.flow import SIGN_IN_COOKIE, OAuthFlow
from freehold.identity.atproto.oauth_client import CALLBACK, JWKS, METADATA, OAuthClient
from freehold.identity.atproto.problems import SignInProblem
from freehold.identity.sign_ins import SignIns

COOKIE = "__Host-test-sign-in"
POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'"

SCRIPT = """
const post = async (path, body) => {
  const response = await fetch(path, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(body ?? {})})
  const answer = await response.json()
  document.body.dataset.outcome = response.ok ? 'ok' : answer.error.code
  return response.ok ? answer : null
}
for (const button of document.querySelectorAll('button[data-post]')) button.onclick = async () => {
  const answer = await post(button.dataset.post)
  if (answer) location.assign(answer.redirect)
}
const link = new URLSearchParams(location.hash.slice(1)).get('link')
if (link) {
  history.replaceState(null, '', location.pathname)
  post('/v1/sign-in/link', {token: link}).then((answer) => answer && location.assign(answer.redirect))
}
"""


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class SignInApp:
    """Without `owner`, only sign-in links work."""

    def __init__(
        self,
        database: Path,
        *,
        owner: str | None,
        client: OAuthClient | None,
        plc_url: str = "",
        network: NetworkOverrides | None = None,
    ) -> None:
        self.clock = Clock()
        self.events: list[tuple[str, Mapping[str, str]]] = []
        self.sign_ins = SignIns(database, owner=owner, clock=self.clock)
        self.client = client
        self.flow: OAuthFlow | None = None
        if owner is not None and client is not None:
            self.flow = OAuthFlow(
                owner=owner,
                client=client,
                database=database,
                on_event=lambda kind, data: self.events.append((kind, data)),
                plc_url=plc_url,
                network=network,
                clock=self.clock,
            )
        self.app = Starlette(
            routes=[
                Route("/", self.home),
                Route("/sign-in", self.show_sign_in),
                Route("/sign-in.js", self.script),
                Route(CALLBACK, self.finish),
                Route(METADATA, self.metadata),
                Route(JWKS, self.jwks),
                Route("/v1/sign-in/atproto", self.start, methods=["POST"]),
                Route("/v1/sign-in/link", self.redeem, methods=["POST"]),
                Route("/v1/sign-out", self.sign_out, methods=["POST"]),
                Route("/v1/sign-out/everywhere", self.sign_out_everywhere, methods=["POST"]),
            ],
            exception_handlers={SignInProblem: self.problem},
        )

    def close(self) -> None:
        self.sign_ins.close()
        if self.flow is not None:
            self.flow.close()

    async def home(self, request: Request) -> Response:
        sign_in = self.sign_ins.verify(request.cookies.get(COOKIE, ""))
        if sign_in is None:
            return RedirectResponse("/sign-in", 303)
        buttons = {"Sign out": "/v1/sign-out", "Sign out everywhere": "/v1/sign-out/everywhere"}
        return _html("At home", f"Signed in as {sign_in.did}", buttons=buttons)

    async def show_sign_in(self, request: Request) -> Response:
        # The callback goes to the origin of the client, so the cookie must be set there.
        if self.client is not None and request.url.netloc != self.client.origin.split("://")[1]:
            return RedirectResponse(self.client.origin + "/sign-in", 303)
        return _html("Sign in", "This Freehold belongs to its owner", buttons={"Sign in": "/v1/sign-in/atproto"})

    async def script(self, request: Request) -> Response:
        return Response(SCRIPT, media_type="text/javascript")

    async def start(self, request: Request) -> Response:
        if not self._same_origin(request) or self.flow is None:
            return JSONResponse({"error": {"code": "guard.origin"}}, 403)
        started = await self.flow.start()
        response = JSONResponse({"redirect": started.redirect})
        _set_cookie(response, SIGN_IN_COOKIE, started.binding, int(ATTEMPT_TTL))
        return response

    async def finish(self, request: Request) -> Response:
        assert self.flow is not None
        did = await self.flow.finish(request.query_params.multi_items(), request.cookies.get(SIGN_IN_COOKIE))
        _, secret = await asyncio.to_thread(
            self.sign_ins.create,
            did,
            label=request.headers.get("user-agent", ""),
            address=request.client.host if request.client else "",
            method="atproto",
            replaces=None if (old := self.sign_ins.verify(request.cookies.get(COOKIE, ""))) is None else old.id,
        )
        response = RedirectResponse("/", 303)
        _set_cookie(response, COOKIE, secret, None)
        _set_cookie(response, SIGN_IN_COOKIE, "", 0)
        return response

    async def redeem(self, request: Request) -> Response:
        if not self._same_origin(request):
            return JSONResponse({"error": {"code": "guard.origin"}}, 403)
        token = json.loads(await request.body())["token"]
        redeemed = await run_in_threadpool(
            self.sign_ins.redeem_link, token, label=request.headers.get("user-agent", ""), address=""
        )
        if redeemed is None:
            return JSONResponse({"error": {"code": "sign-in.link"}}, 403)
        response = JSONResponse({"redirect": "/"})
        _set_cookie(response, COOKIE, redeemed[1], None)
        return response

    async def metadata(self, request: Request) -> Response:
        document = self.client.metadata() if self.client else None
        return Response(status_code=404) if document is None else JSONResponse(document)

    async def jwks(self, request: Request) -> Response:
        document = self.client.jwks() if self.client else None
        return Response(status_code=404) if document is None else JSONResponse(document)

    async def sign_out(self, request: Request) -> Response:
        if not self._same_origin(request):
            return JSONResponse({"error": {"code": "guard.origin"}}, 403)
        if (sign_in := self.sign_ins.verify(request.cookies.get(COOKIE, ""))) is not None:
            await run_in_threadpool(self.sign_ins.revoke, sign_in.id)
        response = JSONResponse({"redirect": "/sign-in"})
        _set_cookie(response, COOKIE, "", 0)
        return response

    async def sign_out_everywhere(self, request: Request) -> Response:
        if not self._same_origin(request) or self.sign_ins.verify(request.cookies.get(COOKIE, "")) is None:
            return JSONResponse({"error": {"code": "guard.sign-in"}}, 403)
        await run_in_threadpool(self.sign_ins.revoke_all)
        return JSONResponse({"redirect": "/sign-in"})

    async def problem(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, SignInProblem)
        if request.method == "POST":
            return JSONResponse({"error": error.body()}, error.kind.status)
        return _html(error.title, error.message, status=error.kind.status, code=error.code)

    def _same_origin(self, request: Request) -> bool:
        origin = self.client.origin if self.client else str(request.base_url).rstrip("/")
        return request.headers.get("origin") == origin


def _set_cookie(response: Response, name: str, value: str, age: int | None) -> None:
    response.set_cookie(name, value, max_age=age, path="/", secure=True, httponly=True, samesite="lax")


def _html(
    title: str, message: str, *, buttons: Mapping[str, str] | None = None, status: int = 200, code: str = ""
) -> Response:
    offered = "".join(f'<button data-post="{path}">{escape(name)}</button>' for name, path in (buttons or {}).items())
    text = (
        f'<!doctype html><title>{escape(title)}</title><body data-code="{escape(code)}"><h1>{escape(title)}</h1>'
        f'<p id=message>{escape(message)}</p>{offered}<script src="/sign-in.js"></script>'
    )
    headers = {"content-security-policy": POLICY, "referrer-policy": "no-referrer", "cache-control": "no-store"}
    return HTMLResponse(text, status, headers)
