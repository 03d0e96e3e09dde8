"""What can go wrong between here and a Freehold, each with what to do about it."""

import ssl
from typing import TYPE_CHECKING, Any

from freehold.errors import FreeholdError

if TYPE_CHECKING:
    import httpx2

LONGEST_WORDS = 2000
_HINTS = {401: "Ask for a new token with: freehold login {url}"}


def refusal(url: str, status: int, body: object, retry_after: str | None = None) -> FreeholdError:
    """The error a Freehold answered, in its own words; or that something else answered in its place."""
    error: Any = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict) or not all(isinstance(error.get(key), str) for key in ("code", "message")):
        return FreeholdError(
            "client.odd-answer",
            f"{url} answered {status}, and not as a Freehold does",
            hint="Check the address; a proxy in between may be answering for it",
        )
    hint = _shown(error.get("hint") or "")
    if status in _HINTS:
        hint = _HINTS[status].format(url=url)
    elif status == 429 and retry_after is not None:
        hint = f"Wait {_shown(retry_after)} s and try again"
    elif isinstance(error.get("error_id"), str):
        hint = f"Its log has the cause under {_shown(error['error_id'])}"
    return FreeholdError(_shown(error["code"]), _shown(error["message"]), hint=hint)


def _shown(words: object) -> str:
    """Another machine's words, for a terminal that would obey some of them."""
    return "".join(letter if letter.isprintable() else " " for letter in str(words)[:LONGEST_WORDS])


def unreachable(url: str, error: BaseException, timeout: float) -> FreeholdError:
    """What the network did, told apart by what the owner can do about it."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return FreeholdError(
            "client.timeout",
            f"{url} did not answer within {timeout:g} s",
            hint="Try again, or wait longer: Freehold(url, timeout=120)",
        )
    if (fault := _tls_fault(error)) is not None:
        return FreeholdError(
            "client.tls",
            f"{url} does not prove that it is the right machine: {fault}",
            hint="Its certificate must be valid for this name; your token was not sent",
        )
    return FreeholdError(
        "client.unreachable",
        f"{url} cannot be reached: {_words(error)}",
        hint="Is it running? On its own machine: freehold status",
    )


def _tls_fault(error: BaseException) -> str | None:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return seen.verify_message
        if isinstance(seen, ssl.SSLError):
            return seen.reason or "the handshake failed"
        seen = seen.__cause__ or seen.__context__
    return None


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def answered(url: str, response: "httpx2.Response") -> Any:
    """The JSON of a good answer; every other is raised."""
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    if response.is_success and body is not None:
        return body
    raise refusal(url, response.status_code, body, response.headers.get("retry-after"))


def misunderstood(url: str, error: Exception) -> FreeholdError:
    return FreeholdError(
        "client.odd-answer",
        f"{url} answered in a shape this version does not know: {type(error).__name__}",
        hint="One of the two is older; bring both to the same version",
    )
