"""Responses that are not pages: JSON, redirects and errors."""

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from freehold.errors import FreeholdError
from freehold.keeper.page.frame import render_error

if TYPE_CHECKING:
    from starlette.types import Scope


class JsonResponse(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode("ascii")


def redirect_to(path: str) -> Response:
    """After a form: the browser loads this page, and a reload does not send the form again."""
    return RedirectResponse(path, status_code=303)


def error_response(scope: "Scope", error: FreeholdError, error_id: str = "") -> Response:
    """JSON under /v1/, else a page. The status is that of the error's kind."""
    status = error.kind.status
    if scope["path"].startswith("/v1/"):
        body = {**error.body(), "error_id": error_id} if error_id else error.body()
        return JsonResponse({"error": body}, status_code=status)
    if status == 401 and scope["method"] == "GET":
        return redirect_to("/sign-in")
    return HTMLResponse(render_error(error, error_id), status_code=status)
