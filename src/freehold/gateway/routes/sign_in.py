"""Sign in with AT Protocol or a one-time sign-in link, and sign out."""

import asyncio
import logging
import re
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, RedirectResponse

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.error_responses import RateLimited
from freehold.gateway.inputs import RequestBody
from freehold.gateway.page import PageLink, render_page
from freehold.gateway.principal import principal_of
from freehold.gateway.routes.pages import PAGES
from freehold.gateway.routing import get, post
from freehold.identity.sign_ins import HANDOVER_TTL, LinkPurpose

BACK = "Back to the sign-in page"
SIGN_IN_SECONDS = 600
RETURN_COOKIE = "__Host-freehold-return"
# One of our own pages, with the code of a waiting program if there is one. A redirect goes nowhere else.
RETURN_PAGE = re.compile(rf"(?:{'|'.join(re.escape(page) for page in PAGES)})(?:#[A-Z]{{4}}-[A-Z]{{4}})?")

log = logging.getLogger("freehold.gateway.sign-in")


class AccountSignInBody(BaseModel):
    """Sign-in with the owner's account."""

    handle: str | None
    origin: str = Field(description="The origin of the control center, where the sign-in must begin.")


class SignInOptionsBody(BaseModel):
    """The ways to sign in here."""

    atproto: AccountSignInBody | None
    link: bool


class SignInLinkTokenBody(RequestBody):
    """The token of a sign-in link."""

    token: str = Field(min_length=20, max_length=200)


class EmptyObjectBody(RequestBody):
    """An empty object."""


class BeginSignInBody(RequestBody):
    """The page that the browser wanted to open."""

    return_to: str = Field(
        default="/", max_length=100, description="One of our own pages. The browser is sent there after the sign-in."
    )


class SignInRedirectBody(BaseModel):
    """The address that the browser must open next."""

    redirect: str


class SignedInBody(BaseModel):
    """This browser is signed in."""

    key: str = Field(description="The page keeps it in its own storage and sends it as `Authorization: Sign-In KEY`.")
    return_to: str = Field(description="The page to open now: one of our own.")


class SignedOutBody(BaseModel):
    done: bool = True


def check_return_page(page: str | None) -> str:
    """The page to open after the sign-in: `/` unless it is one of our own pages."""
    return page if page is not None and page != "/sign-in" and RETURN_PAGE.fullmatch(page) else "/"


