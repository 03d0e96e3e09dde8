"""Health by probing: every component is probed at an interval and on demand."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from freehold.errors import FreeholdError
from freehold.observe.logs import log_unexpected
from freehold.observe.secrets import mask_secrets

HealthState = Literal["ok", "degraded", "failed", "off", "starting"]


@dataclass(frozen=True)
class PartState:
    """One of the things of which a component has several, as a relay of the mesh. `seen` is when it was last well."""

    name: str
    state: HealthState
    seen: datetime | None
    error: str | None

    def as_json(self) -> dict[str, str | None]:
        seen = None if self.seen is None else _show_time(self.seen)
        return {"name": self.name, "state": self.state, "seen": seen, "error": self.error}


@dataclass(frozen=True)
class ProbeResult:
    """The result of a probe. `error` says why it is not `ok`."""

    state: HealthState
    error: str | None = None
    parts: tuple[PartState, ...] = ()


Probe: TypeAlias = Callable[[], Awaitable[ProbeResult | None]]
"""Asks the component. None means ok; an exception means failed."""


@dataclass(frozen=True)
class ComponentProbe:
    """A component and its probe. Freehold is not ready until every `required` component is ok."""

    name: str
    probe: Probe
    required: bool = True
    timeout: float = 2.0
    interval: float = 5.0


@dataclass(frozen=True)
class ComponentState:
    """`since` is when `state` began. `last_error` stays after a recovery, so that it can be read."""

    name: str
    state: HealthState
    since: datetime
    last_error: str | None
    required: bool
    parts: tuple[PartState, ...] = ()

    def as_json(self) -> dict[str, str | bool | list[dict[str, str | None]] | None]:
        return {
            "name": self.name,
            "state": self.state,
            "since": _show_time(self.since),
            "last_error": self.last_error,
            "required": self.required,
            "parts": [one.as_json() for one in self.parts],
        }


StateChangeHandler: TypeAlias = Callable[[ComponentState, ComponentState], Awaitable[None]]


def _now() -> datetime:
    return datetime.now(UTC)


def _show_time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class HealthMonitor:
    """Probes all components and keeps the last state of each."""

    def __init__(
        self,
        components: Iterable[ComponentProbe],
        *,
        on_change: StateChangeHandler | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        """`on_change(before, after)` is awaited when a state has changed. An exception from it ends `run`."""
        self._clock = clock
        self._on_change = on_change
        self._components = {component.name: component for component in components}
        started = clock()
        self._states = {
            name: ComponentState(name, "starting", started, None, component.required)
            for name, component in self._components.items()
        }
        self._locks = {name: asyncio.Lock() for name in self._components}
        self._last_started = dict.fromkeys(self._components, float("-inf"))

    @property
    def states(self) -> tuple[ComponentState, ...]:
        """The last states, without a new probe."""
        return tuple(self._states.values())

    @property
    def not_ready(self) -> tuple[ComponentState, ...]:
        """The required components that are not ok."""
        return tuple(state for state in self.states if state.required and state.state != "ok")

    async def probe(self, *names: str) -> tuple[ComponentState, ...]:
        """Probe these components (default: all) now, concurrently, each with its timeout, and return their states.

        Calls that wait for the same component share one probe.
        """
        wanted = [self._component(name) for name in names or self._components]
        requested_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._probe(component, requested_at)) for component in wanted]
        return tuple(task.result() for task in tasks)

    async def run(self) -> None:
        """Probe every component at its interval, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for component in self._components.values():
                group.create_task(self._probe_repeatedly(component))

    async def _probe_repeatedly(self, component: ComponentProbe) -> None:
        while True:
            await self._probe(component, asyncio.get_running_loop().time())
            await asyncio.sleep(component.interval)

    async def _probe(self, component: ComponentProbe, requested_at: float) -> ComponentState:
        async with self._locks[component.name]:
            if self._last_started[component.name] < requested_at:
                self._last_started[component.name] = asyncio.get_running_loop().time()
                await self._set_state(component, await _run_probe(component))
            return self._states[component.name]

    async def _set_state(self, component: ComponentProbe, result: ProbeResult) -> None:
        before = self._states[component.name]
        error = mask_secrets(result.error) if result.error is not None else before.last_error
        after = replace(before, state=result.state, last_error=error, parts=tuple(map(_mask_part, result.parts)))
        if after.state != before.state:
            after = replace(after, since=self._clock())
        self._states[component.name] = after
        if after.state != before.state and self._on_change is not None:
            await self._on_change(before, after)

    def _component(self, name: str) -> ComponentProbe:
        if name not in self._components:
            raise FreeholdError(
                "observe.no-component",
                f"There is no component '{name}'",
                hint=f"The components are: {', '.join(self._components)}",
            )
        return self._components[name]


def _mask_part(part: PartState) -> PartState:
    return part if part.error is None else replace(part, error=mask_secrets(part.error))


async def _run_probe(component: ComponentProbe) -> ProbeResult:
    try:
        async with asyncio.timeout(component.timeout):
            return await component.probe() or ProbeResult("ok")
    except TimeoutError:
        return ProbeResult("failed", f"{component.name} did not answer within {component.timeout:g} seconds")
    except FreeholdError as error:
        return ProbeResult("failed", f"{error.message} [{error.code}]")
    except OSError as error:
        return ProbeResult("failed", f"{component.name} cannot be reached: {error}")
    except Exception as error:
        error_id = log_unexpected(error, "a probe raised an unexpected error", component=component.name)
        return ProbeResult(
            "failed", f"The probe of {component.name} failed unexpectedly. The log has the cause under {error_id}"
        )
