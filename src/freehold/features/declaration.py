"""What a feature declares about itself.

A declaration is light: it is imported by every process. Code is named by a reference, `"package.module:name"`, and
imported only by the process that needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class CommandTopic(StrEnum):
    """Under which heading `freehold --help` lists a command, in this order."""

    DAILY = "Daily"
    FILES = "Files and history"
    AGENTS = "Agents and models"
    KNOWLEDGE = "Work and knowledge"
    NETWORK = "Network and access"
    HOUSE = "This Freehold"


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
    hidden_variables: tuple[str, ...] = ()
    """Variables of the environment whose values it does not get, such as the owner's keys."""
    starts_on_demand: bool = False
    """Whether its first connection starts it. It then also takes the option `--listen` with its listening sockets."""


class FeatureService(Protocol):
    """What a feature does inside the gateway besides answering requests."""

    async def run(self) -> None:
        """Until cancelled. An exception ends the gateway, so it handles its own errors. Returns at once when it is off."""
        ...


@dataclass(frozen=True)
class WorkSigns:
    """Where it can be seen that a feature has something to do, besides a section of the manifest that was changed."""

    tables: tuple[str, ...]
    """Of the timeline's file. They need not exist; a row in one of them is work."""
    kinds: tuple[str, ...]
    """Of timeline events that are recorded when another process adds some."""


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
    exceptions: tuple[str, ...] = ()
    """References to `SecurityRelevantUse`: what of it needs `[security.exceptions.<name>]`."""
    program: str | None = None
    """Reference to `(manifest) -> FeatureProgram | None`; None when the feature is switched off."""
    health: str | None = None
    """Reference to `(services) -> Probe`."""
    service: str | None = None
    """Reference to `(RouteContext) -> FeatureService`. The gateway runs it while it lives; routes find it with
    `RouteContext.service`. Light to import unless the feature has `work`: every start of the gateway loads it."""
    work: WorkSigns | None = None
    """Until there is work or somebody asks for the service, neither it nor the probe is loaded, and the feature is off."""
    tools: str | None = None
    """Reference to `(Services) -> list[HostTool]`: the host tools that agents get. Light to import."""
    has_site: bool = False
    """Whether its service is a `FeatureSite`, shown to the owner on the origin of a preview with the name of the feature."""
    routes: str | tuple[str, ...] | None = None
    """References to groups of routes, constructed with a `RouteContext`; each route declares its scope."""
    metrics: str | None = None
    """Reference to `(metrics registry, services) -> refresh`, where `refresh` is awaited at each scrape."""
    paired: str | None = None
    """Reference to `(Home, Manifest, Timeline) -> PairedFreeholds`: for commands that use a slot at a neighbour."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Verb of the command line → reference to its click command."""
    topic: CommandTopic = CommandTopic.HOUSE
    """Of its commands."""
    pages: tuple[ControlCenterPage, ...] = ()