def set_cookie(response: Response, name: str, value: str, *, seconds: int) -> None:
    response.set_cookie(name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def delete_cookie(response: Response, name: str) -> None:
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")


class SignInRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._sign_in = context.sign_in

    @get("/v1/sign-in", scope="anyone")
    async def list_sign_in_options(self) -> SignInOptionsBody:
        """The ways to sign in here."""
        owner = self._services.manifest.owner
        if owner.did is None:
            return SignInOptionsBody(atproto=None, link=True)
        return SignInOptionsBody(
            atproto=AccountSignInBody(handle=owner.handle, origin=self._services.base_url), link=False
        )

    @post("/v1/sign-in/link", scope="anyone")
    async def redeem_sign_in_link(
        self, body: SignInLinkTokenBody, request: Request, response: Response
    ) -> SignedInBody:
        """Exchange a sign-in link, or a finished sign-in with the owner's account, for the key of a sign-in."""
        principal = principal_of(request.scope)
        purpose: LinkPurpose
        if self._services.manifest.owner.did is None:
            purpose = "browser"
            self._sign_in.count_attempt(principal.address)
        else:
            purpose = "atproto"
            self._sign_in.count_callback(principal.address)
        created = await asyncio.to_thread(
            self._services.sign_ins.redeem_link,
            body.token,
            label=_label(request),
            address=principal.address,
            purpose=purpose,
            replaces=None if principal.sign_in is None else principal.sign_in.id,
        )
        if created is None:
            raise FreeholdError(
                "sign-in.link-expired",
                "This sign-in link was already used or is older than ten minutes",
                hint="Make a new one on the machine that runs Freehold: freehold open",
            )
        sign_in, key = created
        await self._sign_in.record_sign_in(sign_in)
        page = check_return_page(request.cookies.get(RETURN_COOKIE)) if purpose == "atproto" else "/"
        if purpose == "atproto":
            delete_cookie(response, RETURN_COOKIE)
        return SignedInBody(key=key, return_to=page)

    @post("/v1/sign-in/atproto", scope="anyone")
    async def begin_sign_in(self, body: BeginSignInBody, request: Request, response: Response) -> SignInRedirectBody:
        """Begin a sign-in with the owner's account. The browser must open the returned address."""
        from freehold.identity.atproto.flow import SIGN_IN_COOKIE

        self._sign_in.count_attempt(principal_of(request.scope).address)
        started = await self._sign_in.get_flow().start()
        set_cookie(response, SIGN_IN_COOKIE, started.binding, seconds=SIGN_IN_SECONDS)
        set_cookie(response, RETURN_COOKIE, check_return_page(body.return_to), seconds=SIGN_IN_SECONDS)
        return SignInRedirectBody(redirect=started.redirect)

    @get("/oauth/callback", include_in_schema=False, scope="anyone")
    async def finish_sign_in(self, request: Request) -> Response:
        from freehold.identity.atproto.flow import SIGN_IN_COOKIE
        from freehold.identity.atproto.problems import SignInProblem

        address = principal_of(request.scope).address
        page = check_return_page(request.cookies.get(RETURN_COOKIE))
        back = PageLink(BACK, "/sign-in" if page == "/" else page)
        response: Response
        try:
            self._sign_in.count_callback(address)
            await self._sign_in.get_flow().finish(
                request.query_params.multi_items(), request.cookies.get(SIGN_IN_COOKIE)
            )
        except SignInProblem as problem:
            response = render_page(
                title=problem.title, message=problem.message, hint=problem.hint, status=problem.kind.status, link=back
            )
        except FreeholdError as error:
            title = "Too many attempts" if isinstance(error, RateLimited) else "Sign-in failed"
            response = render_page(
                title=title, message=error.message, hint=error.hint, status=error.kind.status, link=back
            )
        else:
            # The page exchanges this token for its key. Nothing that signs in is in a cookie or stays in the address.
            token = await asyncio.to_thread(self._services.sign_ins.create_link, "atproto", HANDOVER_TTL)
            response = RedirectResponse(f"/sign-in#{token}", status_code=303)
        if response.status_code >= 400:
            delete_cookie(response, RETURN_COOKIE)
        delete_cookie(response, SIGN_IN_COOKIE)
        return response

    @get("/oauth/client-metadata.json", include_in_schema=False, scope="anyone")
    async def client_metadata(self) -> Response:
        return _document(self._sign_in.get_flow().client.metadata())

    @get("/oauth/jwks.json", include_in_schema=False, scope="anyone")
    async def jwks(self) -> Response:
        return _document(self._sign_in.get_flow().client.jwks())

    @post("/v1/sign-out", scope="browser")
    async def sign_out(self, _body: EmptyObjectBody, request: Request) -> SignedOutBody:
        """End this browser's sign-in."""
        sign_in = principal_of(request.scope).sign_in
        assert sign_in is not None  # the scope `browser` guarantees it
        await asyncio.to_thread(self._services.sign_ins.revoke, sign_in.id)
        await asyncio.to_thread(
            self._services.timeline.append, "identity.signed_out", {"session": sign_in.id}, who="owner"
        )
        return SignedOutBody()


def _label(request: Request) -> str:
    return request.headers.get("user-agent", "unknown browser")


def _document(content: dict[str, Any] | None) -> Response:
    if content is None:
        raise FreeholdError("sign-in.not-found", "A Freehold without a public address has no OAuth client document")
    return JSONResponse(content, headers={"cache-control": "no-cache"})
