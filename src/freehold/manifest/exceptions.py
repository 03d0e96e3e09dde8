"""Which backends and agents this version has, and which settings lower a protection and need an exception."""

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from freehold.features import list_features, load_reference
from freehold.manifest.addresses import host_of, is_loopback, is_private, split_rule
from freehold.manifest.agent_modes import is_asking_mode, names_unasked, switches_asking_off
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath
from freehold.manifest.sections.computer import Backend

BACKENDS: frozenset[Backend] = frozenset({"bubblewrap", "docker", "podman", "microvm", "attached"})
"""The backends of this version."""

AGENTS: frozenset[str] = frozenset({"builtin", "claude", "codex", "gemini", "opencode"})
"""The agents that need no description in the manifest."""

Uses = Iterator[tuple[KeyPath, str]]


@dataclass(frozen=True)
class NeededFile:
    """A file in the system of the computer without which an exception has no effect, and how to get it.

    `in_main`: it is used in the computer `main`, so it may be in a mount of it as well. `is_library`: the path is the name
    of a library that programs load.
    """

    path: str
    command: str
    in_main: bool = False
    is_library: bool = False


@dataclass(frozen=True)
class SecurityRelevantUse:
    """A setting that needs `[security.exceptions.<name>]`."""

    name: str
    why: str
    uses: Callable[[Manifest], Uses]
    """The keys that use it, each with its value."""
    could_use: Callable[[Manifest], bool] = lambda manifest: False
    """Whether something may need it that only shows when it runs."""
    adds: Callable[[Manifest], tuple[str, ...]] = lambda manifest: ()
    """Everything that it adds to what a computer has: devices, folders, ports, memory. One sentence each."""
    needs: Callable[[Manifest], tuple[NeededFile, ...]] = lambda manifest: ()
    """What must be there at boot."""
    trial: str | None = None
    """Reference to `async (Manifest, start_computer) -> str`: the doctor uses it once, sealed. Returns what was seen, or raises."""


@dataclass(frozen=True)
class ExceptionInForce:
    """An exception that is granted today and used. `adds` is everything that it adds, `needs` what must be there."""

    name: str
    reason: str
    until: datetime.date | None
    why: str
    adds: tuple[str, ...]
    needs: tuple[NeededFile, ...]


def _public_keeper(manifest: Manifest) -> Uses:
    if not is_loopback(manifest.keeper.host):
        yield ("keeper", "host"), manifest.keeper.host


def _public_metrics(manifest: Manifest) -> Uses:
    if not is_loopback(manifest.observe.metrics_host):
        yield ("observe", "metrics_host"), manifest.observe.metrics_host


def _private_egress(manifest: Manifest) -> Uses:
    for index, rule in enumerate(manifest.egress.allow):
        if is_private(split_rule(rule)[0]):
            yield ("egress", "allow", index), rule


def _unasked_agent(manifest: Manifest) -> Uses:
    for name, agent in manifest.agents.named.items():
        known_name = "" if agent.changes_program else name
        if agent.mode is not None and not is_asking_mode(known_name, agent.mode):
            yield ("agents", name, "mode"), agent.mode
        for flag in agent.command:
            if flag.startswith("-") and switches_asking_off(flag):
                yield ("agents", name, "command"), flag
        for variable, value in agent.env.items():
            if names_unasked(variable, value) or (value and value != "0" and switches_asking_off(variable)):
                yield ("agents", name, "env", variable), value


def _may_have_no_asking_mode(manifest: Manifest) -> bool:
    return any(name not in AGENTS or agent.changes_program for name, agent in manifest.agents.named.items())


def _plain_model(manifest: Manifest) -> Uses:
    for name, model in manifest.models.items():
        address = model.base_url or ""
        if model.enabled and model.key and address.lower().startswith("http:") and not is_loopback(host_of(address)):
            yield ("models", name, "base_url"), address


_OWN: Mapping[str, SecurityRelevantUse] = {
    feature.name: feature
    for feature in (
        SecurityRelevantUse(
            "public-keeper", "undo and restart would be offered to the network over plain HTTP", _public_keeper
        ),
        SecurityRelevantUse(
            "public-metrics", "metrics tell anyone what runs here, and have no sign-in", _public_metrics
        ),
        SecurityRelevantUse("private-egress", "the agent would reach this machine or its network", _private_egress),
        SecurityRelevantUse(
            "unasked-agent",
            "with this the agent is not known to ask, and could act without asking the owner",
            _unasked_agent,
            _may_have_no_asking_mode,
        ),
        SecurityRelevantUse("plain-model", "the provider's key would travel unencrypted", _plain_model),
    )
}

REFUSED: Mapping[str, tuple[str, str]] = {
    "docker": (
        "A container engine inside needs privileges that would open every wall of the computer",
        'Let agents work in containers instead: computer.backend = "docker", or "microvm" for a kernel of its own',
    ),
    "playwright": (
        "Playwright tests need no exception of their own",
        "Use [browser] with [security.exceptions.browser], and /usr/lib/chromium/chromium with --no-sandbox inside",
    ),
}
"""Names that one might expect here: why there is no such exception, and the way to go."""


@cache
def list_exceptional() -> Mapping[str, SecurityRelevantUse]:
    """Everything that needs an exception, by its name: the settings of this room, then those of features."""
    of_features = (load_reference(one) for feature in list_features() for one in feature.exceptions)
    return {**_OWN, **{one.name: one for one in of_features}}


def list_in_force(manifest: Manifest, today: datetime.date) -> tuple[ExceptionInForce, ...]:
    """In the order of `list_exceptional`."""
    found: list[ExceptionInForce] = []
    for one in list_exceptional().values():
        granted = manifest.security.exceptions.get(one.name)
        if granted is None or not granted.holds_on(today):
            continue
        if one.could_use(manifest) or any(True for _ in one.uses(manifest)):
            reason, until = granted.reason.strip(), granted.until
            found.append(ExceptionInForce(one.name, reason, until, one.why, one.adds(manifest), one.needs(manifest)))
    return tuple(found)
