"""The errors of the client, each with a hint."""

import ssl
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError, find_kind, kind_of_status

if TYPE_CHECKING:
    import httpx2

MAX_TEXT_CHARS = 2000
_HINTS = {401: "Get a new token: freehold login {url}"}


def error_from_reply(url: str, status: int, body: object, retry_after: str | None = None) -> FreeholdError:
    """The error in a reply. A reply without a Freehold error came from something else, such as a proxy."""
    error: Any = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not all(isinstance(error.get(key), str) for key in ("code", "message")):
        return FreeholdError(
            "client.odd-answer",
            f"{url} sent status {status} and a reply that is not from a Freehold",
            hint="Check the address; a proxy may answer instead of the Freehold",
        )
    hint = _printable(error.get("hint") or "")
    if status in _HINTS:
        hint = _HINTS[status].format(url=url)
    elif status == 429 and retry_after is not None:
        hint = f"Wait {_printable(retry_after)} s and try again"
    elif isinstance(error.get("error_id"), str):
        hint = f"The cause is in the log of that Freehold, under {_printable(error['error_id'])}"
    code = _printable(error["code"])
    kind = find_kind(code) or kind_of_status(status)
    return FreeholdError(code, _printable(error["message"]), hint=hint, kind=kind.name)


def stream_error(code: str, message: str, hint: str) -> FreeholdError:
    """The error at the end of a stream that began well."""
    code = _printable(code)
    kind = find_kind(code) or kind_of_status(500)
    return FreeholdError(code, _printable(message), hint=_printable(hint), kind=kind.name)


def _printable(text: object) -> str:
    """Text from another machine without control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text)[:MAX_TEXT_CHARS])


def connection_error(url: str, error: BaseException, timeout: float) -> FreeholdError:
    """The error for a failed connection: timeout, TLS, or not reachable."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return FreeholdError(
            "client.timeout",
            f"{url} did not answer within {timeout:g} s",
            hint="Try again, or wait longer: Freehold(url, timeout=120)",
        )
    if (fault := _find_tls_fault(error)) is not None:
        return FreeholdError(
            "client.tls",
            f"The TLS certificate of {url} is not valid: {fault}",
            hint="The certificate must be valid for this host name; your token was not sent",
        )
    return FreeholdError(
        "client.unreachable",
        f"Cannot connect to {url}: {_describe(error)}",
        hint="Check that it is running; on its machine: freehold status",
    )


def _find_tls_fault(error: BaseException) -> str | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return seen.verify_message
        if isinstance(seen, ssl.SSLError):
            return seen.reason or "the handshake failed"
        seen = seen.__cause__ or seen.__context__
    return None


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__


def read_reply(url: str, response: "httpx2.Response") -> Any:
    """The JSON of a successful reply. Raises FreeholdError for all other replies."""
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    if response.is_success and body is not None:
        return body
    raise error_from_reply(url, response.status_code, body, response.headers.get("retry-after"))


def unexpected_reply(url: str, error: Exception) -> FreeholdError:
    return FreeholdError(
        "client.odd-answer",
        f"{url} sent a reply that this version does not support: {type(error).__name__}",
        hint="Use the same version of Freehold on both machines",
    )
