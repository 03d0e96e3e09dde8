"""One error shape for every failing answer: {"error": {code, message, hint, error_id}}."""

from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from freehold.errors import FreeholdError
from freehold.observe.logs import log_unexpected

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

    def body(self) -> dict[str, dict[str, str]]:
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}


def status_of(error: FreeholdError) -> int:
    """The HTTP status an explained error asks for, else the one that fits the last word of its code."""
    asked = getattr(error, "status", None)
    if isinstance(asked, int):
        return asked
    return _STATUS_OF_SUFFIX.get(error.code.rpartition(".")[2], 400)


def add_error_answers(app: FastAPI) -> None:
    """Every way a route can fail, in the one shape; nothing of the request's values is ever echoed."""

    @app.exception_handler(FreeholdError)
    async def explained(_request: Request, error: FreeholdError) -> JSONResponse:
        return JSONResponse({"error": error.body()}, status_code=status_of(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'][1:]) or 'body'}: {problem['type'].replace('_', ' ')}"
            for problem in error.errors()[:10]
        )
        refusal = Refusal(422, "request.invalid", f"The request is not valid: {places}", "See /v1/openapi.json")
        return JSONResponse(refusal.body(), status_code=422)

    @app.exception_handler(HTTPException)
    async def plain(_request: Request, error: HTTPException) -> JSONResponse:
        words = {404: "There is nothing here", 405: "This path does not take that method"}
        refusal = Refusal(error.status_code, f"request.{error.status_code}", words.get(error.status_code, "Refused"))
        return JSONResponse(refusal.body(), status_code=error.status_code, headers=error.headers)

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, error: Exception) -> JSONResponse:
        error_id = log_unexpected(error)
        body = {
            "code": "gateway.unexpected",
            "message": "Something went wrong inside Freehold",
            "hint": f"freehold logs gateway shows it under {error_id}",
            "error_id": error_id,
        }
        return JSONResponse({"error": body}, status_code=500)
