"""One slot: the only way to its implementation. It measures calls, records changes, and notices what is lost."""

import asyncio
import logging
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from freehold.errors import FreeholdError
from freehold.observe.metrics import MetricsRegistry, registry
from freehold.observe.probes import ProbeResult
from freehold.observe.tracing import span
from freehold.slots.answers import check_key
from freehold.slots.contract import (
    Reply,
    SlotCall,
    SlotCaller,
    SlotContract,
    SlotImplementation,
    SlotName,
    SlotWrite,
    WorkingImplementation,
)
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.timeline import Json, Timeline

if TYPE_CHECKING:
    from freehold.slots.privacy.filter import PrivacyFilter

CONNECT_TIMEOUT = 10.0
CALL_TIMEOUT = 10.0
HEALTH_INTERVAL = 15.0
MIN_RETRY_DELAY = 0.25
MAX_RETRY_DELAY = 30.0
MAX_RECORDED = 10_000
"""How many keys of recorded changes are remembered."""

SlotState = Literal["off", "starting", "ok", "unavailable"]
PrivateOutcome = Literal["refused", "replaced"]

log = logging.getLogger("freehold.slots")


@dataclass(frozen=True)
class SlotStatus:
    """`since`: seconds since 1970 when the state began. `error` says why it is not `ok`."""

    state: SlotState
    since: float
    error: str | None = None


