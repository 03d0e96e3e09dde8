"""The caller, sign-ins and API tokens: `/v1/me`, `/v1/sign-ins`, `/v1/tokens`."""

import asyncio
import time
from datetime import datetime

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.errors import FreeholdError
from freehold.features import list_features
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import RequestBody, UrlFlag, UrlId, UrlName
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, post
from freehold.gateway.services import Services
from freehold.identity.sign_ins import SignIn, recovery_url
from freehold.identity.tokens import SCOPES, ApiToken, Scope

MAX_TOKEN_DAYS = 366


class MeBody(BaseModel):
    """The caller."""

    who: str
    did: str | None
    handle: str | None
    sign_in: str | None
    scopes: list[Scope] | None = Field(
        description="The scopes of the API token; null for a browser, which has all scopes."
    )
    recovery: str = Field(
        description="The address of the recovery page, on the machine itself. It works when the gateway does not."
    )
    slots: list[str] = Field(description="The slots that are on. The pages of others are not in the navigation.")
    features: list[str] = Field(description="The features that are on.")


class SignInInfoBody(BaseModel):
    """One signed-in browser."""

    id: str
    label: str
    address: str
    method: str
    created: datetime
    seen: datetime
    expires: datetime
    current: bool


class TokenInfoBody(BaseModel):
    """One API token. Its secret is shown only when it is created."""

    name: str
    scopes: list[Scope]
    created: datetime
    expires: datetime | None
    used: datetime | None


class NewTokenBody(RequestBody):
    """A token to create."""

    name: str = Field(min_length=1, max_length=40)
    scopes: list[Scope] = Field(min_length=1, max_length=len(SCOPES))
    days: int | None = Field(default=30, ge=1, le=MAX_TOKEN_DAYS, description="Days until it expires; null for never.")


class CreatedTokenBody(TokenInfoBody):
    """The new token with its secret, which is not shown again."""

    secret: str


class EndedCountBody(BaseModel):
    """How many sign-ins or tokens were ended."""

    ended: int


def _to_sign_in_info(sign_in: SignIn, current: str | None) -> SignInInfoBody:
    return SignInInfoBody(
        id=sign_in.id,
        label=sign_in.label,
        address=sign_in.address,
        method=sign_in.method,
        created=to_moment(sign_in.created),
        seen=to_moment(sign_in.seen),
        expires=to_moment(sign_in.expires),
        current=sign_in.id == current,
    )


def _to_token_info(token: ApiToken) -> TokenInfoBody:
    return TokenInfoBody(
        name=token.name,
        scopes=sorted(token.scopes),
        created=to_moment(token.created),
        expires=None if token.expires is None else to_moment(token.expires),
        used=None if token.used is None else to_moment(token.used),
    )


class DownloadBody(RequestBody):
    """An address of the API that a browser opens without a header."""

    address: str = Field(pattern=r"^/v1/[!-~]*$", max_length=16_384)


class CredentialRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._tickets = context.tickets

    @get("/v1/me", scope="read")
    async def get_me(self, request: Request) -> MeBody:
        """The caller."""
        principal = principal_of(request.scope)
        owner = self._services.manifest.owner
        scopes = None if principal.token is None else sorted(principal.token.scopes)
        recovery = f"{recovery_url(self._services.manifest.keeper.port)}/"
        return MeBody(
            who=principal.who,
            did=owner.did,
            handle=owner.handle,
            sign_in=_current_sign_in(request),
            scopes=scopes,
            recovery=recovery,
            slots=[slot.name for slot in self._services.slots.list() if slot.status.state != "off"],
            features=[
                feature.name
                for feature in list_features()
                if getattr(getattr(self._services.manifest, feature.name), "enabled", True)
            ],
        )

    @delete("/v1/me", scope="read")
    async def end_own_credential(self, request: Request) -> EndedCountBody:
        """End the API token or sign-in that sends this request."""
        principal = principal_of(request.scope)
        if principal.token is not None:
            await asyncio.to_thread(self._services.tokens.revoke, principal.token.name)
            await _record(self._services, "identity.token_revoked", request, name=principal.token.name)
        elif principal.sign_in is not None:
            await asyncio.to_thread(self._services.sign_ins.revoke, principal.sign_in.id)
            await _record(self._services, "identity.signed_out", request, session=principal.sign_in.id)
        return EndedCountBody(ended=1)

    @post("/v1/download-tickets", scope="browser")
    async def create_download_ticket(self, body: DownloadBody, request: Request) -> DownloadBody:
        """The same address with a ticket: it works once, within 30 seconds, as a link."""
        sign_in = principal_of(request.scope).sign_in
        assert sign_in is not None  # the scope `browser` guarantees it
        return DownloadBody(address=self._tickets.create(sign_in, body.address))

    @get("/v1/sign-ins", scope="admin")
    async def list_sign_ins(self, request: Request) -> list[SignInInfoBody]:
        """All signed-in browsers, last used first."""
        found = await asyncio.to_thread(self._services.sign_ins.list)
        return [_to_sign_in_info(sign_in, _current_sign_in(request)) for sign_in in found]

    @delete("/v1/sign-ins/{sign_in_id}", scope="admin")
    async def revoke_sign_in(self, sign_in_id: UrlId, request: Request) -> EndedCountBody:
        """Sign one browser out. Its open connections end at once."""
        if not await asyncio.to_thread(self._services.sign_ins.revoke, sign_in_id):
            raise FreeholdError(
                "sign-in.not-found", f"There is no sign-in {sign_in_id[:40]!r}", hint="freehold sign-ins lists them"
            )
        await _record(self._services, "identity.session_revoked", request, session=sign_in_id)
        return EndedCountBody(ended=1)

    @delete("/v1/sign-ins", scope="admin")
    async def revoke_sign_ins(self, request: Request, keep_current: UrlFlag = False) -> EndedCountBody:
        """Sign out all browsers; with `keep_current`, all but this one."""
        kept = _current_sign_in(request) if keep_current else None
        ended = await asyncio.to_thread(self._services.sign_ins.revoke_all, kept)
        await _record(self._services, "identity.session_revoked", request, all=True, ended=ended)
        return EndedCountBody(ended=ended)

    @get("/v1/tokens", scope="admin")
    async def list_tokens(self) -> list[TokenInfoBody]:
        """All API tokens, by name."""
        return [_to_token_info(token) for token in await asyncio.to_thread(self._services.tokens.list)]

    @post("/v1/tokens", status_code=201, scope="browser")
    async def create_token(self, new: NewTokenBody, request: Request) -> CreatedTokenBody:
        """Create an API token. Only a signed-in browser may do this: a token cannot create another."""
        expires = None if new.days is None else time.time() + new.days * 86_400
        token, secret = await asyncio.to_thread(self._services.tokens.create, new.name, new.scopes, expires)
        await _record(self._services, "identity.token_created", request, name=new.name, scopes=list(new.scopes))
        return CreatedTokenBody(**_to_token_info(token).model_dump(), secret=secret)

    @delete("/v1/tokens/{name}", scope="admin")
    async def revoke_token(self, name: UrlName, request: Request) -> EndedCountBody:
        """End an API token."""
        if not await asyncio.to_thread(self._services.tokens.revoke, name):
            raise FreeholdError(
                "token.not-found", f"There is no API token {name[:40]!r}", hint="freehold token list shows them"
            )
        await _record(self._services, "identity.token_revoked", request, name=name)
        return EndedCountBody(ended=1)


def _current_sign_in(request: Request) -> str | None:
    sign_in = principal_of(request.scope).sign_in
    return None if sign_in is None else sign_in.id


async def _record(services: Services, kind: str, request: Request, **data: str | int | bool | list[Scope]) -> None:
    who = principal_of(request.scope).who
    await asyncio.to_thread(services.timeline.append, kind, data, who=who)
