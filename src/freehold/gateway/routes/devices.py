"""`freehold login` from elsewhere: a program asks, the owner answers in a browser, the program gets its token once."""

import asyncio
import time
from typing import Literal

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from freehold.errors import FreeholdError
from freehold.gateway.addresses import crowd_of
from freehold.gateway.devices import LIFETIME, Device, Devices
from freehold.gateway.guard import principal_of
from freehold.gateway.house import House
from freehold.gateway.limits import RateLimit
from freehold.gateway.needs import needs
from freehold.gateway.refusals import TooMany
from freehold.identity.tokens import Scope

INTERVAL = 2
TOKEN_DAYS = 90


class AskForToken(BaseModel):
    """A program that wants a token."""

    model_config = ConfigDict(extra="forbid")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$", description="What the token will be called.")
    scopes: list[Scope] = Field(min_length=1, max_length=6)


class Asked(BaseModel):
    """Show `code` and `address` to the owner, and ask for the answer every `interval` seconds."""

    device: str
    code: str
    address: str
    interval: int
    expires_in: int


class WaitingDevice(BaseModel):
    """The program that waits, as the owner sees it before answering."""

    code: str
    name: str
    scopes: list[Scope]
    address: str


class AnswerDevice(BaseModel):
    model_config = ConfigDict(extra="forbid")
    allow: bool


class CollectToken(BaseModel):
    model_config = ConfigDict(extra="forbid")
    device: str = Field(min_length=20, max_length=100)


class Collected(BaseModel):
    """The owner's answer; `token` comes once, with `allowed`."""

    answer: Literal["waiting", "allowed", "denied"]
    token: str | None = None


def _row(device: Device) -> WaitingDevice:
    return WaitingDevice(code=device.code, name=device.name, scopes=list(device.scopes), address=device.address)


def add_devices(app: FastAPI, house: House) -> None:
    devices = Devices()
    tries = RateLimit(rate=0.5, burst=20)
    tries_in_all = RateLimit(rate=1, burst=60)

    @app.post("/v1/devices", status_code=201)
    @needs("anyone")
    async def ask_for_token(body: AskForToken, request: Request) -> Asked:
        """Ask the owner for a token."""
        address = principal_of(request.scope).address
        wait = tries.wait(crowd_of(address)) or tries_in_all.wait("")
        if wait > 0:
            raise TooMany("device.too-many", "Too many requests for a token", wait)
        device, own = devices.ask(body.name, tuple(dict.fromkeys(body.scopes)), address)
        data = {"name": device.name, "scopes": list(device.scopes), "address": address}
        await asyncio.to_thread(house.timeline.append, "identity.token_requested", data, who="anyone")
        where = f"{house.base_url}/device#{device.code}"
        return Asked(device=own, code=device.code, address=where, interval=INTERVAL, expires_in=int(LIFETIME))

    @app.get("/v1/devices/{code}")
    @needs("browser")
    async def waiting_device(code: str) -> WaitingDevice:
        """The program that waits with this code."""
        return _row(devices.find(code))

    @app.post("/v1/devices/{code}")
    @needs("browser")
    async def answer_device(code: str, body: AnswerDevice) -> WaitingDevice:
        """Give the program its token, or refuse it."""
        device = devices.find(code)
        if body.allow:
            expires = time.time() + TOKEN_DAYS * 86_400
            _, secret = await asyncio.to_thread(house.tokens.create, device.name, device.scopes, expires)
            try:
                devices.answer(code, secret)
            except FreeholdError:  # refused or expired meanwhile, so nobody will ever fetch this token
                await asyncio.to_thread(house.tokens.revoke, device.name)
                raise
        else:
            devices.answer(code, None)
        kind = "identity.token_created" if body.allow else "identity.token_refused"
        data = {"name": device.name, "scopes": list(device.scopes), "address": device.address}
        await asyncio.to_thread(house.timeline.append, kind, data, who="owner")
        return _row(device)

    @app.post("/v1/devices/answer/collect")
    @needs("anyone")
    async def collect_token(body: CollectToken) -> Collected:
        """What the owner answered."""
        device = devices.collect(body.device)
        return Collected(answer=device.answer, token=device.secret)
