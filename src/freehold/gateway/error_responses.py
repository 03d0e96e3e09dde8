"""The one shape of every error response: {"error": {code, message, hint, error_id}}."""

import json
import math
from dataclasses import dataclass

from starlette.types import Scope, Send

from freehold.errors import FreeholdError
from freehold.gateway.security_headers import SecurityHeaders


@dataclass(frozen=True)
class ErrorResponse:
    """An error that the guard answers before the application sees the request."""

    error: FreeholdError
    headers: tuple[tuple[bytes, bytes], ...] = ()
    error_id: str | None = None

    @property
    def status(self) -> int:
        return self.error.kind.status

    def body(self) -> dict[str, dict[str, str]]:
        body = {name: str(text) for name, text in self.error.body().items()}
        return {"error": body if self.error_id is None else {**body, "error_id": self.error_id}}

    def encode(self) -> bytes:
        return json.dumps(self.body()).encode("ascii")


NOT_SIGNED_IN = ErrorResponse(
    FreeholdError(
        "identity.not-signed-in", "You are not signed in", hint="Open /sign-in in a browser, or send an API token"
    ),
    ((b"www-authenticate", b"Bearer"),),
)
NOT_FOUND = ErrorResponse(
    FreeholdError(
        "request.not-found", "There is no such page or API address", hint="GET /v1/openapi.json describes the API"
    )
)


class RateLimited(FreeholdError):
    """Too many requests. `wait` is the number of seconds until the next one is accepted."""

    def __init__(self, code: str, message: str, wait: float) -> None:
        super().__init__(code, message, hint=f"Wait {wait_seconds(wait)} s and try again")
        self.wait = wait


def rate_limited(wait: float) -> ErrorResponse:
    seconds = str(wait_seconds(wait))
    error = FreeholdError("gateway.too-many", "Too many requests", hint=f"Wait {seconds} s and try again")
    return ErrorResponse(error, ((b"retry-after", seconds.encode()),))


def body_too_large(limit: int) -> ErrorResponse:
    return ErrorResponse(FreeholdError("gateway.too-large", f"The request is larger than {limit} bytes"))


def unexpected_error(error_id: str) -> ErrorResponse:
    hint = f"freehold logs gateway --error {error_id} shows the cause"
    error = FreeholdError("gateway.unexpected", "An unexpected error occurred in Freehold", hint=hint)
    return ErrorResponse(error, error_id=error_id)


def wait_seconds(wait: float) -> int:
    """What `Retry-After` says: whole seconds, at least one."""
    return max(1, math.ceil(wait))


async def refuse(refusal: ErrorResponse, security_headers: SecurityHeaders, scope: Scope, send: Send) -> None:
    """Answer a request or a socket that was not accepted with an error."""
    prefix = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 4000 + refusal.status, "reason": refusal.error.code})
            return
        prefix = "websocket.http.response"
    body = refusal.encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *refusal.headers,
        *security_headers.for_data,
    ]
    await send({"type": f"{prefix}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": body})
