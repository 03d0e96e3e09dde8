"""The problems of a sign-in, with the texts that the owner reads."""

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from freehold.errors import FreeholdError, KindName
from freehold.identity.atproto.fetcher import FetchError

Stage = Literal["directory", "pds", "server"]

ProblemCode = Literal[
    "directory-unreachable",
    "directory-broken",
    "did-unknown",
    "pds-unreachable",
    "pds-broken",
    "server-unreachable",
    "server-broken",
    "address-refused",
    "request-refused",
    "clock-skew",
    "callback-malformed",
    "expired",
    "other-browser",
    "wrong-issuer",
    "denied",
    "server-error",
    "code-refused",
    "token-broken",
    "moved",
    "not-owner",
    "write-refused",
]


@dataclass(frozen=True)
class ProblemText:
    """`{place}` is the host, DID or number that the problem is about."""

    title: str
    message: str
    hint: str
    kind: KindName


PROBLEM_TEXTS: dict[ProblemCode, ProblemText] = {
    "directory-unreachable": ProblemText(
        "The identity directory does not answer",
        "{place}, where the owner's identity is looked up, cannot be reached",
        "Check the network of this machine and try again in a few minutes; browsers that are signed in stay signed in",
        "upstream",
    ),
    "directory-broken": ProblemText(
        "The owner's identity cannot be read",
        "{place} answered with an identity document that breaks the rules of AT Protocol",
        "Check the identity document of the DID. Until it is correct, use a browser that is signed in, or `freehold open --keeper`",
        "upstream",
    ),
    "did-unknown": ProblemText(
        "The owner's identity was not found",
        "The directory has no entry for {place}",
        "Check `did` under [owner] in freehold.toml",
        "upstream",
    ),
    "pds-unreachable": ProblemText(
        "Your PDS does not answer",
        "{place}, which hosts the owner's account, cannot be reached",
        "Try again later. Browsers that are signed in stay signed in, and `freehold open --keeper` opens the recovery page",
        "upstream",
    ),
    "pds-broken": ProblemText(
        "Your PDS names no valid sign-in server",
        "{place} answered with sign-in metadata that breaks the rules of AT Protocol",
        "Report this to the operator of that PDS; the exact reason is in the log: freehold logs gateway",
        "upstream",
    ),
    "server-unreachable": ProblemText(
        "Your sign-in server does not answer",
        "{place}, which signs the owner in, cannot be reached",
        "Try again later. Browsers that are signed in stay signed in, and `freehold open --keeper` opens the recovery page",
        "upstream",
    ),
    "server-broken": ProblemText(
        "Your sign-in server does not follow AT Protocol",
        "{place} sent a reply that AT Protocol sign-in does not allow",
        "Report this to the operator of that server; the exact reason is in the log: freehold logs gateway",
        "upstream",
    ),
    "address-refused": ProblemText(
        "A server points to a private address",
        "{place} has no address on the public internet, so it was not contacted",
        "Check the DNS of this machine, the identity document of the DID and the metadata of the server",
        "upstream",
    ),
    "request-refused": ProblemText(
        "Your sign-in server refused the request",
        "{place} did not accept this Freehold's sign-in request",
        "A server must be able to fetch /oauth/client-metadata.json and /oauth/jwks.json from a public Freehold; its reason is in the log: freehold logs gateway",
        "upstream",
    ),
    "clock-skew": ProblemText(
        "The clock is wrong",
        "The clocks of this machine and of the sign-in server differ by {place} seconds",
        "Set the clock of this machine (timedatectl set-ntp true) and try again",
        "upstream",
    ),
    "callback-malformed": ProblemText(
        "The callback address is not valid",
        "The address does not contain a complete reply of a sign-in server",
        "Start again from the sign-in page",
        "invalid",
    ),
    "expired": ProblemText(
        "This sign-in has expired",
        "It took too long, was used already, or did not start here",
        "Start again from the sign-in page",
        "invalid",
    ),
    "other-browser": ProblemText(
        "This sign-in started in another browser",
        "A sign-in must be completed in the browser that started it",
        "Start again from the sign-in page in this browser, with cookies allowed",
        "invalid",
    ),
    "wrong-issuer": ProblemText(
        "The reply came from another server",
        "A server answered that this Freehold did not ask",
        "Start again from the sign-in page. If it happens again, the connection may be under attack",
        "invalid",
    ),
    "denied": ProblemText(
        "Access was denied at your PDS",
        "You refused the request on the page of the PDS, or the page expired",
        "Start again from the sign-in page and choose Authorize",
        "permission",
    ),
    "server-error": ProblemText(
        "Your sign-in server reported an error",
        "{place} ended the sign-in with an error",
        "Start again from the sign-in page; the error is in the log: freehold logs gateway",
        "upstream",
    ),
    "code-refused": ProblemText(
        "The sign-in could not be completed",
        "{place} did not accept the authorization code, usually because it had expired",
        "Start again from the sign-in page",
        "invalid",
    ),
    "token-broken": ProblemText(
        "Your sign-in server does not follow AT Protocol",
        "{place} confirmed the sign-in with tokens that AT Protocol does not allow",
        "Report this to the operator of that server; the exact reason is in the log: freehold logs gateway",
        "upstream",
    ),
    "moved": ProblemText(
        "The account moved during the sign-in",
        "The owner's account is now on another server than the one that answered",
        "Start again from the sign-in page",
        "conflict",
    ),
    "not-owner": ProblemText(
        "This Freehold belongs to someone else",
        "You signed in with an account that is not the owner of this Freehold",
        "Sign in with the owner's account, or run your own Freehold",
        "permission",
    ),
    "write-refused": ProblemText(
        "Your account was not changed",
        "{place}, which hosts your account, did not take the record",
        "Try again and agree to all that is asked; a server that knows no permissions for single collections cannot be used",
        "upstream",
    ),
}


class SignInProblem(FreeholdError):
    """A sign-in failed. `reason` is for the log: the broken rule with its value, never a secret."""

    def __init__(self, code: ProblemCode, reason: str, *, place: str = "") -> None:
        text = PROBLEM_TEXTS[code]
        message = text.message.format(place=place or "The server")
        super().__init__(f"sign-in.{code}", message, hint=text.hint, kind=text.kind)
        self.title = text.title
        self.reason = reason


def escape_for_log(value: object, limit: int = 200) -> str:
    """A remote value for a log line: escaped and shortened."""
    text = ascii(value)
    return text if len(text) <= limit else text[:limit] + "…"


_STAGES: dict[Stage, tuple[ProblemCode, ProblemCode, int]] = {
    "directory": ("directory-unreachable", "directory-broken", 3),
    "pds": ("pds-unreachable", "pds-broken", 7),
    "server": ("server-unreachable", "server-broken", 8),
}


def explain_fetch_error(error: FetchError, stage: Stage) -> SignInProblem:
    """The problem that a failed fetch means, depending on which server was asked."""
    if error.failure in ("address", "url"):
        return SignInProblem("address-refused", f"checklist 31: {error}", place=error.host)
    unreachable, broken, number = _STAGES[stage]
    if error.failure == "unreachable":
        return SignInProblem(unreachable, str(error), place=error.host)
    if error.failure in ("redirect", "size"):
        number = 31
    return SignInProblem(broken, f"checklist {number}: {error}", place=error.host)


def describe_first_error(error: ValidationError) -> str:
    """The first invalid field of a document and its error, without the value."""
    found = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}"[:200]
