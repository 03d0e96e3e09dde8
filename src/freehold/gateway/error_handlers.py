"""Answers every failure of a route in the one shape of `freehold.gateway.error_responses`."""

from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from freehold.errors import FreeholdError, kind_of_status
from freehold.gateway.error_responses import RateLimited, body_too_large, wait_seconds
from freehold.gateway.guard import BodyTooLarge


def add_error_handlers(app: FastAPI) -> None:
    """Answer every failure of a route in the one shape. Values from the request are never repeated.

    Errors on a socket and unexpected exceptions are left to the guard.
    """

    @app.exception_handler(FreeholdError)
    async def answer_error(connection: HTTPConnection, error: FreeholdError) -> JSONResponse:
        if connection.scope["type"] != "http":
            raise error
        headers = {"retry-after": str(wait_seconds(error.wait))} if isinstance(error, RateLimited) else None
        return _answer(error, headers)

    @app.exception_handler(RequestValidationError)
    async def answer_invalid_request(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = "; ".join(
            f"{_field_path(problem['type'], problem['loc'])}: {_reason(problem['type'], problem.get('ctx'))}"
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


def _reason(kind: str, limits: Mapping[str, object] | None) -> str:
    """What is wrong with a field, in words."""
    most = limits.get("max_length") if limits is not None else None
    if kind == "string_too_long" and isinstance(most, int):
        return f"more than {most:,} characters"
    if kind == "too_long" and isinstance(most, int):
        return f"more than {most:,} items"
    return kind.replace("_", " ")


def _answer(error: FreeholdError, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error.body()}, status_code=error.kind.status, headers=headers)
