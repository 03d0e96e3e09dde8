"""Signed requests to another Freehold."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2

from freehold.errors import FreeholdError, kind_of_status
from freehold.mesh.http_signature import read_offset, sign_request
from freehold.mesh.nostr.keys import NostrKey
from freehold.slots.bounded_http import make_client

TIMEOUT = 10.0
MAX_REPLY = 4 * 1024 * 1024
"""Bytes of an answer. What is asked for as JSON needs far less, and takes many times as much when it is read."""
TIME_HEADER = "freehold-time"


class PeerClient:
    """One for all neighbours. `key` is asked for each request, because it can be replaced."""

    def __init__(self) -> None:
        self._clients: dict[int, httpx2.AsyncClient] = {}
        self._offsets: dict[str, int] = {}

    async def close(self) -> None:
        """Idempotent."""
        clients, self._clients = self._clients, {}
        for one in clients.values():
            await one.aclose()

    async def send(
        self,
        key: NostrKey,
        base: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> dict[str, Any]:
        """The object that it answers with. Raises FreeholdError: that of the other side, or `mesh.unreachable`."""
        answer = await self.send_raw(key, base, method, path, body, timeout=timeout)
        try:
            found = json.loads(answer.content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise FreeholdError("mesh.bad-reply", f"The reply of {base} is not valid JSON")
        return found

    async def send_raw(
        self,
        key: NostrKey,
        base: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float = TIMEOUT,
        max_reply: int = MAX_REPLY,
    ) -> httpx2.Response:
        """The whole answer, or `mesh.unreachable` for one that is longer than `max_reply`. What is refused for its time is signed again once."""
        content = b"" if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        answer = await self._try(key, base, method, path, content, timeout, max_reply)
        now = answer.headers.get(TIME_HEADER)
        if answer.status_code == 401 and now is not None and self.correct_clock(base, now):
            answer = await self._try(key, base, method, path, content, timeout, max_reply)
        if not answer.is_success:
            raise _read_error(base, answer)
        return answer

    def correct_clock(self, base: str, now: str) -> bool:
        """`now` is the time there, from a refusal. Whether a second try, signed anew, may help.

        Also when the clocks agree: what was signed before the other side started, or was long on its way, is refused.
        """
        offset = read_offset(now, time.time())
        if offset is None:
            return False
        if abs(offset - self.offset(base)) > 2:
            self._offsets[base] = offset
        return True

    def offset(self, base: str) -> int:
        """How many seconds the clock there is ahead, as far as it is known."""
        return self._offsets.get(base, 0)

    def list_offsets(self) -> list[int]:
        """Those of all that were asked, the last one first."""
        return [*reversed(self._offsets.values())]

    async def _try(
        self, key: NostrKey, base: str, method: str, path: str, content: bytes, timeout: float, max_reply: int
    ) -> httpx2.Response:
        http = self._clients.get(max_reply) or make_client(max_reply, timeout=TIMEOUT)
        self._clients[max_reply] = http
        url = str(httpx2.URL(base + path))
        headers = {"authorization": sign_request(key, method, url, content, offset=self.offset(base))}
        if content:
            headers["content-type"] = "application/json"
        try:
            async with asyncio.timeout(timeout):
                return await http.request(method, url, content=content, headers=headers, timeout=timeout)
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0][:200]
            raise FreeholdError("mesh.unreachable", f"{base} cannot be reached: {reason}") from None


def _code_of(answer: httpx2.Response) -> str | None:
    try:
        error = answer.json()["error"]
        code = error["code"]
        return _visible(code)[:100] if isinstance(code, str) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _read_error(base: str, answer: httpx2.Response) -> FreeholdError:
    """The error of the other side, in its words, bounded and without control characters."""
    code = _code_of(answer)
    if code is None:
        return FreeholdError("mesh.bad-reply", f"{base} answered {answer.status_code}, and not as a Freehold does")
    error = answer.json()["error"]
    message, hint = _visible(error.get("message")), _visible(error.get("hint"))
    return FreeholdError(code, message, hint=hint, kind=kind_of_status(answer.status_code).name)


def _visible(text: object) -> str:
    return "".join(one if one.isprintable() else " " for one in text[:500]) if isinstance(text, str) else ""
