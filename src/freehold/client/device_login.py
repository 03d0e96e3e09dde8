"""Asking a Freehold for a token: this program shows a code, and the owner answers in a browser."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from freehold.client.address import is_here, read_address
from freehold.client.answers import Scope
from freehold.client.pauses import pause
from freehold.client.problems import answered, misunderstood, unreachable
from freehold.errors import FreeholdError

TIMEOUT = 30.0
# However patient the other side would have us be.
LONGEST_INTERVAL = 30.0
LONGEST_WAIT = 3600.0
_CODE = re.compile(r"[A-Z]{4}-[A-Z]{4}")


@dataclass(frozen=True)
class Waiting:
    """What the owner must see: `code`, and `page` to type it on. `secret` fetches the answer and is shown to nobody."""

    url: str
    name: str
    code: str
    page: str
    secret: str
    interval: float
    expires_in: float


def ask_for_token(url: str, name: str, scopes: Sequence[Scope]) -> Waiting:
    address = read_address(url)
    answer = _post(address, "/v1/devices", {"name": name, "scopes": list(scopes)})
    try:
        waiting = Waiting(
            url=address,
            name=name,
            code=str(answer["code"]),
            page=str(answer["address"]),
            secret=str(answer["device"]),
            interval=min(LONGEST_INTERVAL, float(answer["interval"])),
            expires_in=min(LONGEST_WAIT, float(answer["expires_in"])),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise misunderstood(address, error) from error
    if not _CODE.fullmatch(waiting.code) or not waiting.page.endswith(f"/device#{waiting.code}"):
        raise misunderstood(address, ValueError("no code"))
    _check_page(address, waiting.page)
    return waiting


def wait_for_token(waiting: Waiting) -> str:
    """The token, once the owner has allowed it."""
    end = time.monotonic() + waiting.expires_in
    while time.monotonic() < end:
        answer = _post(waiting.url, "/v1/devices/answer/collect", {"device": waiting.secret})
        match answer.get("answer"), answer.get("token"):
            case "allowed", str(token):
                return token
            case "denied", _:
                raise FreeholdError("login.refused", f"{waiting.name} was refused in the browser")
            case "waiting", _:
                pause(max(0.1, waiting.interval))
            case _:
                raise misunderstood(waiting.url, ValueError("no answer"))
    raise FreeholdError(
        "login.expired", "Nobody answered in the browser", hint=f"Start again: freehold login {waiting.url}"
    )


def _check_page(address: str, page: str) -> None:
    """A page elsewhere would have the owner sign in to something that is not this Freehold."""
    found = read_address(page.rpartition("/device#")[0])
    if found == address or (is_here(found) and is_here(address)):
        return
    raise FreeholdError(
        "login.other-address",
        f"{address} wants to be opened at {found}",
        hint=f"If that is the same Freehold, use that address: freehold login {found}",
    )


def _post(address: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    try:
        with httpx2.Client(base_url=address, timeout=TIMEOUT, trust_env=False) as http:
            response = http.post(path, json=body)
    except httpx2.TransportError as error:
        raise unreachable(address, error, TIMEOUT) from error
    answer = answered(address, response)
    if not isinstance(answer, dict):
        raise misunderstood(address, ValueError("not an object"))
    return answer
