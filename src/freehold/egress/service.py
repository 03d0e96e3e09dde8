"""The running egress of one Freehold: it serves streams from inside, decides, and shows its state."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Literal

from freehold.egress import proxy
from freehold.egress.addresses import AddressCheck, Resolver, resolve_by_dns, why_refused_here
from freehold.egress.authorization import Authorizer
from freehold.egress.change_feed import reload_on_change
from freehold.egress.connections import Connections, EgressConnection, EgressCounters, EgressLimits, LocalServers
from freehold.egress.credentials import ProxyCredentials
from freehold.egress.decision_log import DecisionLog, DecisionRecord, RecentDecision
from freehold.egress.keyring.service import Keyring
from freehold.egress.network_request import NetworkRequest, NetworkRequests, OwnerAnswer
from freehold.egress.policy import EgressPolicy, EgressRule, Mode, parse_pattern
from freehold.egress.rules import EgressRules, ensure_tables
from freehold.egress.stream import CHUNK, ByteStream
from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline

log = logging.getLogger(__name__)

CHANGES = ("egress.rule_added", "egress.rule_removed", "egress.question_asked", "egress.question_answered")
SWEEP_INTERVAL = 1.0
UPDATE_INTERVAL = 0.1
CLOSE_TIMEOUT = 2.0
NEAR_LIMIT = 0.8
_REFUSED_REQUESTS = frozenset(
    {
        "egress.malformed",
        "egress.bad-credentials",
        "egress.odd-name",
        "egress.too-long",
        "egress.not-tls",
        "egress.wrong-sni",
    }
)
"""Requests that are refused whatever the rules say. Each is recorded."""


@dataclass(frozen=True)
class EgressSettings:
    """The manifest's `[egress] mode, allow, deny`."""

    mode: Mode = "ask"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def rules(self) -> list[EgressRule]:
        """Raises `egress.odd-name` or `egress.range` for an invalid rule."""
        return [
            *(EgressRule("deny", parse_pattern(text)) for text in self.deny),
            *(EgressRule("allow", parse_pattern(text)) for text in self.allow),
        ]


@dataclass(frozen=True)
class EgressStatus:
    """Egress at one moment, for the API, the socket and the command line."""

    mode: Mode
    rules: tuple[EgressRule, ...]
    pending: tuple[NetworkRequest, ...]
    recent: tuple[RecentDecision, ...]
    connections: int
    counters: EgressCounters

    def as_json(self) -> dict[str, Json]:
        return {
            "mode": self.mode,
            "rules": rules_as_json(self.rules),
            "pending": [request.as_json() for request in self.pending],
            "recent": [recent.as_json() for recent in self.recent],
            "connections": self.connections,
            "counters": asdict(self.counters),
        }


def rules_as_json(rules: Iterable[EgressRule]) -> list[Json]:
    return [
        {"verdict": rule.verdict, "rule": str(rule.pattern), "reach": rule.reach, "session": rule.session}
        for rule in rules
    ]


