"""Network requests: connections that no rule covers and that wait for the owner's answer.

Requests are durable and have no expiry. A hostile agent may ask for a new name every millisecond, so their number is
bounded: one request for a host and port, one for the whole domain when many names below it are asked for, and nothing
is stored beyond `MAX_PENDING`, of which one session has `MAX_PER_SESSION`, so that it cannot silence the others.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from freehold.egress.names import Host
from freehold.egress.policy import EgressRule, HostPattern, parse_pattern
from freehold.egress.rules import insert_rule
from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline, Transaction

OwnerAnswer = Literal["once", "conversation", "until_restart", "always", "never"]
ANSWERS: tuple[OwnerAnswer, ...] = get_args(OwnerAnswer)

MAX_PENDING = 64
MAX_PER_SESSION = 32
MAX_PER_FAMILY = 5

# Unrelated parties have names below these domains: one request must not cover them all.
_SHARED = frozenset(
    [
        "amazonaws.com",
        "appspot.com",
        "azureedge.net",
        "azurefd.net",
        "azurewebsites.net",
        "backblazeb2.com",
        "b-cdn.net",
        "blogspot.com",
        "cloudapp.net",
        "cloudfront.net",
        "digitaloceanspaces.com",
        "fastly.net",
        "firebaseapp.com",
        "firebaseio.com",
        "fly.dev",
        "github.dev",
        "github.io",
        "githubpreview.dev",
        "gitlab.io",
        "googleapis.com",
        "googleusercontent.com",
        "herokuapp.com",
        "netlify.app",
        "ngrok.app",
        "ngrok.io",
        "ngrok-free.app",
        "onrender.com",
        "pages.dev",
        "r2.dev",
        "railway.app",
        "readthedocs.io",
        "run.app",
        "sharepoint.com",
        "supabase.co",
        "trycloudflare.com",
        "ts.net",
        "vercel.app",
        "web.app",
        "windows.net",
        "wixsite.com",
        "workers.dev",
    ]
)


@dataclass(frozen=True)
class NetworkRequest:
    """A connection that a program inside wanted. `pattern` is exactly what a yes allows.

    `session` is the session that asked; None for a program that belongs to no session, such as the owner's terminal.
    """

    id: int
    pattern: HostPattern
    session: str | None
    family: str
    who: str
    first_seen: str
    last_seen: str
    count: int

    def as_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "target": str(self.pattern),
            "host": f"{'*.' if self.pattern.below else ''}{self.pattern.host}",
            "port": self.pattern.port,
            "session": self.session,
            "who": self.who,
            "first_seen": self.first_seen,
            "last_seen": self.last_seen,
            "count": self.count,
        }


def family_of(host: Host) -> str:
    """A guess at the domain that one party owns: `a.b.example.co.uk` gives `example.co.uk`.

    An address is its own family, and so is each name below a domain that unrelated parties share. No list of public
    suffixes is complete. A wrong guess makes one request too many or too broad, and the request shows its pattern.
    """
    labels = host.text.split(".")
    if host.address is not None or ".".join(labels[-2:]) in _SHARED:
        return host.text
    keep = 3 if len(labels[-1]) == 2 and len(labels[-2]) <= 3 else 2
    return ".".join(labels[-keep:])


def request_patterns(host: Host, port: int) -> list[HostPattern]:
    """The patterns that a request for this connection may have: the host itself, or all hosts of its family."""
    family = family_of(host)
    exact = HostPattern(host, port=port)
    return [exact] if family == host.text else [exact, HostPattern(Host(family), below=True, port=port)]


@dataclass(frozen=True)
class NetworkRequests:
    """Blocking calls on the requests that wait. Only the running egress adds requests; any process may answer them."""

    timeline: Timeline

    def all(self) -> list[NetworkRequest]:
        rows = self.timeline.query(
            "SELECT id, pattern, session, family, who, first_seen, last_seen, count FROM egress_request ORDER BY id"
        )
        return [
            NetworkRequest(number, parse_pattern(pattern), session or None, *rest)
            for number, pattern, session, *rest in rows
        ]

    def add(self, host: Host, port: int, who: str, session: str | None = None) -> bool:
        """Makes sure that a request for this connection waits. Idempotent. False when too many wait already."""
        asking = session or ""
        exact, *wider = request_patterns(host, port)
        with self.timeline.transaction() as tx:
            for pattern in (exact, *wider):
                if tx.execute(
                    "SELECT 1 FROM egress_request WHERE pattern = ? AND session = ?", (str(pattern), asking)
                ).fetchone():
                    return True
            siblings = _find_siblings(tx, host, port, asking)
            requested, count = exact, 1
            if wider and len(siblings) >= MAX_PER_FAMILY:
                requested, count = wider[0], 1 + sum(siblings.values())
                for number in siblings:
                    tx.execute("DELETE FROM egress_request WHERE id = ?", (number,))
            elif _is_full(tx, asking):
                return False
            now = _now()
            made = tx.execute(
                "INSERT INTO egress_request (pattern, session, family, who, first_seen, last_seen, count)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (str(requested), asking, family_of(host), who, now, now, count),
            )
            data: dict[str, Json] = {
                "id": made.lastrowid,
                "target": str(requested),
                "host": host.text,
                "port": port,
                "session": session,
            }
            tx.append("egress.question_asked", data, who=who)
        return True

    def add_attempts(self, attempts: dict[int, int]) -> None:
        """Adds repeated attempts to the counts. Makes no event, so repeated attempts do not fill the timeline."""
        with self.timeline.transaction() as tx:
            for number, count in attempts.items():
                tx.execute(
                    "UPDATE egress_request SET count = count + ?, last_seen = ? WHERE id = ?",
                    (count, _now(), number),
                )

    def answer(self, number: int, answer: OwnerAnswer, *, who: str = "owner") -> HostPattern:
        """Turns the request into a rule. Raises `egress.no-request` when it does not wait (any more).

        A yes allows exactly what was shown: `once` and `conversation` only to the session that asked. `never` denies
        the host on every port. Raises `egress.no-session` for `conversation` when no session asked.
        """
        if answer not in ANSWERS:
            raise FreeholdError(
                "egress.wrong-answer", f"{answer!r} is not an answer", hint=f"The answers are: {', '.join(ANSWERS)}"
            )
        with self.timeline.transaction() as tx:
            # Compared as text: a number that somebody typed may be larger than SQLite allows.
            row = tx.execute(
                "DELETE FROM egress_request WHERE CAST(id AS TEXT) = ? RETURNING pattern, session, count",
                (str(number)[:20],),
            ).fetchall()
            if not row:
                raise FreeholdError(
                    "egress.no-request",
                    f"No network request {number} is waiting",
                    hint="freehold egress lists the requests that wait",
                )
            text, session, count = row[0]
            if answer == "conversation" and not session:
                raise FreeholdError(
                    "egress.no-session",
                    f"Network request {number} comes from no session, so it cannot be allowed for a conversation",
                    hint="Answer once, until_restart, always or never",
                    kind="conflict",
                )
            data: dict[str, Json] = {"id": number, "target": text, "answer": answer, "attempts": count}
            tx.append("egress.question_answered", data, who=who)
            rule = _rule_for(answer, parse_pattern(text), session or None)
            insert_rule(tx, rule, who, f"the owner answered network request {number} with {answer}", number)
        return rule.pattern


def _rule_for(answer: OwnerAnswer, pattern: HostPattern, session: str | None) -> EgressRule:
    if answer == "never":
        return EgressRule("deny", HostPattern(pattern.host, pattern.below), "always")
    return EgressRule("allow", pattern, answer, session if answer in ("once", "conversation") else None)


def _is_full(tx: Transaction, session: str) -> bool:
    count, own = tx.execute("SELECT count(*), coalesce(sum(session = ?), 0) FROM egress_request", (session,)).fetchone()
    return bool(count >= MAX_PENDING or own >= MAX_PER_SESSION)


def _find_siblings(tx: Transaction, host: Host, port: int, session: str) -> dict[int, int]:
    """Waiting requests of the same session for other names of this family, with their counts."""
    family = family_of(host)
    found = {}
    for number, count, text in tx.execute(
        "SELECT id, count, pattern FROM egress_request WHERE family = ? AND session = ?", (family, session)
    ):
        pattern = parse_pattern(text)
        if pattern.port == port and pattern.host.text != family:
            found[number] = count
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
