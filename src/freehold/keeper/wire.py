"""The format of the keeper's socket: one JSON object a line; a reply has the id of its request.

    -> {"id": 1, "method": "status", "params": {}}
    <- {"id": 1, "result": {...}}                                     a call that succeeded
    <- {"id": 1, "error": {"code", "message", "hint", "error_id"}}    or failed
    <- {"id": 1, "event": {...}} ... {"id": 1, "end": true}           a stream

Closing the connection ends its streams. A call that has begun is finished. `freehold.keeper.calls` and
`freehold.history.calls` declare the types of `params`, `result` and `event`.
"""

import json
from typing import Any

from freehold.errors import FreeholdError
from freehold.home import Home

MAX_REQUEST = 1 << 20
MAX_REPLY = 16 << 20


def encode_message(message: dict[str, Any]) -> bytes:
    # File names that are not UTF-8 hold surrogates. They are sent as \udcXX escapes and arrive as the same bytes.
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def decode_message(line: bytes) -> dict[str, Any]:
    """The message of one line; raises `keeper.bad-message` when it is not a JSON object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FreeholdError("keeper.bad-message", f"A line on the keeper's socket is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise FreeholdError("keeper.bad-message", "A line on the keeper's socket is not a JSON object")
    return message


def error_from_body(body: dict[str, Any]) -> FreeholdError:
    """The error that a reply carries."""
    hint = str(body.get("hint") or "")
    error_id = body.get("error_id")
    if error_id:
        hint = (hint + " " if hint else "") + f"freehold logs keeper --error {error_id} shows the cause"
    return FreeholdError(str(body.get("code", "keeper.failed")), str(body.get("message", "")), hint=hint)


def not_running_error(home: Home) -> FreeholdError:
    return FreeholdError(
        "keeper.not-running",
        f"No keeper runs for {home.root}",
        hint="Start it with: freehold up (or freehold up -d)",
    )
