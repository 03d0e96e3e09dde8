"""Another Freehold, asked over its API: what all slots share that are kept by one."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2

from freehold.errors import FreeholdError
from freehold.slots.bounded_http import make_client
from freehold.slots.errors import SlotError, SlotProblem, slot_unavailable
from freehold.slots.paired import PAIRED, PairedFreehold
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
    """Requests to the other Freehold: with a token of it, or signed when it is paired.

    Everything that goes wrong is a `SlotError` of the slot.
    """

    def __init__(self, settings: ExternalSettings, *more_settings: str) -> None:
        self._slot = settings.slot
        where = f"slots.{settings.slot}.settings"
        settings.require_known("url", "token", "privacy", *more_settings)
        self.url = settings.require("url").rstrip("/")
        self._paired = settings.paired
        self._name: str | None = None
        self._http: httpx2.AsyncClient | None = None
        self._headers: dict[str, str] = {}
        if self.url.lower().startswith(PAIRED):
            self._name = self.url[len(PAIRED) :]
            if settings.find("token") is not None:
                raise settings.wrong(f"{where}.token is of no use: requests to a neighbour are signed", "Remove it")
            return
        parts = _read_address(self.url)
        if parts is None:
            raise settings.wrong(
                f"{where}.url is not the address of a Freehold",
                'url = "https://freehold.example.com", or "neighbour:NAME"',
            )
        if parts.scheme == "http" and parts.host not in HERE:
            raise settings.wrong(f"{where}.url is not encrypted", "Use https beyond this machine")
        token = settings.secret("token")
        if token is None:
            raise settings.wrong(f"{where}.token is missing", 'token = "secret:NAME"')
        self._headers = {"authorization": f"Bearer {token.reveal()}"}

    def open(self) -> None:
        """Idempotent. Nothing is sent yet."""
        if self._http is None:
            limits = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE_SECONDS)
            self._http = make_client(MAX_REPLY, limits=limits, headers=self._headers, timeout=TIMEOUT)

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
        may_lack_scope: bool = False,
    ) -> Any:
        """The object that it answers with. `actor`: who acts by the token, as the other side is to know it.

        `seconds`: how long the answer may take, where that is longer than usual. `may_lack_scope`: a token without the
        scope for this request is good for others, so that its refusal does not mean that the slot cannot be reached.
        """
        params = {name: value for name, value in (query or {}).items() if value is not None}
        headers = {} if actor is None else {ACTOR_HEADER: actor}
        content = None
        if body is not None:
            content, headers["content-type"] = self._write(body), "application/json"
        answer = await self._exchange(method, path, content, params, headers, seconds or TIMEOUT)
        found = _read_json(answer)
        if answer.is_success and isinstance(found, dict):
            return found
        raise self._read_error(answer.status_code, found, may_lack_scope=may_lack_scope)

    async def transfer(
        self, method: str, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """A request whose body and answer are bytes. Its status is one of success, or 304."""
        answer = await self._exchange(method, path, content, {}, headers or {}, TIMEOUT)
        if not answer.is_success and answer.status_code != 304:
            raise self._read_error(answer.status_code, _read_json(answer))
        return answer

    async def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        allowed: float,
    ) -> httpx2.Response:
        if self._http is None:
            raise slot_unavailable(self._slot, "it is not connected")
        try:
            async with asyncio.timeout(allowed):
                return await self._request(self._http, method, path, content, params, headers, allowed)
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise slot_unavailable(self._slot, (str(error) or type(error).__name__).splitlines()[0][:200]) from error
        except UnicodeEncodeError:
            raise self._not_storable() from None

    async def _request(
        self,
        http: httpx2.AsyncClient,
        method: str,
        path: str,
        content: bytes | None,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        allowed: float,
    ) -> httpx2.Response:
        paired = self._find_paired()
        base = self.url if paired is None else paired.url
        for is_last in (False, True):
            request = http.build_request(
                method, base + path, content=content, params=params, headers=headers, timeout=allowed
            )
            if paired is not None:
                request.headers["authorization"] = paired.sign(method, str(request.url), content or b"")
            answer = await http.send(request)
            now = answer.headers.get("freehold-time") if answer.status_code == 401 else None
            if is_last or paired is None or now is None or not paired.correct_clock(now):
                return answer
        raise AssertionError("the last try returns")

    def _find_paired(self) -> PairedFreehold | None:
        if self._name is None:
            return None
        if self._paired.find is None:
            raise slot_unavailable(self._slot, "only a running Freehold whose mesh is on can ask a neighbour")
        try:
            return self._paired.find(self._name)
        except FreeholdError as error:
            raise slot_unavailable(self._slot, error.message) from None

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

    def _read_error(self, status: int, body: object, *, may_lack_scope: bool = False) -> SlotError:
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
        elif code == "identity.wrong-scope" and may_lack_scope:
            problem = "denied"
        if problem is None:
            return slot_unavailable(self._slot, message or code[:100])
        return SlotError(self._slot, problem, message, hint=hint, kind="precondition" if status == 412 else None)


def _read_json(answer: httpx2.Response) -> Any:
    """None for anything else."""
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def is_paired(url: str) -> bool:
    """Whether the address of a slot names a neighbour."""
    return url.lower().startswith(PAIRED)


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
