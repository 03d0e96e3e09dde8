"""The one shape of every error response: {"error": {code, message, hint, error_id}}."""

import json
import math
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from freehold.errors import FreeholdError, kind_of_status


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
        super().__init__(code, message, hint=f"Wait {_seconds(wait)} s and try again")
        self.wait = wait


class BodyTooLarge(HTTPException):
    """Raised while a body is read. It is an HTTPException because the framework wraps every other exception."""

    def __init__(self, limit: int) -> None:
        super().__init__(413)
        self.limit = limit


def rate_limited(wait: float) -> ErrorResponse:
    seconds = str(_seconds(wait))
    error = FreeholdError("gateway.too-many", "Too many requests", hint=f"Wait {seconds} s and try again")
    return ErrorResponse(error, ((b"retry-after", seconds.encode()),))


def body_too_large(limit: int) -> ErrorResponse:
    return ErrorResponse(FreeholdError("gateway.too-large", f"The request is larger than {limit} bytes"))


def unexpected_error(error_id: str) -> ErrorResponse:
    hint = f"freehold logs gateway --error {error_id} shows the cause"
    error = FreeholdError("gateway.unexpected", "An unexpected error occurred in Freehold", hint=hint)
    return ErrorResponse(error, error_id=error_id)


def add_error_handlers(app: FastAPI) -> None:
    """Answer every failure of a route in the one shape. Values from the request are never repeated.

    Errors on a socket and unexpected exceptions are left to the guard.
    """

    @app.exception_handler(FreeholdError)
    async def answer_error(connection: HTTPConnection, error: FreeholdError) -> JSONResponse:
        if connection.scope["type"] != "http":
            raise error
        headers = {"retry-after": str(_seconds(error.wait))} if isinstance(error, RateLimited) else None
        return _answer(error, headers)

    @app.exception_handler(RequestValidationError)
    async def answer_invalid_request(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = "; ".join(
            f"{_field_path(problem['type'], problem['loc'])}: {problem['type'].replace('_', ' ')}"
            for problem in error.errors()[:10]
        )
        return _answer(FreeholdError("request.invalid", f"The request is not valid: {places}"))

    @app.exception_handler(BodyTooLarge)
    async def answer_large_body(_request: Request, error: BodyTooLarge) -> JSONResponse:
        return _answer(body_too_large(error.limit).error)

    @app.exception_handler(HTTPException)
    async def answer_http_exception(connection: HTTPConnection, error: HTTPException) -> JSONResponse:
        if connection.scope["type"] != "http":
            raise error
        kind = kind_of_status(error.status_code).name
        if kind == "invalid":  # the framework could not read the body
            return _answer(FreeholdError("request.not-json", "The body of the request is not valid JSON"))
        return _answer(FreeholdError("request.refused", "The request is not valid for this address", kind=kind))

    @app.exception_handler(Exception)
    async def raise_to_guard(_request: Request, error: Exception) -> JSONResponse:
        raise error


def _field_path(kind: str, location: tuple[str | int, ...]) -> str:
    """The path to the invalid field. The name of an unknown field is left out: it may be a secret."""
    parts = list(location[1:-1] if kind == "extra_forbidden" else location[1:])
    return ".".join(str(part) for part in parts if isinstance(part, int) or part.isidentifier()) or "body"


def _answer(error: FreeholdError, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error.body()}, status_code=error.kind.status, headers=headers)


def _seconds(wait: float) -> int:
    return max(1, math.ceil(wait))
