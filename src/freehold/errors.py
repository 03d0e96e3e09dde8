"""The one error class of Freehold, and the one table of error kinds.

A kind decides the HTTP status, the exit code of the command line and the default hint. The gateway, the keeper, the
client and the command line all read it from here.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypedDict

KindName = Literal[
    "invalid",
    "usage",
    "not-signed-in",
    "permission",
    "not-found",
    "method",
    "conflict",
    "too-slow",
    "expired",
    "precondition",
    "too-large",
    "address-too-long",
    "misdirected",
    "unprocessable",
    "too-many",
    "headers-too-long",
    "internal",
    "damaged",
    "unsupported",
    "upstream",
    "unavailable",
    "timeout",
    "no-space",
]


@dataclass(frozen=True)
class ErrorKind:
    """`hint` is shown for an error that has no hint of its own.

    `words` are the last words of the codes of this kind (`session.not-found` ends in `not-found`). A word with a dot
    is a whole code; it wins over the last word.
    """

    name: KindName
    status: int
    exit_code: int
    hint: str
    words: frozenset[str]


def _kind(name: KindName, status: int, hint: str, words: str, *, exit_code: int = 1) -> ErrorKind:
    return ErrorKind(name, status, exit_code, hint, frozenset((name, *words.split())))


_TABLE = (
    _kind(
        "invalid",
        400,
        "Correct the value and try again",
        """address address-refused allow-all bad-address bad-budget bad-choice bad-endpoint bad-file bad-folder
        bad-key bad-kind bad-limit bad-message bad-name bad-owner bad-params bad-path bad-pattern bad-request bad-sign-in bad-socket
        bad-transport bad-value bad-who cannot-edit dangerous-folder empty expectation handle is-a-folder isolate-refused malformed
        mount-missing mount-refused name name-too-long no-option not-a-folder not-empty not-json not-tls odd-name owner port
        protocol public-url range scope too-deep too-many-links unknown-backend unknown-field unknown-image unknown-kind use-connect
        weak-key wrong-answer wrong-arguments wrong-sni""",
    ),
    _kind(
        "usage",
        400,
        "Add --help to see how the command is used",
        "bad-since deploy.odd-image deploy.odd-path deploy.odd-user deploy.root token.expiry",
        exit_code=2,
    ),
    _kind(
        "not-signed-in",
        401,
        "Open /sign-in in a browser, or send an API token",
        "bad-credentials bad-placeholder bad-signature clock-skew no-token replayed unsigned",
    ),
    _kind(
        "permission",
        403,
        "Use a sign-in or an API token that may do this",
        """browser-only closed denied handle-not-claimed key-exposed link-not-allowed not-ours not-writable not-yours
        only-there plain-http reaches-out refused tool.no unasked unasked-mode wrong-origin wrong-scope""",
    ),
    _kind(
        "not-found",
        404,
        "Check the name or number and try again",
        """handle-unknown missing no-component no-context no-device no-element no-file no-folder no-module no-owner no-package no-program no-request no-rule no-session
        no-such-entry no-such-method no-such-page no-such-program no-terminal not-temporary unknown unknown-method unknown-path
        unknown-topic""",
    ),
    _kind("method", 405, "Use a method that this address accepts", "use-post"),
    _kind(
        "conflict",
        409,
        "Look at the current state and try again",
        """already-running asked backup.off cancelled changed claimed conflicts context-ended disabled drifted exists folder-in-use handle-ambiguous
        history.empty interrupted key-needed limit name-taken no-address no-answer no-embeddings no-history no-images no-key no-model
        none-configured not-built not-done browser.not-open browser.not-read browser.not-started not-installed not-offered nothing-interrupted nothing-staged nothing-to-install nothing-to-redo session.not-running
        nothing-to-undo only-one other-address other-agent read-only session-ended signed-out still-running stopped stopping unfinished""",
    ),
    _kind("too-slow", 408, "Try again", ""),
    _kind("expired", 410, "Start again", "code-expired evicted link-expired"),
    _kind("precondition", 412, "Read it again, and decide which version to keep", ""),
    _kind("too-large", 413, "Send less at once", "answer-too-long too-big too-long"),
    _kind("address-too-long", 414, "Send long values in the body of a request", ""),
    _kind("unprocessable", 422, "GET /v1/openapi.json describes the API", "request.invalid"),
    _kind("misdirected", 421, "Set gateway.public_url in freehold.toml", "wrong-host"),
    _kind(
        "too-many", 429, "Wait a moment and try again", "budget-reached over-budget too-many-terminals too-many-topics"
    ),
    _kind("headers-too-long", 431, "Send fewer or shorter headers", ""),
    _kind(
        "internal",
        500,
        "freehold logs shows the cause",
        "bug cannot-listen cannot-open cannot-start died disk-error failed isolate-failed restore-interrupted restore-not-recorded store-failed unexpected",
    ),
    _kind(
        "damaged",
        500,
        "Restore the file from a backup",
        """archive-damaged bad-seal corrupt damaged-content database database-version foreign key key-damaged missing-artifact newer schema
        stored-tokens tampered unreadable""",
    ),
    _kind(
        "unsupported",
        501,
        "Install a version that supports this",
        "no-client no-devices no-fuse no-guest no-isolates no-node no-otel no-python no-wasmtime no-weights version wrong-version",
    ),
    _kind(
        "upstream",
        502,
        "Try again; if it fails again, check the other side",
        """browser.not-opened bad-answer bad-embedding bad-reply bad-response code-failed command-failed cut-off cut-short embedding-refused install-failed lost
        no-text nonsense not-fetched odd-answer tls""",
    ),
    _kind(
        "unavailable",
        503,
        "Try again in a moment; freehold status shows what is running",
        """busy cannot-sleep ended link.closed link.refused no-gateway no-isolation no-listener no-memory not-connected not-open
        not-ready not-recorded not-running not-started out-of-memory port-in-use port-taken unreachable unresponsive unwell""",
    ),
    _kind("timeout", 504, "Try again", "preview.no-answer search-too-long silent slow slow-embedding"),
    _kind("no-space", 507, "Free some disk space and try again", "disk-full full"),
)

KINDS = MappingProxyType({kind.name: kind for kind in _TABLE})
_KIND_OF_WORD = {word: kind for kind in _TABLE for word in kind.words}


def find_kind(code: str) -> ErrorKind | None:
    """The kind that the table gives to a code: by the whole code, else by its last word."""
    return _KIND_OF_WORD.get(code) or _KIND_OF_WORD.get(code.rpartition(".")[2])


def kind_of_status(status: int) -> ErrorKind:
    """The kind of an error that another server answered with this HTTP status and a code that is not known here."""
    for kind in _TABLE:
        if kind.status == status:
            return kind
    return KINDS["invalid"] if status < 500 else KINDS["internal"]


class ErrorBody(TypedDict):
    """The shape of an error in an HTTP answer and on the keeper's socket."""

    code: str
    message: str
    hint: str


class FreeholdError(Exception):
    """What happened, with the value, and what to do next.

    Any other exception that reaches an edge (a route, a socket, the command line) is a bug: only its error id is shown.
    `kind` is needed only for a code whose last word is not in the table.
    """

    def __init__(self, code: str, message: str, *, hint: str = "", kind: KindName | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.kind = KINDS[kind] if kind is not None else find_kind(code) or KINDS["internal"]

    @property
    def next_step(self) -> str:
        """The hint, or that of its kind."""
        return self.hint or self.kind.hint

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" + (f"\n  hint: {self.hint}" if self.hint else "")

    def body(self) -> ErrorBody:
        return {"code": self.code, "message": self.message, "hint": self.next_step}
