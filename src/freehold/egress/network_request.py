"""What the owner is asked: durable, without expiry, and never more than fits on a screen.

An agent that wants to be a nuisance can ask for a new name every millisecond. So a name is asked once, many names
below one domain become one question about that domain, and beyond a fixed number nothing more is stored.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from freehold.egress.names import Host
from freehold.egress.policy import Pattern, parse_pattern
from freehold.egress.rules import put_rule
from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline

Answer = Literal["once", "session", "always", "never"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)

MAX_PENDING = 64
MAX_PER_FAMILY = 5

# Domains below which strangers live side by side: one question for all of them would be about all of them.
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
class Question:
    """A connection somebody inside wanted. `pattern` is exactly what a yes would allow."""

    id: int
    pattern: Pattern
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
            "who": self.who,
            "first_seen": self.first_seen,
            "last_seen": self.last_seen,
            "count": self.count,
        }


def family_of(host: Host) -> str:
    """About where one party's names begin: `a.b.example.co.uk` → `example.co.uk`. An address is its own family, and so
    is each name below a domain that strangers share.

    No list of public suffixes is complete; a wrong guess makes one question too many or too broad, and the
    question says in full what it is about.
    """
    labels = host.text.split(".")
    if host.address is not None or ".".join(labels[-2:]) in _SHARED:
        return host.text
    keep = 3 if len(labels[-1]) == 2 and len(labels[-2]) <= 3 else 2
    return ".".join(labels[-keep:])


def patterns_for(host: Host, port: int) -> list[Pattern]:
    """What a question about this connection may be called: the host itself, or all hosts of its family."""
    family = family_of(host)
    exact = Pattern(host, port=port)
    return [exact] if family == host.text else [exact, Pattern(Host(family), below=True, port=port)]


@dataclass(frozen=True)
class Questions:
    """Blocking calls on the questions that wait. Only the running Freehold asks; any process may answer."""

    timeline: Timeline

    def all(self) -> list[Question]:
        rows = self.timeline.query(
            "SELECT id, pattern, family, who, first_seen, last_seen, count FROM egress_question ORDER BY id"
        )
        return [Question(number, parse_pattern(pattern), *rest) for number, pattern, *rest in rows]

    def ask(self, host: Host, port: int, who: str) -> bool:
        """Makes sure a question about this waits; False when too many wait already. Idempotent."""
        family, now = family_of(host), _now()
        exact, *wider = patterns_for(host, port)
        with self.timeline.transaction() as tx:
            for pattern in (exact, *wider):
                if tx.execute("SELECT 1 FROM egress_question WHERE pattern = ?", (str(pattern),)).fetchone():
                    return True
            kin = [
                (number, count)
                for number, count, pattern in tx.execute(
                    "SELECT id, count, pattern FROM egress_question WHERE family = ?", (family,)
                )
                if (kindred := parse_pattern(pattern)).port == port and kindred.host.text != family
            ]
            asked, count, first = exact, 1, now
            if wider and len(kin) >= MAX_PER_FAMILY:
                asked, count = wider[0], 1 + sum(count for _number, count in kin)
                for number, _count in kin:
                    tx.execute("DELETE FROM egress_question WHERE id = ?", (number,))
            elif tx.execute("SELECT count(*) FROM egress_question").fetchone()[0] >= MAX_PENDING:
                return False
            made = tx.execute(
                "INSERT INTO egress_question (pattern, family, who, first_seen, last_seen, count) VALUES (?, ?, ?, ?, ?, ?)",
                (str(asked), family, who, first, now, count),
            )
            data = {"id": made.lastrowid, "target": str(asked), "host": host.text, "port": port}
            tx.append("egress.question_asked", data, who=who)
        return True

    def count(self, more: dict[int, int]) -> None:
        """Adds attempts that came since; not an event, so that asking again and again leaves no trail to fill a disk."""
        with self.timeline.transaction() as tx:
            for number, attempts in more.items():
                tx.execute(
                    "UPDATE egress_question SET count = count + ?, last_seen = ? WHERE id = ?",
                    (attempts, _now(), number),
                )

    def answer(self, number: int, answer: Answer, *, who: str = "owner") -> Pattern:
        """Turns the question into a rule. Raises `egress.no-question` when it does not wait (any more).

        A yes allows what was shown and nothing else; a `never` closes the host on every port.
        """
        if answer not in ANSWERS:
            raise FreeholdError(
                "egress.bad-answer", f"{answer!r} is not an answer", hint=f"The answers are: {', '.join(ANSWERS)}"
            )
        with self.timeline.transaction() as tx:
            # Compared as text: a number that somebody typed may be larger than any that SQLite takes.
            wanted = (str(number)[:20],)
            row = tx.execute(
                "DELETE FROM egress_question WHERE CAST(id AS TEXT) = ? RETURNING pattern, count", wanted
            ).fetchall()
            if not row:
                raise FreeholdError(
                    "egress.no-question",
                    f"No question {number} is waiting",
                    hint="freehold egress lists the questions that wait",
                )
            text, count = row[0]
            pattern = parse_pattern(text)
            data = {"id": number, "target": text, "answer": answer, "attempts": count}
            tx.append("egress.question_answered", data, who=who)
            reason = f"the owner answered question {number} with {answer}"
            if answer == "never":
                pattern = Pattern(pattern.host, pattern.below)
                put_rule(tx, "deny", pattern, "always", who, reason)
            else:
                put_rule(tx, "allow", pattern, answer, who, reason)
        return pattern


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
