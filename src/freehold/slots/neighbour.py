"""Another Freehold, asked over its API: what all slots share that are kept by one."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2

from freehold.slots.bounded_http import make_client
from freehold.slots.errors import SlotError, SlotProblem, slot_unavailable
from freehold.slots.settings import ExternalSettings

TIMEOUT = 8.0
MAX_REPLY = 32 * 1024 * 1024
MAX_CONNECTIONS = 16
IDLE_SECONDS = 2.0
"""How long a connection waits for its next request. The other side closes it after five seconds."""
ACTOR_HEADER = "freehold-actor"
HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", re.ASCII)
_PROBLEMS: Mapping[str, SlotProblem] = {
    "not-found": "not-found",
    "claimed": "claimed",
    "invalid": "invalid",
    "denied": "denied",
    "conflict": "conflict",
}
_INVALID_STATUS = (400, 413, 422)


class NeighbourApi:
    """Requests with a token of the other Freehold. Everything that goes wrong is a `SlotError` of the slot."""

    def __init__(self, settings: ExternalSettings) -> None:
        self._slot = settings.slot
        where = f"slots.{settings.slot}.settings"
        settings.require_known("url", "token", "privacy")
        self.url = settings.require("url").rstrip("/")
        parts = _read_address(self.url)
        if parts is None:
            raise settings.wrong(
                f"{where}.url is not the address of a Freehold",
                'url = "https://freehold.example.com"',
            )
        if parts.scheme == "http" and parts.host not in HERE:
            raise settings.wrong(f"{where}.url is not encrypted", "Use https beyond this machine")
        token = settings.secret("token")
        if token is None:
            raise settings.wrong(f"{where}.token is missing", 'token = "secret:NAME"')
        self._headers = {"authorization": f"Bearer {token.reveal()}"}
        self._http: httpx2.AsyncClient | None = None

    def open(self) -> None:
        """Idempotent. Nothing is sent yet."""
        if self._http is None:
            limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE_SECONDS)
            self._http = make_client(
                MAX_REPLY, limits=limits, base_url=self.url, headers=self._headers, timeout=TIMEOUT
            )

    async def close(self) -> None:
        """Idempotent."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        actor: str | None = None,
        seconds: float | None = None,
    ) -> Any:
        """The object that it answers with. `actor`: who acts by the token, as the other side is to know it.

        `seconds`: how long the answer may take, where that is longer than usual.
        """
        allowed = seconds or TIMEOUT
        if self._http is None:
            raise slot_unavailable(self._slot, "it is not connected")
        params = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {} if actor is None else {ACTOR_HEADER: actor}
        content = None
        if body is not None:
            content, headers["content-type"] = self._write(body), "application/json"
        try:
            async with asyncio.timeout(allowed):
                answer = await self._http.request(
                    method, path, content=content, params=params, headers=headers, timeout=allowed
                )
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise slot_unavailable(self._slot, (str(error) or type(error).__name__).splitlines()[0][:200]) from error
        except UnicodeEncodeError:
            raise self._not_storable() from None
        try:
            found = answer.json()
        except (ValueError, RecursionError):
            found = None
        if answer.is_success and isinstance(found, dict):
            return found
        raise self._read_error(answer.status_code, found)

    def wrong_reply(self, error: Exception) -> SlotError:
        """For an answer that does not have the shape that it should have."""
        return slot_unavailable(self._slot, f"the reply of {self.url} is not valid: {str(error)[:300]}")

    def _write(self, body: Mapping[str, Any]) -> bytes:
        try:
            return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            raise self._not_storable() from None

    def _not_storable(self) -> SlotError:
        return SlotError(self._slot, "invalid", "The request contains a value that cannot be stored")

    def _read_error(self, status: int, body: object) -> SlotError:
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("code"), str):
            return slot_unavailable(self._slot, f"{self.url} answered {status}, and not as a Freehold does")
        code = error["code"]
        message, hint = _visible(error.get("message")), _visible(error.get("hint"))
        problem: SlotProblem | None = None
        if code.startswith(f"{self._slot}."):
            problem = _PROBLEMS.get(code.rpartition(".")[2])
        elif code.startswith("request.") and status in _INVALID_STATUS:
            problem = "invalid"
        if problem is None:
            return slot_unavailable(self._slot, message or code[:100])
        return SlotError(self._slot, problem, message, hint=hint)


def _read_address(url: str) -> httpx2.URL | None:
    """A scheme, a host, and perhaps a port; None for anything else."""
    try:
        found = httpx2.URL(url)
    except httpx2.InvalidURL:
        return None
    is_address = found.scheme in ("http", "https") and _HOST.fullmatch(found.host) and (found.port or 0) < 65536
    is_more = found.userinfo or found.path not in ("", "/") or found.query or found.fragment
    return found if is_address and not is_more else None


def _visible(text: object) -> str:
    """Words of the other side, bounded and without control characters."""
    return "".join(one if one.isprintable() else " " for one in str(text or "")[:500])
