"""Who is signed in, with what: `/v1/me`, `/v1/sign-ins`, `/v1/tokens`."""

import asyncio
import time
from datetime import UTC, datetime

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.needs import needs
from freehold.identity.sessions import Session
from freehold.identity.tokens import Scope, Token

MAX_TOKEN_DAYS = 366


class Me(BaseModel):
    """The caller, as Freehold knows them."""

    who: str
    did: str | None
    handle: str | None
    session: str | None
    scopes: list[Scope] | None = Field(
        description="The scopes of the API token used; null for a browser, which has all."
    )
    recovery: str = Field(
        description="The keeper's own page, which answers when the gateway does not; only on the machine itself."
    )


class SignInRow(BaseModel):
    """One signed-in browser."""

    id: str
    label: str
    address: str
    method: str
    created: datetime
    seen: datetime
    expires: datetime
    current: bool


class TokenRow(BaseModel):
    """One API token; its secret is shown only when it is made."""

    name: str
    scopes: list[Scope]
    created: datetime
    expires: datetime | None
    used: datetime | None


class NewToken(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=40)
    scopes: list[Scope] = Field(min_length=1)
    days: int | None = Field(default=30, ge=1, le=MAX_TOKEN_DAYS, description="Days until it ends; null for never.")


class MadeToken(TokenRow):
    """The token that was made, with its secret, this once."""

    secret: str


class Ended(BaseModel):
    """How many were ended."""

    ended: int


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _sign_in_row(session: Session, current: str | None) -> SignInRow:
    return SignInRow(
        id=session.id,
        label=session.label,
        address=session.address,
        method=session.method,
        created=_moment(session.created),
        seen=_moment(session.seen),
        expires=_moment(session.expires),
        current=session.id == current,
    )


def _token_row(token: Token) -> TokenRow:
    return TokenRow(
        name=token.name,
        scopes=sorted(token.scopes),
        created=_moment(token.created),
        expires=None if token.expires is None else _moment(token.expires),
        used=None if token.used is None else _moment(token.used),
    )


def add_credentials(app: FastAPI, house: House) -> None:
    def current(request: Request) -> str | None:
        session = principal_of(request.scope).session
        return None if session is None else session.id

    @app.get("/v1/me")
    @needs("read")
    async def me(request: Request) -> Me:
        """Who the caller is."""
        principal = principal_of(request.scope)
        owner = house.manifest.owner
        scopes = None if principal.token is None else sorted(principal.token.scopes)
        # By the name under which this browser is known here, for cookies go by name.
        name = "localhost" if owner.did is None else "127.0.0.1"
        recovery = f"http://{name}:{house.manifest.keeper.port}/"
        return Me(
            who=principal.who,
            did=owner.did,
            handle=owner.handle,
            session=current(request),
            scopes=scopes,
            recovery=recovery,
        )

    @app.delete("/v1/me")
    @needs("read")
    async def end_own(request: Request) -> Ended:
        """End the token, or the browser's session, with which this is asked."""
        principal = principal_of(request.scope)
        if principal.token is not None:
            await asyncio.to_thread(house.tokens.revoke, principal.token.name)
            await _note(house, "identity.token_revoked", request, name=principal.token.name)
        elif principal.session is not None:
            await asyncio.to_thread(house.sessions.revoke, principal.session.id)
            await _note(house, "identity.signed_out", request, session=principal.session.id)
        return Ended(ended=1)

    @app.get("/v1/sign-ins")
    @needs("admin")
    async def list_sign_ins(request: Request) -> list[SignInRow]:
        """Every signed-in browser, the last used first."""
        found = await asyncio.to_thread(house.sessions.list)
        return [_sign_in_row(session, current(request)) for session in found]

    @app.delete("/v1/sign-ins/{sign_in_id}")
    @needs("admin")
    async def revoke_sign_in(sign_in_id: str, request: Request) -> Ended:
        """Sign one browser out. Its sockets and streams close at once."""
        if not await asyncio.to_thread(house.sessions.revoke, sign_in_id):
            raise FreeholdError(
                "sign-in.not-found", "No such browser is signed in", hint="freehold sessions lists them"
            )
        await _note(house, "identity.session_revoked", request, session=sign_in_id)
        return Ended(ended=1)

    @app.delete("/v1/sign-ins")
    @needs("admin")
    async def revoke_sign_ins(request: Request, keep_current: bool = False) -> Ended:
        """Sign out everywhere; with `keep_current`, everywhere else."""
        kept = current(request) if keep_current else None
        ended = await asyncio.to_thread(house.sessions.revoke_all, kept)
        await _note(house, "identity.session_revoked", request, all=True, ended=ended)
        return Ended(ended=ended)

    @app.get("/v1/tokens")
    @needs("admin")
    async def list_tokens() -> list[TokenRow]:
        """Every API token, by name."""
        return [_token_row(token) for token in await asyncio.to_thread(house.tokens.list)]

    @app.post("/v1/tokens", status_code=201)
    @needs("browser")
    async def create_token(new: NewToken, request: Request) -> MadeToken:
        """Make an API token. Only a signed-in browser may: a token cannot make another."""
        expires = None if new.days is None else time.time() + new.days * 86_400
        token, secret = await asyncio.to_thread(house.tokens.create, new.name, new.scopes, expires)
        await _note(house, "identity.token_created", request, name=new.name, scopes=list(new.scopes))
        return MadeToken(**_token_row(token).model_dump(), secret=secret)

    @app.delete("/v1/tokens/{name}")
    @needs("admin")
    async def revoke_token(name: str, request: Request) -> Ended:
        """End an API token."""
        if not await asyncio.to_thread(house.tokens.revoke, name):
            raise FreeholdError("token.not-found", "There is no such token", hint="freehold token list shows them")
        await _note(house, "identity.token_revoked", request, name=name)
        return Ended(ended=1)


async def _note(house: House, kind: str, request: Request, **data: str | int | bool | list[Scope]) -> None:
    who = principal_of(request.scope).who
    await asyncio.to_thread(house.timeline.append, kind, data, who=who)
