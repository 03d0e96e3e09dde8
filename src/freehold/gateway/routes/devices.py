"""`freehold login` on another machine: a program requests a token, the owner answers in a browser, the program collects it."""

import asyncio
import time
from typing import Literal

from fastapi import Request
from pydantic import BaseModel, Field

from freehold.errors import FreeholdError
from freehold.gateway.addresses import rate_limit_key
from freehold.gateway.context import RouteContext
from freehold.gateway.devices import REQUEST_LIFETIME, DeviceRequest, DeviceRequests
from freehold.gateway.error_responses import RateLimited
from freehold.gateway.inputs import RequestBody, UrlId
from freehold.gateway.principal import principal_of
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.routing import get, post
from freehold.identity.tokens import Scope

INTERVAL = 2
TOKEN_DAYS = 90


class RequestTokenBody(RequestBody):
    """A program's request for a token."""

    name: str = Field(max_length=40, pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$", description="The name of the new token.")
    scopes: list[Scope] = Field(min_length=1, max_length=6)


class TokenRequestedBody(BaseModel):
    """Show `code` and `address` to the owner, and collect the answer every `interval` seconds."""

    device: str
    code: str
    address: str
    interval: int
    expires_in: int


class WaitingDeviceBody(BaseModel):
    """The waiting program, as the owner sees it before answering."""

    code: str
    name: str
    scopes: list[Scope]
    address: str


class AnswerDeviceBody(RequestBody):
    allow: bool


class CollectTokenBody(RequestBody):
    device: str = Field(min_length=20, max_length=100)


class TokenAnswerBody(BaseModel):
    """The owner's answer. `token` is returned once, with `allowed`."""

    answer: Literal["waiting", "allowed", "denied"]
    token: str | None = None


def _row(device: DeviceRequest) -> WaitingDeviceBody:
    return WaitingDeviceBody(code=device.code, name=device.name, scopes=list(device.scopes), address=device.address)


class DeviceRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services
        self._requests = DeviceRequests()
        self._limit_per_address = RateLimit(rate=0.5, burst=20)
        self._limit_recorded = RateLimit(rate=1, burst=60)

    @post("/v1/devices", status_code=201, scope="anyone")
    async def request_token(self, body: RequestTokenBody, request: Request) -> TokenRequestedBody:
        """Request a token from the owner."""
        address = principal_of(request.scope).address
        if (wait := self._limit_per_address.wait(rate_limit_key(address))) > 0:
            raise RateLimited("device.too-many", "Too many requests for a token", wait)
        device, secret = self._requests.ask(body.name, tuple(dict.fromkeys(body.scopes)), address)
        # Strangers cannot fill the timeline. A flood from many addresses does not keep the owner's program out either.
        if self._limit_recorded.wait("") == 0:
            data = {"name": device.name, "scopes": list(device.scopes), "address": address}
            await asyncio.to_thread(self._services.timeline.append, "identity.token_requested", data, who="anyone")
        where = f"{self._services.base_url}/device#{device.code}"
        return TokenRequestedBody(
            device=secret, code=device.code, address=where, interval=INTERVAL, expires_in=int(REQUEST_LIFETIME)
        )

    @get("/v1/devices/{code}", scope="browser")
    async def get_waiting_device(self, code: UrlId) -> WaitingDeviceBody:
        """The waiting program with this code."""
        return _row(self._requests.find(code))

    @post("/v1/devices/{code}", scope="browser")
    async def answer_device(self, code: UrlId, body: AnswerDeviceBody) -> WaitingDeviceBody:
        """Allow the program its token, or deny it."""
        device = self._requests.find(code)
        if body.allow:
            expires = time.time() + TOKEN_DAYS * 86_400
            _, secret = await asyncio.to_thread(self._services.tokens.create, device.name, device.scopes, expires)
            try:
                self._requests.answer(code, secret)
            except FreeholdError:  # answered or expired meanwhile: nobody would collect this token
                await asyncio.to_thread(self._services.tokens.revoke, device.name)
                raise
        else:
            self._requests.answer(code, None)
        kind = "identity.token_created" if body.allow else "identity.token_refused"
        data = {"name": device.name, "scopes": list(device.scopes), "address": device.address}
        await asyncio.to_thread(self._services.timeline.append, kind, data, who="owner")
        return _row(device)

    @post("/v1/devices/answer/collect", scope="anyone")
    async def collect_token(self, body: CollectTokenBody) -> TokenAnswerBody:
        """Collect the owner's answer."""
        device = self._requests.collect(body.device)
        return TokenAnswerBody(answer=device.answer, token=device.secret)
