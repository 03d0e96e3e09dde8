"""The egress of one Freehold, running: streams in, decisions out, and the state that people look at."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Literal

from freehold.egress import proxy
from freehold.egress.addresses import AddressCheck, Resolver, resolve_by_dns, why_refused_here
from freehold.egress.connections import Connection, Connections, Counters, Limits
from freehold.egress.gate import Gate
from freehold.egress.journal import Entry, Journal, Recent
from freehold.egress.policy import Mode, Policy, Rule, parse_pattern
from freehold.egress.questions import Answer, Question, Questions
from freehold.egress.rules import Rules, ensure_tables
from freehold.egress.stream import CHUNK, Stream
from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline

log = logging.getLogger(__name__)

CHANGES = ("egress.rule_added", "egress.rule_removed", "egress.question_asked", "egress.question_answered")
SWEEP = 1.0
SHOW = 0.1
FAREWELL = 2.0
NEARLY = 0.8
_MALFORMED = frozenset({"egress.malformed", "egress.odd-name", "egress.too-long", "egress.not-tls", "egress.wrong-sni"})


@dataclass(frozen=True)
class EgressSettings:
    """What the manifest says: `[egress] mode, allow, deny`."""

    mode: Mode = "ask"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def rules(self) -> list[Rule]:
        """Raises `egress.odd-name` or `egress.range` for a rule that is none."""
        return [
            *(Rule("deny", parse_pattern(text)) for text in self.deny),
            *(Rule("allow", parse_pattern(text)) for text in self.allow),
        ]


@dataclass(frozen=True)
class Snapshot:
    """Egress at one moment, for the API, the socket and the command line."""

    mode: Mode
    rules: tuple[Rule, ...]
    pending: tuple[Question, ...]
    recent: tuple[Recent, ...]
    connections: int
    counters: Counters

    def as_json(self) -> dict[str, Json]:
        return {
            "mode": self.mode,
            "rules": rules_as_json(self.rules),
            "pending": [question.as_json() for question in self.pending],
            "recent": [recent.as_json() for recent in self.recent],
            "connections": self.connections,
            "counters": asdict(self.counters),
        }


def rules_as_json(rules: Iterable[Rule]) -> list[Json]:
    return [{"verdict": rule.verdict, "rule": str(rule.pattern), "scope": rule.scope} for rule in rules]


class Egress:
    """`async with Egress(timeline, settings) as egress: await computer.listen(3128, egress.handle)`.

    Rules and answers may also be written by other processes (the command line); they apply here within moments.
    """

    def __init__(
        self,
        timeline: Timeline,
        settings: EgressSettings | None = None,
        *,
        limits: Limits | None = None,
        resolve: Resolver = resolve_by_dns,
        check: AddressCheck = why_refused_here,
    ) -> None:
        self.limits = limits or Limits()
        self.counters = Counters()
        self.connections = Connections(self.limits, self.counters)
        self._timeline = timeline
        self._settings = settings or EgressSettings()
        self._manifest_rules = self._settings.rules()
        self._rules = Rules(timeline)
        self._questions = Questions(timeline)
        self._journal = Journal(timeline)
        self._gate = Gate(self._rules, self._questions, self._journal, self.counters, self.limits, resolve, check)
        self._reloading = asyncio.Lock()
        self._tasks = asyncio.TaskGroup()
        self._chores: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Egress":
        await asyncio.to_thread(ensure_tables, self._timeline)
        await asyncio.to_thread(self._rules.end_session)
        last = await asyncio.to_thread(self._timeline.last)
        await self._reload()
        await self._tasks.__aenter__()
        self._chores = [
            self._tasks.create_task(self._follow(last.seq if last else 0)),
            self._tasks.create_task(self._sweep()),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self.connections:
            connection.cut("stopped")
        for chore in self._chores:
            chore.cancel()
        # What the body raised is the body's; only a cancellation may have come from a chore that failed.
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await self._tasks.__aexit__(*((kind, error, trace) if cancelled else (None, None, None)))
        await self._keep_counts(everything=True)

    async def handle(self, stream: Stream, who: str = "computer") -> None:
        """Serves one stream from inside to its end, and closes it. What goes wrong is told to the client, not raised."""
        try:
            async with self.connections.admit(who) as connection:
                await self._warn_when_nearly_full(who)
                self._gate.recorded.beat()
                await self._serve(stream, connection)
        except TimeoutError:
            log.info("egress connection cut", extra={"because": connection.cut_because or "slow"})
        except FreeholdError as error:
            if not error.code.startswith("egress."):
                log.warning("egress could not serve a connection: %s", error)
            await _tell(stream, error)
        finally:
            await _close(stream)
            self._gate.recorded.beat()

    async def answer(self, question: int, answer: Answer, *, who: str = "owner") -> None:
        """Raises `egress.no-question` when it was answered before."""
        await asyncio.to_thread(self._questions.answer, question, answer, who=who)
        await self._reload()

    async def add_rule(self, verdict: Literal["allow", "deny"], pattern: str, *, who: str = "owner") -> None:
        await asyncio.to_thread(self._rules.add, verdict, parse_pattern(pattern), who=who)
        await self._reload()

    async def forget_rule(self, pattern: str, *, who: str = "owner") -> None:
        """Raises `egress.no-rule` when no rule of the owner's own has this pattern."""
        await asyncio.to_thread(self._rules.forget, parse_pattern(pattern), who=who)
        await self._reload()

    async def configure(self, settings: EgressSettings) -> None:
        """Takes the mode and rules of a changed manifest; a bad rule raises and changes nothing."""
        rules = settings.rules()
        if settings == self._settings:
            return
        data: dict[str, Json] = {"mode": settings.mode, "allow": settings.allow, "deny": settings.deny}
        await asyncio.to_thread(self._timeline.append, "egress.configured", data, who="owner")
        self._settings, self._manifest_rules = settings, rules
        await self._reload()

    async def end_session(self) -> None:
        """Forgets what was allowed for a session, and cuts what lived by it."""
        await asyncio.to_thread(self._rules.end_session)
        await self._reload()

    def snapshot(self) -> Snapshot:
        gate = self._gate
        return Snapshot(
            gate.policy.mode,
            gate.policy.rules,
            tuple(gate.pending.values()),
            tuple(self._journal.recent),
            len(self.connections),
            Counters(**asdict(self.counters)),
        )

    async def changes(self) -> AsyncGenerator[Snapshot, None]:
        """The state now, then again after each change, at most ten times a second.

        A slow reader misses states in between and never the last one; nothing is queued for it.
        """
        while True:
            beats = self._gate.recorded.beats
            yield self.snapshot()
            await asyncio.sleep(SHOW)
            await self._gate.recorded.after(beats)

    async def _warn_when_nearly_full(self, who: str) -> None:
        most = self.limits.connections
        if len(self.connections) >= NEARLY * most:
            await self._journal.record(
                Entry("limit_neared", who, "", f"{NEARLY:.0%} of the {most} connections are open")
            )

    async def _serve(self, stream: Stream, connection: Connection) -> None:
        try:
            await proxy.serve(stream, connection, self._gate, self.limits)
            await _see_off(stream, connection)
        except FreeholdError as error:
            if error.code in _MALFORMED:
                self.counters.malformed += 1
                target = f"{connection.host}:{connection.port}" if connection.host else ""
                await self._journal.record(Entry("request_refused", connection.who, target, error.message))
                self._gate.recorded.beat()
            if not connection.answered:
                raise
            async with asyncio.timeout(FAREWELL):
                await stream.write_eof()
                await _see_off(stream, connection)
        except (OSError, EOFError) as error:
            log.debug("egress connection broke: %s", error)

    async def _reload(self) -> None:
        """Puts in force what the file says now, wakes who waits for an answer, cuts who lost permission."""
        async with self._reloading:
            rules, questions = await asyncio.to_thread(lambda: (self._rules.all(), self._questions.all()))
            lasting = [rule for rule in rules if rule.scope != "once"]
            gate = self._gate
            gate.policy = Policy(self._settings.mode, (*self._manifest_rules, *lasting))
            gate.once = frozenset(rule.pattern for rule in rules if rule.scope == "once")
            gate.pending = {question.pattern: question for question in questions}
            gone = self.connections.revoke(gate.policy)
            gate.changed.beat()
        for connection in gone:
            reason = "its permission was taken back while it was open"
            target = f"{connection.host}:{connection.port}"
            await self._journal.record(Entry("connection_revoked", connection.who, target, reason))
        gate.recorded.beat()

    async def _follow(self, after: int) -> None:
        while True:
            try:
                async with aclosing(self._timeline.follow(after, CHANGES)) as events:
                    async for event in events:
                        after = event.seq
                        await self._reload()
            except FreeholdError as error:
                log.warning("egress cannot see changes of its rules: %s", error)
                await asyncio.sleep(SWEEP)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            self.connections.sweep()
            await self._keep_counts()

    async def _keep_counts(self, *, everything: bool = False) -> None:
        attempts, self._gate.attempts = self._gate.attempts, Counter()
        try:
            if attempts:
                await asyncio.to_thread(self._questions.count, dict(attempts))
            await self._journal.flush(everything=everything)
        except FreeholdError as error:
            log.warning("egress cannot write its counts: %s", error)


async def _see_off(stream: Stream, connection: Connection) -> None:
    """Waits until the client has hung up: to close before that could drop what is still on its way to it."""
    connection.half_closed = True
    while await stream.read(CHUNK):
        pass


async def _tell(stream: Stream, error: FreeholdError) -> None:
    try:
        async with asyncio.timeout(FAREWELL):
            await proxy.refuse(stream, error)
    except (OSError, EOFError, TimeoutError, FreeholdError):
        return


async def _close(stream: Stream) -> None:
    try:
        await stream.close()
    except (OSError, EOFError, FreeholdError) as error:
        log.debug("egress stream was gone already: %s", error)
