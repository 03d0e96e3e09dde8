"""From a wish to a connection: decide, ask if need be, resolve once, check, dial what was checked."""

import asyncio
from collections import Counter

from freehold.egress.addresses import AddressCheck, Resolver, dial, no_address
from freehold.egress.connections import Connection, Counters, Limits
from freehold.egress.journal import Entry, Journal, Outcome
from freehold.egress.names import Host
from freehold.egress.policy import Decision, Pattern, Policy, Rule
from freehold.egress.questions import MAX_PENDING, Question, Questions, family_of, patterns_for
from freehold.egress.rules import Rules
from freehold.egress.stream import SocketStream
from freehold.errors import FreeholdError


class Pulse:
    """Wakes everyone who waits for the next change; who was not waiting misses nothing, for beats are counted."""

    def __init__(self) -> None:
        self.beats = 0
        self._next = asyncio.Event()

    def beat(self) -> None:
        self.beats += 1
        self._next.set()
        self._next = asyncio.Event()

    async def after(self, beats: int) -> None:
        while self.beats == beats:
            await self._next.wait()


class Gate:
    """Holds the policy in force, and lets a connection through or raises the reason why not."""

    def __init__(
        self,
        rules: Rules,
        questions: Questions,
        journal: Journal,
        counters: Counters,
        limits: Limits,
        resolve: Resolver,
        check: AddressCheck,
    ) -> None:
        self.policy = Policy("deny")
        self.pending: dict[Pattern, Question] = {}
        self.once: frozenset[Pattern] = frozenset()
        self.changed = Pulse()
        """Beats when rules or questions changed."""
        self.recorded = Pulse()
        """Beats when a decision was recorded."""
        self.attempts: Counter[int] = Counter()
        self._rules = rules
        self._questions = questions
        self._journal = journal
        self._counters = counters
        self._limits = limits
        self._resolve = resolve
        self._check = check
        self._waiting = 0

    async def permit(self, connection: Connection, host: Host, port: int) -> None:
        """Returns when the connection may go on, marked so that a later change of mind cuts it.

        Raises `egress.denied` or, when the owner was asked and has not answered in time, `egress.asked`.
        """
        refused = self._check(host.address) if host.address is not None else None
        deadline = asyncio.get_running_loop().time() + self._limits.ask
        first = True
        while True:
            beats = self.changed.beats
            used = None
            if self.policy.decide(host, port, refused).verdict == "ask":
                used = await self._take_once(host, port)
            decision = self.policy.decide(host, port, refused)
            if decision.verdict == "deny":
                raise await self._refused(connection, host, port, decision)
            if decision.verdict == "allow" or used is not None:
                # No await between the decision and this mark, or a revocation could slip in between unseen.
                connection.host, connection.port, connection.refused = host, port, refused
                connection.once = decision.verdict != "allow"
                if used is not None:
                    decision = Decision("allow", "the owner allowed it once", Rule("allow", used, "once"))
                self._counters.allowed += 1
                await self._record("connection_allowed", connection, host, port, decision)
                return
            await self._ask(connection, host, port, count=first)
            await self._wait(connection, host, port, beats, deadline)
            first = False

    async def connect(self, connection: Connection) -> SocketStream:
        """Dials the host of a permitted connection. The name is looked up here, once, and nowhere else."""
        host, port = connection.host, connection.port
        assert host is not None, "permit comes first"
        if host.address is None:
            await self._look_up(connection, host, port)
        else:
            connection.addresses = {host.address: connection.refused}
        stream = await dial(tuple(connection.addresses), port, timeout=self._limits.connect)
        connection.addresses = {stream.peer: connection.addresses[stream.peer]}
        return stream

    async def _look_up(self, connection: Connection, host: Host, port: int) -> None:
        try:
            async with asyncio.timeout(self._limits.connect):
                found = await self._resolve(host.text)
        except TimeoutError as error:
            raise no_address(host.text, "nobody answered in time") from error
        judged = [
            (address, why := self._check(address), self.policy.decide_address(address, port, why)) for address in found
        ]
        connection.addresses = {address: why for address, why, decision in judged if decision.verdict == "allow"}
        if not connection.addresses:
            connection.host = None
            _address, _why, decision = judged[0]
            seen = ", ".join(str(address) for address, _why, _decision in judged)
            raise await self._refused(connection, host, port, decision, seen)

    async def _take_once(self, host: Host, port: int) -> Pattern | None:
        patterns = [pattern for pattern in patterns_for(host, port) if pattern in self.once]
        if not patterns:
            return None
        self.once -= frozenset(patterns)
        return await asyncio.to_thread(self._rules.take_once, patterns)

    async def _ask(self, connection: Connection, host: Host, port: int, *, count: bool) -> None:
        known = next((found for pattern in patterns_for(host, port) if (found := self.pending.get(pattern))), None)
        if known is not None:
            if count:
                self.attempts[known.id] += 1
            return
        self._counters.asked += 1
        # Here and not at the top: a flood of new names ends at the bound without touching the disk.
        full = len(self.pending) >= MAX_PENDING and not self._joins_family(host, port)
        if full or not await asyncio.to_thread(self._questions.ask, host, port, connection.who):
            decision = Decision("deny", f"{MAX_PENDING} other questions wait for the owner already")
            raise await self._refused(connection, host, port, decision)

    def _joins_family(self, host: Host, port: int) -> bool:
        family = family_of(host)
        return (
            sum(question.family == family and question.pattern.port == port for question in self.pending.values()) > 1
        )

    async def _wait(self, connection: Connection, host: Host, port: int, beats: int, deadline: float) -> None:
        if self._waiting < self._limits.waiting:
            self._waiting += 1
            try:
                async with asyncio.timeout_at(deadline):
                    return await self.changed.after(beats)
            except TimeoutError:
                pass
            finally:
                self._waiting -= 1
        decision = Decision("ask", "the owner was asked and has not answered yet")
        self._counters.refused += 1
        await self._record("connection_refused", connection, host, port, decision)
        raise FreeholdError(
            "egress.asked",
            f"The owner was asked whether this computer may talk to {host}:{port} and has not answered yet",
            hint="Try again later; the question stays. The owner answers it with: freehold egress",
        )

    async def _refused(
        self, connection: Connection, host: Host, port: int, decision: Decision, address: str = ""
    ) -> FreeholdError:
        self._counters.refused += 1
        await self._record("connection_refused", connection, host, port, decision, address)
        if decision.rule is None:
            hint = f"The owner can allow it with: freehold egress allow {Pattern(host, port=port)}"
        elif decision.rule.scope == "manifest":
            hint = f"The owner can take {decision.rule.pattern} out of egress.deny in freehold.toml"
        else:
            hint = f"The owner can take that back with: freehold egress forget {decision.rule.pattern}"
        return FreeholdError(
            "egress.denied", f"This computer may not talk to {host}:{port}: {decision.reason}", hint=hint
        )

    async def _record(
        self, outcome: Outcome, connection: Connection, host: Host, port: int, decision: Decision, address: str = ""
    ) -> None:
        rule = str(decision.rule) if decision.rule is not None else ""
        entry = Entry(outcome, connection.who, f"{host}:{port}", decision.reason, rule, address)
        await self._journal.record(entry)
        self.recorded.beat()
