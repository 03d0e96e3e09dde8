"""Refusals in the error format of the API that was called, so that the agent can show the reason to its user."""

import json
from collections.abc import Mapping
from typing import Any

from freehold.egress.models.paths import Api
from freehold.errors import FreeholdError

_STATUS: Mapping[str, tuple[int, str]] = {
    # 402 and 403 because clients do not retry these. After 429 they retry again and again.
    "models.budget-reached": (402, "Payment Required"),
    "models.over-budget": (402, "Payment Required"),
    "models.stopped": (403, "Forbidden"),
    "models.session-ended": (403, "Forbidden"),
    "models.closed": (403, "Forbidden"),
    "models.reaches-out": (403, "Forbidden"),
    "models.unknown-field": (400, "Bad Request"),
    "models.not-recorded": (503, "Service Unavailable"),
    "models.bad-placeholder": (401, "Unauthorized"),
    "models.not-found": (404, "Not Found"),
    "models.malformed": (400, "Bad Request"),
    "models.too-large": (413, "Content Too Large"),
    "models.too-many": (503, "Service Unavailable"),
    "models.no-key": (503, "Service Unavailable"),
    "models.signed-out": (503, "Service Unavailable"),
    "models.unreachable": (502, "Bad Gateway"),
    "models.bad-response": (502, "Bad Gateway"),
    "models.slow": (408, "Request Timeout"),
    "egress.malformed": (400, "Bad Request"),
    "egress.too-long": (431, "Request Header Fields Too Large"),
    "egress.cut-short": (400, "Bad Request"),
}
_ANTHROPIC = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 404: "not_found_error"}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
}


def status_of(error: FreeholdError) -> tuple[int, str]:
    return _STATUS.get(error.code, (502, "Bad Gateway"))


def message_of(error: FreeholdError) -> str:
    """The message for the agent. Other errors may hold details about the host, so their text is not shown."""
    if error.code not in _STATUS:
        return "Freehold cannot reach the model right now"
    return f"{error.message}. {error.hint}" if error.hint else error.message


def error_body(api: Api | None, error: FreeholdError) -> bytes:
    """The body of a refusal."""
    return json.dumps(_error(api, error)).encode()


def error_event(api: Api | None, error: FreeholdError) -> bytes:
    """The last event of a stream that is cut."""
    body = _error(api, error)
    if api == "messages":
        return b"event: error\ndata: %b\n\n" % json.dumps(body).encode()
    if api == "responses":
        inner = body["error"]
        event = {"type": "error", "code": inner["code"], "message": inner["message"], "param": None}
        failed = {"type": "response.failed", "response": {"object": "response", "status": "failed", "error": inner}}
        return b"event: error\ndata: %b\n\nevent: response.failed\ndata: %b\n\n" % (
            json.dumps(event).encode(),
            json.dumps(failed).encode(),
        )
    return b"data: %b\n\n" % json.dumps(body).encode()


def _error(api: Api | None, error: FreeholdError) -> dict[str, Any]:
    status, _phrase = status_of(error)
    message = message_of(error)
    code = error.code.replace(".", "_").replace("-", "_")
    if api == "messages":
        return {"type": "error", "error": {"type": _ANTHROPIC.get(status, "permission_error"), "message": message}}
    if api == "gemini":
        return {"error": {"code": status, "message": message, "status": _GEMINI.get(status, "UNAVAILABLE")}}
    return {"error": {"message": message, "type": "freehold_error", "code": code, "param": None}}