class EgressService:
    """`async with EgressService(timeline, settings) as egress: await computer.listen(3128, egress.handle)`.

    Other processes (the command line) may write rules and answers too; they apply here within moments.
    """

    def __init__(
        self,
        timeline: Timeline,
        settings: EgressSettings | None = None,
        *,
        limits: EgressLimits | None = None,
        credentials: ProxyCredentials | None = None,
        resolve: Resolver = resolve_by_dns,
        check: AddressCheck = why_refused_here,
        keyring: Keyring | None = None,
    ) -> None:
        self.limits = limits or EgressLimits()
        self.counters = EgressCounters()
        self.connections = Connections(self.limits, self.counters)
        self.credentials = credentials or ProxyCredentials()
        self._keyring = keyring
        self._timeline = timeline
        self._settings = settings or EgressSettings()
        self._manifest_rules = self._settings.rules()
        self._rules = EgressRules(timeline)
        self._requests = NetworkRequests(timeline)
        self._decisions = DecisionLog(timeline)
        self._authorizer = Authorizer(
            self._rules, self._requests, self._decisions, self.counters, self.limits, resolve, check
        )
        self._reloading = asyncio.Lock()
        self._tasks = asyncio.TaskGroup()
        self._background: list[asyncio.Task[None]] = []
        self._running = False
        self._ending: Counter[str] = Counter()
        """Sessions whose conversation has ended and whose rules are still on disk."""

    async def __aenter__(self) -> "EgressService":
        await asyncio.to_thread(ensure_tables, self._timeline)
        await asyncio.to_thread(self._rules.end_restart)
        last = await asyncio.to_thread(self._timeline.last)
        await self._reload()
        await self._tasks.__aenter__()
        self._background = [
            self._tasks.create_task(reload_on_change(self._timeline, last.seq if last else 0, CHANGES, self._reload)),
            self._tasks.create_task(self._sweep()),
        ]
        self._running = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running = False
        for connection in self.connections:
            connection.cut("stopped")
        for task in self._background:
            task.cancel()
        # An error of the caller's block is not ours; only a cancellation may come from a background task that failed.
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await self._tasks.__aexit__(*((kind, error, trace) if cancelled else (None, None, None)))
        await self._write_counts(everything=True)

    async def handle(
        self,
        stream: ByteStream,
        who: str = "computer",
        *,
        session: str | None = None,
        local_servers: LocalServers | None = None,
    ) -> None:
        """Serves one stream from inside to its end, and closes it. Errors are sent to the client, not raised.

        `session`: it comes from a computer that belongs to this session, and needs no credentials. `local_servers`: what
        `localhost` means there.
        """
        try:
            async with self.connections.admit(who) as connection:
                connection.session, connection.local_servers = session, local_servers
                await self._warn_near_limit(who)
                self._authorizer.recorded.notify()
                await self._serve(stream, connection)
        except TimeoutError:
            log.info("egress connection cut", extra={"because": connection.cut_because or "slow"})
        except FreeholdError as error:
            if not error.code.startswith("egress."):
                log.warning("egress could not serve a connection: %s", error)
            await _send_refusal(stream, error)
        finally:
            await _close(stream)
            self._authorizer.recorded.notify()

    async def set_settings(self, settings: EgressSettings) -> None:
        """Applies the manifest's mode and rules. Connections that they no longer allow are cut.

        Raises `egress.odd-name` or `egress.range` for an invalid rule: nothing changes then.
        """
        rules = settings.rules()
        self._settings, self._manifest_rules = settings, rules
        await self._reload()

    async def answer(self, request: int, answer: OwnerAnswer, *, who: str = "owner") -> None:
        """Answers a waiting network request. Raises `egress.no-request` or `egress.no-session`."""
        await asyncio.to_thread(self._requests.answer, request, answer, who=who)
        await self._reload()

    async def add_rule(self, verdict: Literal["allow", "deny"], pattern: str, *, who: str = "owner") -> None:
        await asyncio.to_thread(self._rules.add, EgressRule(verdict, parse_pattern(pattern), "always"), who=who)
        await self._reload()

    async def allow_session(
        self, session: str, pattern: str, reach: Literal["once", "conversation"], *, who: str
    ) -> None:
        """Allows a host to one session: for its next connection, or until its agent ends."""
        await asyncio.to_thread(self._rules.add, EgressRule("allow", parse_pattern(pattern), reach, session), who=who)
        await self._reload()

    async def remove_rule(self, pattern: str, *, who: str = "owner") -> None:
        """Raises `egress.no-rule` when the owner has no rule with this pattern."""
        await asyncio.to_thread(self._rules.remove, parse_pattern(pattern), who=who)
        await self._reload()

    def find_deny_rule(self, pattern: str, session: str) -> EgressRule | None:
        """The rule that denies this host and port to a session, whatever else is allowed."""
        wanted = parse_pattern(pattern)
        decision = self._authorizer.policy.decide(wanted.host, wanted.port or 443, session=session)
        return decision.rule if decision.verdict == "deny" else None

    def end_conversation(self, session: str) -> None:
        """Ends what was allowed for one conversation. Its connections count as those of no session from now on.

        Takes effect at once: the credentials are revoked and tunnels that only the conversation allowed are cut. The
        rules are removed from disk afterwards. Idempotent.
        """
        self.credentials.revoke(session)
        self._ending[session] += 1
        for connection in self.connections:
            if connection.session == session:
                connection.session = None
        policy = self._authorizer.policy
        self._authorizer.policy = EgressPolicy(policy.mode, tuple(self._without_ended(policy.rules)))
        revoked = self.connections.revoke(self._authorizer.policy)
        # Connections that wait for an answer continue as those of no session.
        self._authorizer.changed.notify()
        if self._running:
            self._tasks.create_task(self._record_revoked(revoked))
            self._tasks.create_task(self._remove_ended(session))

    def end_all_conversations(self) -> None:
        """`end_conversation` for every session. The kill switch calls this."""
        allowed = {rule.session for rule in self._authorizer.policy.rules if rule.session is not None}
        for session in allowed | self.credentials.sessions:
            self.end_conversation(session)

    def cut_all(self) -> int:
        """Cuts every open connection, whoever made it, and returns their number. The kill switch calls this."""
        connections = [connection for connection in self.connections if not connection.cut_because]
        for connection in connections:
            connection.cut("stopped")
        return len(connections)

    def forget_session(self, session: str) -> None:
        """Removes every rule and network request of a session that was deleted. Idempotent."""
        self.end_conversation(session)
        if self._running:
            self._tasks.create_task(self._remove_deleted(session))

    def status(self) -> EgressStatus:
        authorizer = self._authorizer
        return EgressStatus(
            authorizer.policy.mode,
            authorizer.policy.rules,
            tuple(authorizer.pending.values()),
            tuple(self._decisions.recent),
            len(self.connections),
            EgressCounters(**asdict(self.counters)),
        )

    async def changes(self) -> AsyncGenerator[EgressStatus, None]:
        """The state now, then again after each change, at most ten times a second.

        A slow reader misses intermediate states but never the last one. Nothing is queued for it.
        """
        while True:
            version = self._authorizer.recorded.version
            yield self.status()
            await asyncio.sleep(UPDATE_INTERVAL)
            await self._authorizer.recorded.wait_after(version)

    async def _warn_near_limit(self, who: str) -> None:
        limit = self.limits.connections
        if len(self.connections) >= NEAR_LIMIT * limit:
            reason = f"{NEAR_LIMIT:.0%} of the {limit} connections are open"
            await self._decisions.record(DecisionRecord("limit_neared", who, "", reason))

    async def _serve(self, stream: ByteStream, connection: EgressConnection) -> None:
        try:
            # Nothing in a computer of its own holds a placeholder, and no certificate of ours is trusted there.
            keyring = None if connection.local_servers is not None else self._keyring
            await proxy.serve(stream, connection, self._authorizer, self.credentials, self.limits, keyring)
            await _wait_for_close(stream, connection)
        except FreeholdError as error:
            if error.code in _REFUSED_REQUESTS:
                self.counters.malformed += 1
                target = f"{connection.host}:{connection.port}" if connection.host else ""
                await self._decisions.record(DecisionRecord("request_refused", connection.who, target, error.message))
                self._authorizer.recorded.notify()
            if not connection.answered:
                raise
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await stream.write_eof()
                await _wait_for_close(stream, connection)
        except (OSError, EOFError) as error:
            log.debug("egress connection broke: %s", error)

    async def _reload(self) -> None:
        """Applies what is stored now: wakes connections that wait for an answer, cuts those no longer allowed."""
        async with self._reloading:
            rules, requests = await asyncio.to_thread(lambda: (self._rules.all(), self._requests.all()))
            lasting = [rule for rule in self._without_ended(rules) if rule.reach != "once"]
            authorizer = self._authorizer
            authorizer.policy = EgressPolicy(self._settings.mode, (*self._manifest_rules, *lasting))
            authorizer.once = frozenset((rule.pattern, rule.session) for rule in rules if rule.reach == "once")
            authorizer.pending = {(request.pattern, request.session): request for request in requests}
            revoked = self.connections.revoke(authorizer.policy)
            authorizer.changed.notify()
        await self._record_revoked(revoked)
        authorizer.recorded.notify()

    def _without_ended(self, rules: Iterable[EgressRule]) -> list[EgressRule]:
        return [rule for rule in rules if rule.reach != "conversation" or rule.session not in self._ending]

    async def _remove_ended(self, session: str) -> None:
        try:
            await asyncio.to_thread(self._rules.end_conversation, session)
        except FreeholdError as error:
            # The session stays in `_ending`, so its rules stay without effect.
            log.warning("the rules of an ended conversation could not be removed from disk: %s", error)
            return
        self._ending[session] -= 1
        if not self._ending[session]:
            del self._ending[session]
        await self._reload()

    async def _remove_deleted(self, session: str) -> None:
        try:
            await asyncio.to_thread(self._rules.forget_session, session)
            await self._reload()
        except FreeholdError as error:
            log.warning("the rules of a deleted session could not be removed from disk: %s", error)

    async def _record_revoked(self, connections: list[EgressConnection]) -> None:
        for connection in connections:
            reason = "its permission ended while it was open"
            target = f"{connection.host}:{connection.port}"
            try:
                await self._decisions.record(DecisionRecord("connection_revoked", connection.who, target, reason))
            except FreeholdError as error:
                log.warning("that a connection was cut cannot be recorded: %s", error)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_INTERVAL)
            self.connections.sweep()
            await self._write_counts()

    async def _write_counts(self, *, everything: bool = False) -> None:
        attempts, self._authorizer.attempts = self._authorizer.attempts, Counter()
        try:
            if attempts:
                await asyncio.to_thread(self._requests.add_attempts, dict(attempts))
            await self._decisions.flush(everything=everything)
        except FreeholdError as error:
            log.warning("egress cannot write its counts: %s", error)


async def _wait_for_close(stream: ByteStream, connection: EgressConnection) -> None:
    """Waits until the client has closed. Closing earlier could drop data that is still on its way to it."""
    connection.half_closed = True
    while await stream.read(CHUNK):
        pass


async def _send_refusal(stream: ByteStream, error: FreeholdError) -> None:
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await proxy.send_refusal(stream, error)
    except (OSError, EOFError, TimeoutError, FreeholdError):
        return


async def _close(stream: ByteStream) -> None:
    try:
        await stream.close()
    except (OSError, EOFError, FreeholdError) as error:
        log.debug("egress stream was already closed: %s", error)
