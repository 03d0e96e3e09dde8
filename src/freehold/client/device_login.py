"""Requests an API token: this program shows a code, and the owner allows it in a browser."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from freehold.client.address import is_local, read_address
from freehold.client.delay import sleep
from freehold.client.models import Scope
from freehold.client.problems import connection_error, read_reply, unexpected_reply
from freehold.errors import FreeholdError
from freehold.tls_trust import trust_for

REQUEST_TIMEOUT = 30.0
# Upper limits for the values that the server sends.
MAX_POLL_INTERVAL = 30.0
MAX_LOGIN_WAIT = 3600.0
_CODE = re.compile(r"[A-Z]{4}-[A-Z]{4}")


@dataclass(frozen=True)
class PendingLogin:
    """A login that waits for the owner. Show `code` and `page`; never show `secret`, which fetches the token."""

    url: str
    name: str
    code: str
    page: str
    secret: str
    interval: float
    expires_in: float


def request_token(url: str, name: str, scopes: Sequence[Scope]) -> PendingLogin:
    address = read_address(url)
    reply = _post(address, "/v1/devices", {"name": name, "scopes": list(scopes)})
    try:
        login = PendingLogin(
            url=address,
            name=name,
            code=str(reply["code"]),
            page=str(reply["address"]),
            secret=str(reply["device"]),
            interval=min(MAX_POLL_INTERVAL, float(reply["interval"])),
            expires_in=min(MAX_LOGIN_WAIT, float(reply["expires_in"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise unexpected_reply(address, error) from error
    if not _CODE.fullmatch(login.code) or not login.page.endswith(f"/device#{login.code}"):
        raise unexpected_reply(address, ValueError("no code"))
    _check_page(address, login.page)
    return login


def wait_for_token(login: PendingLogin) -> str:
    """Wait until the owner has answered. Returns the token; raises FreeholdError when it was refused or expired."""
    end = time.monotonic() + login.expires_in
    while time.monotonic() < end:
        reply = _post(login.url, "/v1/devices/answer/collect", {"device": login.secret})
        match reply.get("answer"), reply.get("token"):
            case "allowed", str(token):
                return token
            case "denied", _:
                words = f"The owner refused the token {login.name} in the browser"
                raise FreeholdError("login.refused", words, hint=f"Ask the owner, then: freehold login {login.url}")
            case "waiting", _:
                sleep(max(0.1, login.interval))
            case _:
                raise unexpected_reply(login.url, ValueError("no answer"))
    raise FreeholdError(
        "login.expired", "The code expired before it was allowed", hint=f"Start again: freehold login {login.url}"
    )


def _check_page(address: str, page: str) -> None:
    """Refuse a page on another origin: the owner would sign in to something that is not this Freehold."""
    found = read_address(page.rpartition("/device#")[0])
    if found == address or (is_local(found) and is_local(address)):
        return
    raise FreeholdError(
        "login.other-address",
        f"{address} sends the browser to another address: {found}",
        hint=f"If that is the same Freehold, use its address: freehold login {found}",
    )


def _post(address: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    try:
        with httpx2.Client(
            base_url=address, timeout=REQUEST_TIMEOUT, trust_env=False, verify=trust_for(address)
        ) as http:
            response = http.post(path, json=body)
    except httpx2.TransportError as error:
        raise connection_error(address, error, REQUEST_TIMEOUT) from error
    reply = read_reply(address, response)
    if not isinstance(reply, dict):
        raise unexpected_reply(address, ValueError("not an object"))
    return reply
