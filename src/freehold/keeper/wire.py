"""How the keeper's socket speaks: one JSON object a line, each answer carrying the id of its question.

    -> {"id": 1, "method": "status", "params": {}}
    <- {"id": 1, "result": {...}}                                     a call that succeeded
    <- {"id": 1, "error": {"code", "message", "hint", "error_id"}}    or did not
    <- {"id": 1, "event": {...}} ... {"id": 1, "end": true}           a stream

Closing the connection ends its streams; a call that was begun is finished all the same.
"""

import json
from typing import Any

from freehold.errors import FreeholdError
from freehold.home import Home

MAX_REQUEST = 1 << 20
MAX_ANSWER = 16 << 20


def encode(message: dict[str, Any]) -> bytes:
    # Surrogates (names that are not UTF-8) travel as \udcXX escapes and come back as the same bytes.
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """The message of one line; `keeper.bad-message` when it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FreeholdError("keeper.bad-message", f"A line on the keeper's socket is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise FreeholdError("keeper.bad-message", "A line on the keeper's socket is not a JSON object")
    return message


def error_of(body: dict[str, Any]) -> FreeholdError:
    """The error an answer carries, as the one who asked raises it."""
    hint = str(body.get("hint") or "")
    error_id = body.get("error_id")
    if error_id:
        hint = (hint + " " if hint else "") + f"freehold logs keeper shows it as {error_id}"
    return FreeholdError(str(body.get("code", "keeper.failed")), str(body.get("message", "")), hint=hint)


def not_running(home: Home) -> FreeholdError:
    return FreeholdError(
        "keeper.not-running",
        f"No keeper answers for {home.root}",
        hint="Start it with: freehold up (or freehold up -d)",
    )
