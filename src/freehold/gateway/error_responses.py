"""One error shape for every failing answer: {"error": {code, message, hint, error_id}}."""

import json
import math
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from freehold.errors import FreeholdError

_STATUS_OF_SUFFIX = {
    "not-found": 404,
    "link-expired": 403,
    "no-owner": 404,
    "exists": 409,
    "conflict": 409,
    "not-running": 503,
    "not-connected": 503,
    "no-isolation": 503,
    "too-large": 413,
    "too-many": 429,
    "permission": 403,
    "not-owner": 403,
}


@dataclass(frozen=True)
class Refusal:
    """An answer the guard gives instead of the application."""

    status: int
    code: str
    message: str
    hint: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    error_id: str | None = None

    def body(self) -> dict[str, dict[str, str]]:
        body = {"code": self.code, "message": self.message, "hint": self.hint}
        return {"error": body if self.error_id is None else {**body, "error_id": self.error_id}}

    def encode(self) -> bytes:
        return json.dumps(self.body()).encode("ascii")


NOT_SIGNED_IN = Refusal(
    401,
    "identity.not-signed-in",
    "You are not signed in",
    "Open /sign-in in a browser, or send an API token",
    ((b"www-authenticate", b"Bearer"),),
)
NOT_FOUND = Refusal(404, "request.not-found", "There is nothing here", "GET /v1/openapi.json describes the API")


class TooMany(FreeholdError):
    """Come back in `wait` seconds."""

    def __init__(self, code: str, message: str, wait: float) -> None:
        super().__init__(code, message, hint=f"Wait {_seconds(wait)} s and try again")
        self.wait = wait


class BodyTooLarge(HTTPException):
    """Raised where a body is read; of this kind because the framework wraps every other."""

    def __init__(self, most: int) -> None:
        super().__init__(413)
        self.most = most


def too_many(wait: float) -> Refusal:
    return Refusal(
        429,
        "gateway.too-many",
        "Too many requests",
        f"Wait {_seconds(wait)} s and try again",
        ((b"retry-after", str(_seconds(wait)).encode()),),
    )


def too_large(most: int) -> Refusal:
    return Refusal(413, "gateway.too-large", f"The request is larger than {most} bytes, the most this takes")


def unexpected(error_id: str) -> Refusal:
    hint = f"freehold logs gateway shows it under {error_id}"
    return Refusal(500, "gateway.unexpected", "Something went wrong inside Freehold", hint, error_id=error_id)


def status_of(error: FreeholdError) -> int:
    """The HTTP status an explained error asks for, else the one that fits the last word of its code."""
    asked = getattr(error, "status", None)
    if isinstance(asked, int):
        return asked
    return _STATUS_OF_SUFFIX.get(error.code.rpartition(".")[2], 400)


def add_error_answers(app: FastAPI) -> None:
    """Every way a route can fail, in the one shape; nothing of the request's values is ever echoed.

    What goes wrong on a socket, and what nobody has explained, is left to the guard.
    """

    @app.exception_handler(FreeholdError)
    async def explained(connection: HTTPConnection, error: FreeholdError) -> JSONResponse:
        if connection.scope["type"] != "http":
            raise error
        headers = {"retry-after": str(_seconds(error.wait))} if isinstance(error, TooMany) else None
        return JSONResponse({"error": error.body()}, status_code=status_of(error), headers=headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = "; ".join(
            f"{_place(problem['type'], problem['loc'])}: {problem['type'].replace('_', ' ')}"
            for problem in error.errors()[:10]
        )
        return _answer(Refusal(422, "request.invalid", f"The request is not valid: {places}", "See /v1/openapi.json"))

    @app.exception_handler(BodyTooLarge)
    async def large(_request: Request, error: BodyTooLarge) -> JSONResponse:
        return _answer(too_large(error.most))

    @app.exception_handler(HTTPException)
    async def plain(connection: HTTPConnection, error: HTTPException) -> JSONResponse:
        if connection.scope["type"] != "http":
            raise error
        return _answer(Refusal(error.status_code, f"request.{error.status_code}", "The request cannot be read"))

    @app.exception_handler(Exception)
    async def to_the_guard(_request: Request, error: Exception) -> JSONResponse:
        raise error


def _place(kind: str, location: tuple[str | int, ...]) -> str:
    """Where the problem is. The name of a field that we do not know is the caller's own word, and may be a secret."""
    parts = list(location[1:-1] if kind == "extra_forbidden" else location[1:])
    return ".".join(str(part) for part in parts if isinstance(part, int) or part.isidentifier()) or "body"


def _answer(refusal: Refusal) -> JSONResponse:
    return JSONResponse(refusal.body(), status_code=refusal.status)


def _seconds(wait: float) -> int:
    return max(1, math.ceil(wait))
