"""Answers that are not pages of their own: JSON, redirects, and refusals in the form the asker reads."""

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from freehold.errors import FreeholdError
from freehold.keeper.page.frame import draw_error

if TYPE_CHECKING:
    from starlette.types import Scope


class Json(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode("ascii")


def see(path: str) -> Response:
    """After a form: the browser asks for this next, and a reload repeats nothing."""
    return RedirectResponse(path, status_code=303)


def refusal(scope: "Scope", status: int, error: FreeholdError, error_id: str = "") -> Response:
    if scope["path"].startswith("/v1/"):
        return Json({"error": {**error.body(), "error_id": error_id}}, status_code=status)
    if status == 401 and scope["method"] == "GET":
        return see("/sign-in")
    return HTMLResponse(draw_error(error, error_id), status_code=status)
