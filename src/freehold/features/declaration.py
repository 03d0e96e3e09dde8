"""What a feature declares about itself.

A declaration is light: it is imported by every process. Code is named by a reference, `"package.module:name"`, and
imported only by the process that needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class ControlCenterPage:
    """A page of the control center: its path and the title of its entry in the navigation."""

    path: str
    title: str


@dataclass(frozen=True)
class FeatureProgram:
    """A process on the host that the keeper runs for a feature. It is started as `python -m MODULE --home HOME`."""

    name: str
    module: str
    host: str
    port: int
    """0 for a program that listens on no port."""
    probe_socket: str
    """A Unix socket in the run folder that accepts connections once the program is ready."""
    preparation_module: str | None = None
    """Run once, as `python -m MODULE --home HOME`, when one of `prepared_files` is missing."""
    prepared_files: tuple[str, ...] = ()
    """Paths below the home that the preparation makes."""
    starts_on_demand: bool = False
    """Whether its first connection starts it. It then also takes the option `--listen` with its listening sockets."""


class FeatureService(Protocol):
    """What a feature does inside the gateway besides answering requests."""

    async def run(self) -> None:
        """Until cancelled. An exception ends the gateway, so it handles its own errors. Returns at once when it is off."""
        ...


@dataclass(frozen=True)
class Feature:
    """One feature. Everything but the name, the title and the manifest section is optional."""

    name: str
    """Also the name of its section in the manifest and of its health component."""
    title: str
    section: str
    """Reference to its manifest section, a subclass of `Section`."""
    checks: str | None = None
    """Module that registers its manifest checks."""
    program: str | None = None
    """Reference to `(manifest) -> FeatureProgram | None`; None when the feature is switched off."""
    health: str | None = None
    """Reference to `(services) -> Probe`."""
    service: str | None = None
    """Reference to `(RouteContext) -> FeatureService`. The gateway constructs it before its routes and runs it while it
    lives; routes find it with `RouteContext.service`. Light to import: every start of the gateway loads it."""
    tools: str | None = None
    """Reference to `(Services) -> list[HostTool]`: the host tools that agents get. Light to import."""
    routes: str | None = None
    """Reference to a group of routes, constructed with a `RouteContext`; each route declares its scope."""
    metrics: str | None = None
    """Reference to `(metrics registry, services) -> refresh`, where `refresh` is awaited at each scrape."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Verb of the command line → reference to its click command."""
    pages: tuple[ControlCenterPage, ...] = ()
