"""The DevTools protocol of Chromium over a pipe. Chromium and its pages are not trusted: every message is bounded."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from freehold.computer.library.process import Process
from freehold.errors import FreeholdError

Json = dict[str, Any]
MAX_MESSAGE = 24 * 1024 * 1024
CALL_TIMEOUT = 30.0

EventHandler = Callable[[str, Json, str | None], None]
"""Gets the method, its parameters and the session of the protocol to which an event belongs."""


class DevTools:
    """`run` must run while it is used. When Chromium ends, every waiting and later call fails with `browser.ended`."""

    def __init__(self, process: Process, on_event: EventHandler) -> None:
        self._process = process
        self._on_event = on_event
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._has_ended = False

    async def run(self) -> None:
        """Until Chromium ends."""
        pending = bytearray()
        try:
            while data := await self._process.stdout.read():
                searched = len(pending)
                pending += data
                while (end := pending.find(b"\0", searched)) >= 0:
                    self._receive(bytes(pending[:end]))
                    del pending[: end + 1]
                    searched = 0
                if len(pending) > MAX_MESSAGE:
                    return
        except FreeholdError:
            return  # the computer has ended
        finally:
            self._has_ended = True
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(_ended())
                    waiting.exception()  # marks it as retrieved: there may be nobody who waits

    async def call(
        self, method: str, params: Json | None = None, *, session: str | None = None, timeout: float = CALL_TIMEOUT
    ) -> Json:
        """Raises `browser.failed` with Chromium's words, `browser.slow` or `browser.ended`."""
        if self._has_ended:
            raise _ended()
        self._number += 1
        number = self._number
        message: Json = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(timeout):
                with suppress(FreeholdError):  # then it has ended, and the answer says so
                    await self._process.write(json.dumps(message).encode() + b"\0")
                return await answer
        except TimeoutError:
            raise FreeholdError("browser.slow", f"The browser did not answer within {timeout:g} s") from None
        finally:
            del self._waiting[number]

    def _receive(self, data: bytes) -> None:
        """Anything that is not a message of the protocol is left out."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        waiting = self._waiting.get(message["id"]) if isinstance(message.get("id"), int) else None
        if waiting is not None and not waiting.done():
            error = message.get("error")
            if isinstance(error, dict):
                waiting.set_exception(
                    FreeholdError("browser.failed", f"The browser refused: {str(error.get('message'))[:300]}")
                )
            else:
                result = message.get("result")
                waiting.set_result(result if isinstance(result, dict) else {})
        elif isinstance(message.get("method"), str) and isinstance(message.get("params"), dict):
            session = message.get("sessionId")
            self._on_event(message["method"], message["params"], session if isinstance(session, str) else None)


def _ended() -> FreeholdError:
    return FreeholdError("browser.ended", "The browser has ended", hint="browser_open starts it again")
