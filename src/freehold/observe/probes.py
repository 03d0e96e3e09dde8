"""Health that is asked for: every component is probed, on an interval and on demand, and its changes are remembered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from freehold.errors import FreeholdError
from freehold.observe.logs import log_unexpected
from freehold.observe.secrets import mask

State = Literal["ok", "degraded", "failed", "off", "starting"]


@dataclass(frozen=True)
class Answer:
    """What a probe found. `error` says why it is not `ok`."""

    state: State
    error: str | None = None


Probe: TypeAlias = Callable[[], Awaitable[Answer | None]]
"""Really asks the component. None means ok; a raised error means failed."""


@dataclass(frozen=True)
class Component:
    """Something that is probed. A `required` one holds back readiness until it is ok."""

    name: str
    probe: Probe
    required: bool = True
    timeout: float = 2.0
    interval: float = 5.0


@dataclass(frozen=True)
class ComponentState:
    """`since` is when `state` was first seen; `last_error` stays after a recovery, so that it can be read."""

    name: str
    state: State
    since: datetime
    last_error: str | None
    required: bool

    def as_json(self) -> dict[str, str | bool | None]:
        return {
            "name": self.name,
            "state": self.state,
            "since": self.since.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "last_error": self.last_error,
            "required": self.required,
        }


Changed: TypeAlias = Callable[[ComponentState, ComponentState], Awaitable[None]]


def _now() -> datetime:
    return datetime.now(UTC)


class Health:
    """The board: what every component last answered, and since when."""

    def __init__(
        self,
        components: Iterable[Component],
        *,
        on_change: Changed | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        """`on_change(before, after)` is awaited whenever a component's state has changed; an error it raises ends `run`."""
        self._clock = clock
        self._on_change = on_change
        self._components = {component.name: component for component in components}
        started = clock()
        self._states = {
            name: ComponentState(name, "starting", started, None, component.required)
            for name, component in self._components.items()
        }
        self._asking = {name: asyncio.Lock() for name in self._components}
        self._begun = dict.fromkeys(self._components, float("-inf"))

    @property
    def states(self) -> tuple[ComponentState, ...]:
        """As last answered; asks nothing."""
        return tuple(self._states.values())

    @property
    def missing(self) -> tuple[ComponentState, ...]:
        """The required components that are not ok. Ready means that there are none."""
        return tuple(state for state in self.states if state.required and state.state != "ok")

    async def ask(self, *names: str) -> tuple[ComponentState, ...]:
        """Probes these components (default: all) now, at once, each within its timeout, and gives what they answered.

        Those who ask while a probe of the same component waits for its turn share its answer.
        """
        wanted = [self._component(name) for name in names or self._components]
        asked_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(component, asked_at)) for component in wanted]
        return tuple(task.result() for task in tasks)

    async def run(self) -> None:
        """Probes every component on its interval, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for component in self._components.values():
                group.create_task(self._keep_asking(component))

    async def _keep_asking(self, component: Component) -> None:
        while True:
            await self._ask(component, asyncio.get_running_loop().time())
            await asyncio.sleep(component.interval)

    async def _ask(self, component: Component, asked_at: float) -> ComponentState:
        async with self._asking[component.name]:
            if self._begun[component.name] < asked_at:
                self._begun[component.name] = asyncio.get_running_loop().time()
                await self._note(component, await _answer(component))
            return self._states[component.name]

    async def _note(self, component: Component, answer: Answer) -> None:
        before = self._states[component.name]
        error = mask(answer.error) if answer.error is not None else before.last_error
        after = replace(before, state=answer.state, last_error=error)
        if after.state != before.state:
            after = replace(after, since=self._clock())
        self._states[component.name] = after
        if after.state != before.state and self._on_change is not None:
            await self._on_change(before, after)

    def _component(self, name: str) -> Component:
        if name not in self._components:
            raise FreeholdError(
                "observe.no-component",
                f"There is no component '{name}'",
                hint=f"The components are: {', '.join(self._components)}",
            )
        return self._components[name]


async def _answer(component: Component) -> Answer:
    try:
        async with asyncio.timeout(component.timeout):
            return await component.probe() or Answer("ok")
    except TimeoutError:
        return Answer("failed", f"{component.name} did not answer within {component.timeout:g} seconds")
    except FreeholdError as error:
        return Answer("failed", f"{error.message} [{error.code}]")
    except OSError as error:
        return Answer("failed", f"{component.name} cannot be reached: {error}")
    except Exception as error:
        error_id = log_unexpected(error, "a probe failed in an unexpected way", component=component.name)
        return Answer("failed", f"The probe of {component.name} broke; the log has the cause under {error_id}")
