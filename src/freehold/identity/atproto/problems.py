"""What can go wrong while signing in, in the owner's words."""

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from freehold.errors import FreeholdError
from freehold.identity.atproto.fetch import FetchError

Stage = Literal["directory", "pds", "server"]

Code = Literal[
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
]


@dataclass(frozen=True)
class Words:
    """`{place}` is the host, DID or number that the problem is about."""

    title: str
    message: str
    hint: str
    status: int


WORDS: dict[Code, Words] = {
    "directory-unreachable": Words(
        "The identity directory does not answer",
        "{place}, where the owner's identity is looked up, cannot be reached",
        "Check this machine's network and try again in a few minutes; sessions that exist keep working",
        502,
    ),
    "directory-broken": Words(
        "The owner's identity cannot be read",
        "{place} answered with an identity document that breaks the rules of AT Protocol",
        "Look the DID up at the directory; until the document is right, use a browser that is still signed in or `freehold open --keeper`",
        502,
    ),
    "did-unknown": Words(
        "The owner's identity is gone",
        "The directory does not know {place} (any more)",
        "Check `did` under [owner] in freehold.toml",
        502,
    ),
    "pds-unreachable": Words(
        "Your PDS does not answer",
        "{place}, where the owner's account lives, cannot be reached",
        "Try again when it is up; sessions that exist keep working, and `freehold open --keeper` opens the recovery page",
        502,
    ),
    "pds-broken": Words(
        "Your PDS does not say who signs you in",
        "{place} answered with sign-in metadata that breaks the rules of AT Protocol",
        "Tell whoever runs that PDS; the exact reason is in the log: freehold logs gateway",
        502,
    ),
    "server-unreachable": Words(
        "Your sign-in server does not answer",
        "{place}, which signs the owner in, cannot be reached",
        "Try again when it is up; sessions that exist keep working, and `freehold open --keeper` opens the recovery page",
        502,
    ),
    "server-broken": Words(
        "Your sign-in server breaks the rules",
        "{place} answered in a way that AT Protocol sign-in does not allow",
        "Tell whoever runs that server; the exact reason is in the log: freehold logs gateway",
        502,
    ),
    "address-refused": Words(
        "A server points to a private address",
        "{place} does not lead to an address on the public internet, so it was not contacted",
        "If the DNS of this machine is right, the identity document or the server is wrong: check both",
        502,
    ),
    "request-refused": Words(
        "Your sign-in server refused the request",
        "{place} did not accept this Freehold's sign-in request",
        "With a public address, that server must be able to fetch /oauth/client-metadata.json and /oauth/jwks.json from it; the reason given is in the log: freehold logs gateway",
        502,
    ),
    "clock-skew": Words(
        "The clock is wrong",
        "The clock of this machine and that of the sign-in server differ by {place} seconds",
        "Set this machine's clock (timedatectl set-ntp true) and try again",
        502,
    ),
    "callback-malformed": Words(
        "That is not an answer to a sign-in",
        "The address that was opened does not hold a complete answer from a sign-in server",
        "Begin again from the sign-in page",
        400,
    ),
    "expired": Words(
        "This sign-in is over",
        "It took too long, was already used, or was never begun here",
        "Begin again from the sign-in page",
        400,
    ),
    "other-browser": Words(
        "This sign-in began in another browser",
        "An answer counts only in the browser that asked",
        "Begin again from the sign-in page of this browser, with cookies allowed",
        400,
    ),
    "wrong-issuer": Words(
        "The answer came from another server",
        "The sign-in was answered by a server that was not asked",
        "Begin again from the sign-in page; if it happens again, somebody is interfering",
        400,
    ),
    "denied": Words(
        "Access was denied at your PDS",
        "The page of the PDS was answered with no, or left open until it expired",
        "Begin again from the sign-in page and choose Authorize",
        403,
    ),
    "server-error": Words(
        "Your sign-in server gave up",
        "{place} ended the sign-in with an error",
        "Begin again from the sign-in page; the error is in the log: freehold logs gateway",
        502,
    ),
    "code-refused": Words(
        "The sign-in could not be completed",
        "{place} did not accept its own answer any more, usually because too much time had passed",
        "Begin again from the sign-in page",
        400,
    ),
    "token-broken": Words(
        "Your sign-in server breaks the rules",
        "{place} confirmed the sign-in in a way that AT Protocol does not allow",
        "Tell whoever runs that server; the exact reason is in the log: freehold logs gateway",
        502,
    ),
    "moved": Words(
        "The account moved during the sign-in",
        "The owner's account now belongs to another server than the one that answered",
        "Begin again from the sign-in page",
        409,
    ),
    "not-owner": Words(
        "This is not your house",
        "You have proven who you are, but this Freehold belongs to somebody else",
        "Sign in with the owner's account, or run a Freehold of your own",
        403,
    ),
}


class SignInProblem(FreeholdError):
    """A sign-in that ended. `reason` is for the log: which rule was broken, with the value, and never a secret."""

    def __init__(self, code: Code, reason: str, *, place: str = "") -> None:
        words = WORDS[code]
        super().__init__(f"sign-in.{code}", words.message.format(place=place or "The server"), hint=words.hint)
        self.title = words.title
        self.status = words.status
        self.reason = reason


def shown(value: object, limit: int = 200) -> str:
    """A remote value as it may stand in a log line: escaped and short."""
    text = ascii(value)
    return text if len(text) <= limit else text[:limit] + "…"


_STAGES: dict[Stage, tuple[Code, Code, int]] = {
    "directory": ("directory-unreachable", "directory-broken", 3),
    "pds": ("pds-unreachable", "pds-broken", 7),
    "server": ("server-unreachable", "server-broken", 8),
}


def fetch_problem(error: FetchError, stage: Stage) -> SignInProblem:
    """What a failed fetch means to the owner, by who was asked: the directory, the PDS or the sign-in server."""
    if error.failure in ("address", "url"):
        return SignInProblem("address-refused", f"checklist 31: {error}", place=error.host)
    unreachable, broken, number = _STAGES[stage]
    if error.failure == "unreachable":
        return SignInProblem(unreachable, str(error), place=error.host)
    if error.failure in ("redirect", "size"):
        number = 31
    return SignInProblem(broken, f"checklist {number}: {error}", place=error.host)


def first_fault(error: ValidationError) -> str:
    """Where a document is wrong and how, without the value."""
    found = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}"[:200]
