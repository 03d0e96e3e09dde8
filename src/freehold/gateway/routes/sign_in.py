"""The front door: AT Protocol, the one-time link, and the way out again."""

import asyncio
import logging
import re
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, RedirectResponse

from freehold.errors import FreeholdError
from freehold.gateway.addresses import crowd_of
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.limits import RateLimit
from freehold.gateway.needs import needs
from freehold.gateway.page import Link, show_page
from freehold.gateway.refusals import TooMany, status_of
from freehold.gateway.routes.pages import PAGES
from freehold.identity.sessions import COOKIE, Session

if TYPE_CHECKING:
    from freehold.identity.atproto.flow import SignIn

BACK = "Back to the sign-in page"
SIGN_IN_SECONDS = 600
WAY_COOKIE = "__Host-freehold-way"
# One of our own pages, with the code of a program that waits when there is one: nothing else is ever led to.
WAY = re.compile(rf"(?:{'|'.join(re.escape(page) for page in PAGES)})(?:#[A-Z]{{4}}-[A-Z]{{4}})?")

log = logging.getLogger("freehold.gateway.sign-in")


class OwnerOffer(BaseModel):
    """Signing in with the owner's account."""

    handle: str | None
    origin: str = Field(description="Where the sign-in must begin: servers answer to 127.0.0.1, not to localhost.")


class Offer(BaseModel):
    """How one can sign in here."""

    atproto: OwnerOffer | None
    link: bool


class OneTimeToken(BaseModel):
    """The token of a one-time link."""

    model_config = ConfigDict(extra="forbid")
    token: str = Field(min_length=20, max_length=200)


class Nothing(BaseModel):
    """An empty object."""

    model_config = ConfigDict(extra="forbid")


class BeginSignIn(BaseModel):
    """Where the browser was when it was shown the door."""

    model_config = ConfigDict(extra="forbid")
    way: str = Field(default="/", max_length=100, description="A page of ours; it is led there afterwards.")


class Redirect(BaseModel):
    """Where the browser must go next."""

    redirect: str


class Done(BaseModel):
    done: bool = True