class Slot:
    """Connects its implementation, carries out calls, and connects again when it was lost.

    A slot that cannot be reached fails every call at once with `unavailable`. The owner is told once when it is lost and
    once when it is back: by the timeline, and by its health component.
    """

    def __init__(
        self,
        name: SlotName,
        load_contract: Callable[[], SlotContract],
        implementation: SlotImplementation,
        timeline: Timeline,
        *,
        metrics: MetricsRegistry = registry,
        clock: Callable[[], float] = time.time,
        privacy: "PrivacyFilter | None" = None,
    ) -> None:
        self.name = name
        self._load_contract = load_contract
        self.implementation = implementation.kind
        self._inner = implementation
        self._privacy = privacy
        self._timeline = timeline
        self._clock = clock
        self._status = SlotStatus("off" if implementation.kind == "off" else "starting", clock())
        self._recorded: OrderedDict[tuple[str, str | None], None] = OrderedDict()
        self._told_lost = False
        self._lost = asyncio.Event()
        self._calls = metrics.counter(
            "freehold_slot_calls_total", "Calls of slots.", ["slot", "method", "implementation", "outcome"]
        )
        self._private = metrics.counter(
            "freehold_slot_private_total",
            "Secrets and personal data that the privacy filter found, by what it did.",
            ["slot", "kind", "outcome"],
        )
        self._seconds = metrics.histogram(
            "freehold_slot_call_seconds", "How long calls of slots took.", ["slot", "method", "implementation"]
        )

    @cached_property
    def contract(self) -> SlotContract:
        """Loaded when somebody asks for it: that of a slot that is off is never needed."""
        return self._load_contract()

    @property
    def status(self) -> SlotStatus:
        return self._status

    async def connect(self) -> None:
        """One try. Raises `SlotError` (unavailable). `run` connects by itself."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await self._inner.connect()
        except TimeoutError:
            raise slot_unavailable(self.name, f"no connection within {CONNECT_TIMEOUT:g} s") from None
        except FreeholdError:
            raise
        except Exception as error:
            raise self._explain_bug(error) from error
        if self._status.state != "off":
            self._set_status("ok")

    async def close(self) -> None:
        """Idempotent."""
        await self._inner.close()

    async def run(self) -> None:
        """Keeps the slot connected until cancelled. Returns at once when it is off."""
        if self._status.state == "off":
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_connected())
                if isinstance(self._inner, WorkingImplementation):
                    group.create_task(self._keep_working(self._inner))
        finally:
            await self.close()

    async def _keep_working(self, inner: WorkingImplementation) -> None:
        """What fails in the background is tried again: it must end neither the other slots nor the gateway."""
        while True:
            try:
                await inner.work()
            except Exception:
                log.exception("the work of a slot failed", extra={"slot": self.name})
            else:
                return
            await asyncio.sleep(MAX_RETRY_DELAY)

    def _explain_bug(self, error: Exception) -> SlotError:
        """An answer that nobody has thought of must not end the gateway. The log has the traceback."""
        log.error("a slot failed unexpectedly", exc_info=error, extra={"slot": self.name})
        return slot_unavailable(self.name, f"its answer cannot be used ({type(error).__name__})")

    async def _keep_connected(self) -> None:
        while True:
            await self._connect_again()
            await self._watch()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        """The reply of the slot. Raises `SlotError` for everything that a caller can meet."""
        slot, method, kind = self.name, type(request).method, self.implementation
        start, outcome = time.perf_counter(), "failed"
        with span("slot.call", {"slot": slot, "method": method, "implementation": kind}) as seen:
            try:
                reply = await self._call(request, caller)
            except SlotError as error:
                outcome = error.problem
                raise
            else:
                outcome = "ok"
                return reply
            finally:
                seen.set("outcome", outcome)
                self._calls.inc(slot=slot, method=method, implementation=kind, outcome=outcome)
                self._seconds.observe(time.perf_counter() - start, slot=slot, method=method, implementation=kind)

    async def _call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        if self._status.state in ("starting", "unavailable"):
            raise slot_unavailable(self.name, self._status.error or "it is starting")
        if isinstance(request, SlotWrite) and request.key is not None:
            # Before anything happens: what is refused later would have had its effect already.
            check_key(self.name, request.key)
        if self._privacy is None:
            return await self._ask(request, caller)
        clean = await self._clean(self._privacy, request, caller)
        reply = await self._ask(clean, caller)
        return await asyncio.to_thread(self._privacy.reveal, reply, caller)

    async def _clean(self, privacy: "PrivacyFilter", request: SlotCall[Reply], caller: SlotCaller) -> SlotCall[Reply]:
        """The request as it may go on. What was found is counted and recorded, without the values."""
        try:
            done = await asyncio.to_thread(privacy.clean, request)
        except SlotError as error:
            await self._note_private("refused", type(request).method, error.found, caller)
            raise
        except FreeholdError as error:
            raise SlotError(self.name, "unavailable", error.message, hint=error.next_step) from error
        await self._note_private("replaced", type(request).method, done.replaced, caller)
        return done.request

    def clean_leaving(self, many: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """What leaves without a call, such as events of the timeline, as it may go on.

        Blocking. What was found is counted and recorded as for a call, once for all of them.
        """
        if self._privacy is None:
            return list(many)
        done = [self._privacy.clean_data(one) for one in many]
        refused: Counter[str] = Counter()
        replaced: Counter[str] = Counter()
        for one in done:
            refused.update(one.refused)
            replaced.update(one.replaced)
        self._record_private("refused", "leave", refused, "freehold")
        self._record_private("replaced", "leave", replaced, "freehold")
        return [one.data for one in done]

    async def _note_private(
        self, outcome: PrivateOutcome, method: str, found: Mapping[str, int], caller: SlotCaller
    ) -> None:
        if found:
            await asyncio.to_thread(self._record_private, outcome, method, found, caller.name)

    def _record_private(self, outcome: PrivateOutcome, method: str, found: Mapping[str, int], who: str) -> None:
        if not found:
            return
        for kind, count in found.items():
            self._private.inc(count, slot=self.name, kind=kind, outcome=outcome)
        data: dict[str, Json] = {"slot": self.name, "method": method, "outcome": outcome, "found": dict(found)}
        try:
            self._timeline.append("slot.private_found", data, who=who)
        except FreeholdError as error:
            log.warning("what the privacy filter found could not be recorded", extra={"error": error.message})

    async def _ask(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        # A call that is known to be slow tells nothing about the slot when it takes too long.
        is_slow = type(request).seconds_allowed is not None
        allowed = type(request).seconds_allowed or CALL_TIMEOUT
        try:
            async with asyncio.timeout(allowed):
                reply = await self._inner.call(request, caller)
        except TimeoutError:
            late = slot_unavailable(self.name, f"no answer within {allowed:g} s")
            if not is_slow:
                self._note_lost(f"no answer within {allowed:g} s")
            raise late from None
        except SlotError as error:
            if error.problem == "unavailable" and not is_slow:
                self._note_lost(error.message)
            raise
        except Exception as error:
            if self.implementation == "local":
                raise  # a bug of ours: the caller gets its error id
            raise self._explain_bug(error) from error
        if isinstance(request, SlotWrite) and not self._inner.records_events:
            await self._record_change(request, reply, caller)
        return reply

    async def _record_change(self, request: SlotWrite[Reply], reply: Reply, caller: SlotCaller) -> None:
        """A repetition is recorded only when the first answer was lost, and so was not recorded."""
        noted = (caller.name, request.key)
        if request.key is not None and noted in self._recorded:
            return
        data = request.describe(reply)
        try:
            await asyncio.to_thread(self._timeline.append, request.event, data, who=caller.name)
        except FreeholdError as error:
            raise SlotError(
                self.name,
                "unavailable",
                f"The change was made, but the timeline could not record it: {error.message}",
                hint=error.next_step,
            ) from error
        if request.key is not None:
            self._recorded[noted] = None
            if len(self._recorded) > MAX_RECORDED:
                self._recorded.popitem(last=False)

    async def probe(self) -> ProbeResult | None:
        """The health component: asks the implementation."""
        if self._status.state == "off":
            return ProbeResult("off")
        if self._status.state == "ok":
            try:
                words = await self._inner.health()
            except SlotError as error:
                self._note_lost(error.message)
            except Exception as error:
                self._note_lost(self._explain_bug(error).message)
            else:
                return None if words is None else ProbeResult("degraded", words)
        if self._status.state == "starting":
            return ProbeResult("starting")
        return None if self._status.state == "ok" else ProbeResult("degraded", self._status.error)

    async def _connect_again(self) -> None:
        delay = MIN_RETRY_DELAY
        while True:
            self._lost.clear()
            try:
                await self.connect()
            except SlotError as error:
                self._note_lost(error.message)
                await self._tell_lost(error)
            else:
                await self._tell_found()
                return
            # Not all at the same moment: several slots may be lost with one server.
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            delay = min(MAX_RETRY_DELAY, delay * 2)

    async def _watch(self) -> None:
        """Returns when the slot is lost."""
        while not self._lost.is_set():
            try:
                async with asyncio.timeout(HEALTH_INTERVAL):
                    await self._lost.wait()
            except TimeoutError:
                await self.probe()

    def _note_lost(self, reason: str) -> None:
        if self._status.state != "unavailable":
            self._set_status("unavailable", reason)
        self._lost.set()

    def _set_status(self, state: SlotState, error: str | None = None) -> None:
        if state != self._status.state:
            log.info("slot changed", extra={"slot": self.name, "state": state, "error": error})
            self._status = SlotStatus(state, self._clock(), error)

    async def _tell_lost(self, error: SlotError) -> None:
        if not self._told_lost:
            self._told_lost = True
            await self._record("slot.lost", error.message)

    async def _tell_found(self) -> None:
        if self._told_lost:
            self._told_lost = False
            await self._record("slot.recovered", None)

    async def _record(self, kind: str, reason: str | None) -> None:
        data = {"slot": self.name, "implementation": self.implementation}
        try:
            await asyncio.to_thread(
                self._timeline.append, kind, data if reason is None else {**data, "reason": reason[:500]}
            )
        except FreeholdError as error:
            # A full disk, for example. The health component still shows the state.
            log.warning("the state of a slot could not be recorded", extra={**data, "error": error.message})
