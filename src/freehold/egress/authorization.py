"""What happens to a connection: decide, ask the owner if needed, look up the name once, check, connect."""

import asyncio
from collections import Counter

from freehold.egress.addresses import AddressCheck, Resolver, dial, no_address
from freehold.egress.connections import EgressConnection, EgressCounters, EgressLimits
from freehold.egress.decision_log import DecisionLog, DecisionRecord, Outcome
from freehold.egress.names import Host, is_loopback
from freehold.egress.network_request import (
    MAX_PENDING,
    MAX_PER_SESSION,
    NetworkRequest,
    NetworkRequests,
    family_of,
    request_patterns,
)
from freehold.egress.policy import Decision, EgressPolicy, EgressRule, HostPattern
from freehold.egress.rules import EgressRules
from freehold.egress.stream import ByteStream, SocketStream
from freehold.errors import FreeholdError


class ChangeSignal:
    """Wakes everyone who waits for the next change. Changes are counted, so one between two waits is not missed."""

    def __init__(self) -> None:
        self.version = 0
        self._next = asyncio.Event()

    def notify(self) -> None:
        self.version += 1
        self._next.set()
        self._next = asyncio.Event()

    async def wait_after(self, version: int) -> None:
        while self.version == version:
            await self._next.wait()


class Authorizer:
    """Holds the policy in force. Permits a connection or raises the reason why not."""

    def __init__(
        self,
        rules: EgressRules,
        requests: NetworkRequests,
        decisions: DecisionLog,
        counters: EgressCounters,
        limits: EgressLimits,
        resolve: Resolver,
        check: AddressCheck,
    ) -> None:
        self.policy = EgressPolicy("deny")
        self.pending: dict[tuple[HostPattern, str | None], NetworkRequest] = {}
        """Waiting requests, by pattern and session."""
        self.once: frozenset[tuple[HostPattern, str | None]] = frozenset()
        """Permissions for a single connection, by pattern and session."""
        self.changed = ChangeSignal()
        """Notified when rules or requests changed."""
        self.recorded = ChangeSignal()
        """Notified when a decision was recorded."""
        self.attempts: Counter[int] = Counter()
        """Repeated attempts by the id of their request, not stored yet."""
        self._rules = rules
        self._requests = requests
        self._decisions = decisions
        self._counters = counters
        self._limits = limits
        self._resolve = resolve
        self._check = check
        self._waiting = 0

    async def permit(self, connection: EgressConnection, host: Host, port: int) -> None:
        """Returns when the connection is allowed. It is marked with its host, so a later change of the rules cuts it.

        Raises `egress.denied`, or `egress.asked` when the owner was asked and has not answered in time.
        """
        if connection.local_servers is not None and is_loopback(host):
            connection.local_port = port
            return
        refused = self._check(host.address) if host.address is not None else None
        deadline = asyncio.get_running_loop().time() + self._limits.ask
        first = True
        while True:
            version = self.changed.version
            used = None
            if self.policy.decide(host, port, refused, connection.session).verdict == "ask":
                used = await self._use_once(connection, host, port)
            decision = self.policy.decide(host, port, refused, connection.session)
            if decision.verdict == "deny":
                raise await self._refuse(connection, host, port, decision)
            if decision.verdict == "allow" or used is not None:
                # No await between the decision and this mark: a revocation in between would not be seen.
                connection.host, connection.port, connection.refused = host, port, refused
                connection.once = decision.verdict != "allow"
                if used is not None:
                    rule = EgressRule("allow", used, "once", connection.session)
                    decision = Decision("allow", "the owner allowed it once", rule)
                self._counters.allowed += 1
                await self._record("connection_allowed", connection, host, port, decision)
                return
            await self._ask(connection, host, port, count=first)
            await self._wait(connection, host, port, version, deadline)
            first = False

    async def check_not_denied(self, connection: EgressConnection, host: Host, port: int) -> None:
        """For a host that the manifest names elsewhere. Raises `egress.denied` when a rule denies it all the same."""
        decision = self.policy.decide(host, port, session=connection.session)
        if decision.verdict == "deny" and decision.rule is not None:
            raise await self._refuse(connection, host, port, decision)

    async def permit_named(self, connection: EgressConnection, host: Host, port: int, because: str) -> None:
        """Permits one connection to a host that the manifest names elsewhere. Raises `egress.denied`, as above."""
        await self.check_not_denied(connection, host, port)
        refused = self._check(host.address) if host.address is not None else None
        if refused is not None:
            await self.permit(connection, host, port)  # only a rule can allow an address that is not public
        connection.host, connection.port, connection.refused, connection.is_named = host, port, refused, True
        self._counters.allowed += 1
        await self._record("credential_used", connection, host, port, Decision("allow", because))

    async def connect(self, connection: EgressConnection) -> ByteStream:
        """Connects to the host of a permitted connection, or to the local server that it leads to."""
        if connection.local_servers is not None and connection.local_port is not None:
            return await connection.local_servers.connect(connection.local_port)
        return await self.dial(connection)

    async def dial(self, connection: EgressConnection) -> SocketStream:
        """Connects to the host of a permitted connection. The name is looked up here, once, and nowhere else."""
        host, port = connection.host, connection.port
        assert host is not None, "permit comes first"
        if host.address is None:
            await self._look_up(connection, host, port)
        else:
            connection.addresses = {host.address: connection.refused}
        stream = await dial(tuple(connection.addresses), port, timeout=self._limits.connect)
        connection.addresses = {stream.peer: connection.addresses[stream.peer]}
        return stream

    async def _look_up(self, connection: EgressConnection, host: Host, port: int) -> None:
        try:
            async with asyncio.timeout(self._limits.connect):
                found = await self._resolve(host.text)
        except TimeoutError as error:
            raise no_address(host.text, "the name servers did not answer in time") from error
        decided = [
            (address, why := self._check(address), self.policy.decide_address(address, port, why, connection.session))
            for address in found
        ]
        connection.addresses = {address: why for address, why, decision in decided if decision.verdict == "allow"}
        if not connection.addresses:
            connection.host = None
            _address, _why, decision = decided[0]
            addresses = ", ".join(str(address) for address, _why, _decision in decided)
            raise await self._refuse(connection, host, port, decision, addresses)

    async def _use_once(self, connection: EgressConnection, host: Host, port: int) -> HostPattern | None:
        session = connection.session
        patterns = [pattern for pattern in request_patterns(host, port) if (pattern, session) in self.once]
        if not patterns:
            return None
        self.once -= {(pattern, session) for pattern in patterns}
        return await asyncio.to_thread(self._rules.use_once, patterns, session)

    async def _ask(self, connection: EgressConnection, host: Host, port: int, *, count: bool) -> None:
        session = connection.session
        for pattern in request_patterns(host, port):
            known = self.pending.get((pattern, session))
            if known is not None:
                if count:
                    self.attempts[known.id] += 1
                return
        self._counters.asked += 1
        # Checked here as well as in the store: a flood of new names ends here without touching the disk.
        own = sum(request.session == session for request in self.pending.values())
        full = (len(self.pending) >= MAX_PENDING or own >= MAX_PER_SESSION) and not self._joins_family(
            session, host, port
        )
        if full or not await asyncio.to_thread(self._requests.add, host, port, connection.who, session):
            whose = f"{own} of this session" if own >= MAX_PER_SESSION else str(len(self.pending))
            decision = Decision("deny", f"other network requests wait for the owner already, {whose}")
            raise await self._refuse(connection, host, port, decision)

    def _joins_family(self, session: str | None, host: Host, port: int) -> bool:
        family = family_of(host)
        siblings = [
            request
            for request in self.pending.values()
            if (request.session, request.family, request.pattern.port) == (session, family, port)
        ]
        return len(siblings) > 1

    async def _wait(self, connection: EgressConnection, host: Host, port: int, version: int, deadline: float) -> None:
        if self._waiting < self._limits.waiting:
            self._waiting += 1
            try:
                async with asyncio.timeout_at(deadline):
                    return await self.changed.wait_after(version)
            except TimeoutError:
                pass
            finally:
                self._waiting -= 1
        decision = Decision("ask", "the owner was asked and has not answered yet")
        self._counters.refused += 1
        await self._record("connection_refused", connection, host, port, decision)
        raise FreeholdError(
            "egress.asked",
            f"The owner was asked to allow {host}:{port} and has not answered yet",
            hint="Try again later; the request keeps waiting. The owner answers it with: freehold egress",
        )

    async def _refuse(
        self, connection: EgressConnection, host: Host, port: int, decision: Decision, address: str = ""
    ) -> FreeholdError:
        self._counters.refused += 1
        await self._record("connection_refused", connection, host, port, decision, address)
        if decision.rule is None:
            hint = f"The owner can allow it with: freehold egress allow {HostPattern(host, port=port)}"
        elif decision.rule.reach == "manifest":
            hint = f"The owner can remove {decision.rule.pattern} from egress.deny in freehold.toml"
        else:
            hint = f"The owner can remove the rule with: freehold egress forget {decision.rule.pattern}"
        return FreeholdError(
            "egress.denied", f"This computer may not connect to {host}:{port}: {decision.reason}", hint=hint
        )

    async def _record(
        self,
        outcome: Outcome,
        connection: EgressConnection,
        host: Host,
        port: int,
        decision: Decision,
        address: str = "",
    ) -> None:
        rule = str(decision.rule) if decision.rule is not None else ""
        await self._decisions.record(
            DecisionRecord(outcome, connection.who, f"{host}:{port}", decision.reason, rule, address)
        )
        self.recorded.notify()