class FrontDoor:
    """Keeps the sign-in of this gateway; the AT Protocol half is loaded when somebody first uses it."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._sign_in: SignIn | None = None
        self._per_address = RateLimit(rate=1 / 6, burst=20)
        self._in_all = RateLimit(rate=1, burst=60)
        self._answers = RateLimit(rate=1 / 6, burst=20)

    def throttle(self, address: str) -> None:
        """Counts a try; one who is refused for their own address takes nothing from what all have together."""
        wait = self._per_address.wait(crowd_of(address)) or self._in_all.wait("")
        if wait > 0:
            raise TooMany("sign-in.too-many", "Too many tries to sign in", wait)

    def throttle_answer(self, address: str) -> None:
        """Counts an answer from an authorization server. Not in all: others must not be able to shut the owner out."""
        if (wait := self._answers.wait(crowd_of(address))) > 0:
            raise TooMany("sign-in.too-many", "Too many tries to sign in", wait)

    def sign_in(self) -> "SignIn":
        if self._sign_in is None:
            from freehold.identity.atproto.client import loopback_client, public_client
            from freehold.identity.atproto.flow import SignIn
            from freehold.identity.keys import ensure_keys, read_client_key

            house = self._house
            manifest = house.manifest
            if manifest.owner.did is None:
                raise FreeholdError(
                    "sign-in.no-owner",
                    "This Freehold has no owner account",
                    hint="Set one with: freehold init --owner your.handle --force; until then use: freehold open",
                )
            public = manifest.gateway.public_url
            if public is not None:
                # Made here and not at boot, so that the keeper never has to load the cryptography.
                ensure_keys(house.home)
            client = (
                public_client(public, read_client_key(house.home)) if public else loopback_client(manifest.gateway.port)
            )
            self._sign_in = SignIn(
                owner=manifest.owner.did,
                client=client,
                database=house.home.identity,
                on_event=house.timeline.append,
                plc_url=manifest.owner.plc_url,
                network=house.network,
            )
        return self._sign_in

    def close(self) -> None:
        if self._sign_in is not None:
            self._sign_in.close()

    async def welcome(self, session: Session) -> None:
        data = {"session": session.id, "method": session.method, "address": session.address, "label": session.label}
        await asyncio.to_thread(self._house.timeline.append, "identity.signed_in", data, who="owner")


def way_of(told: str | None) -> str:
    """The page to lead to; the first one for whatever is not a page of ours."""
    return told if told is not None and told != "/sign-in" and WAY.fullmatch(told) else "/"


def give_cookie(response: Response, name: str, value: str, *, seconds: int) -> None:
    response.set_cookie(name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="lax")


def take_cookie(response: Response, name: str) -> None:
    response.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")


def add_sign_in(app: FastAPI, house: House) -> FrontDoor:
    door = FrontDoor(house)
    lifetime = house.manifest.gateway.session_absolute

    def label(request: Request) -> str:
        return request.headers.get("user-agent", "unknown browser")

    @app.get("/v1/sign-in")
    @needs("anyone")
    async def offer() -> Offer:
        """How one can sign in here."""
        owner = house.manifest.owner
        if owner.did is None:
            return Offer(atproto=None, link=True)
        return Offer(atproto=OwnerOffer(handle=owner.handle, origin=house.base_url), link=False)

    @app.post("/v1/sign-in/link")
    @needs("anyone")
    async def redeem(body: OneTimeToken, request: Request, response: Response) -> Done:
        """Exchange a one-time link for a session."""
        address = principal_of(request.scope).address
        door.throttle(address)
        made = await asyncio.to_thread(
            house.sessions.redeem_link,
            body.token,
            label=label(request),
            address=address,
            replaces=request.cookies.get(COOKIE),
        )
        if made is None:
            raise FreeholdError(
                "sign-in.link-expired",
                "This link has been used, or is older than ten minutes",
                hint="Make another on the machine Freehold runs on: freehold open",
            )
        session, secret = made
        give_cookie(response, COOKIE, secret, seconds=lifetime)
        await door.welcome(session)
        return Done()

    @app.post("/v1/sign-in/atproto")
    @needs("anyone")
    async def start(body: BeginSignIn, request: Request, response: Response) -> Redirect:
        """Begin to sign in with the owner's account; the browser goes to the address given."""
        from freehold.identity.atproto.flow import SIGN_IN_COOKIE

        door.throttle(principal_of(request.scope).address)
        started = await door.sign_in().start()
        give_cookie(response, SIGN_IN_COOKIE, started.binding, seconds=SIGN_IN_SECONDS)
        give_cookie(response, WAY_COOKIE, way_of(body.way), seconds=SIGN_IN_SECONDS)
        return Redirect(redirect=started.redirect)

    @app.get("/oauth/callback", include_in_schema=False)
    @needs("anyone")
    async def callback(request: Request) -> Response:
        from freehold.identity.atproto.flow import SIGN_IN_COOKIE
        from freehold.identity.atproto.problems import SignInProblem

        address = principal_of(request.scope).address
        way = way_of(request.cookies.get(WAY_COOKIE))
        back = Link(BACK, "/sign-in" if way == "/" else way)
        response: Response
        try:
            door.throttle_answer(address)
            did = await door.sign_in().finish(request.query_params.multi_items(), request.cookies.get(SIGN_IN_COOKIE))
        except SignInProblem as problem:
            response = show_page(
                title=problem.title, message=problem.message, hint=problem.hint, status=problem.status, link=back
            )
        except FreeholdError as error:
            title = "Not now" if isinstance(error, TooMany) else "That did not work"
            response = show_page(
                title=title, message=error.message, hint=error.hint, status=status_of(error), link=back
            )
        else:
            session, secret = await asyncio.to_thread(
                house.sessions.create,
                did,
                label=label(request),
                address=address,
                method="atproto",
                replaces=request.cookies.get(COOKIE),
            )
            await door.welcome(session)
            response = RedirectResponse(way, status_code=303)
            give_cookie(response, COOKIE, secret, seconds=lifetime)
        take_cookie(response, SIGN_IN_COOKIE)
        take_cookie(response, WAY_COOKIE)
        return response

    @app.get("/oauth/client-metadata.json", include_in_schema=False)
    @needs("anyone")
    async def client_metadata() -> Response:
        return _document(door.sign_in().client.metadata())

    @app.get("/oauth/jwks.json", include_in_schema=False)
    @needs("anyone")
    async def jwks() -> Response:
        return _document(door.sign_in().client.jwks())

    @app.post("/v1/sign-out")
    @needs("browser")
    async def sign_out(_body: Nothing, request: Request, response: Response) -> Done:
        """End this browser's session."""
        session = principal_of(request.scope).session
        assert session is not None  # the guard lets only browsers in here
        await asyncio.to_thread(house.sessions.revoke, session.id)
        await asyncio.to_thread(house.timeline.append, "identity.signed_out", {"session": session.id}, who="owner")
        take_cookie(response, COOKIE)
        return Done()

    return door


def _document(content: dict[str, Any] | None) -> Response:
    if content is None:
        raise FreeholdError("sign-in.not-found", "A Freehold without a public address publishes no client document")
    return JSONResponse(content, headers={"cache-control": "no-cache"})
