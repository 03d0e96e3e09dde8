"""Who works here."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.manifest.facts import Facts
from freehold.manifest.features import AGENTS
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, dotted, show
from freehold.manifest.rules import Finding, rule
from freehold.manifest.shape import nearest

_PACKAGE = re.compile(
    r"npm:(?P<npm>(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)(?P<npm_version>@[0-9A-Za-z.+-]+)?"
    r"|pypi:(?P<pypi>[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[a-z0-9,_-]+\])?)(?P<pypi_version>==[0-9A-Za-z.+!]+)?",
    re.ASCII,
)
_SET_BY_FREEHOLD = frozenset(
    {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "home", "path", "user", "ld_preload"}
)


@rule("E501")
def default_agent_unknown(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """The default agent is not one that is known or described."""
    known = sorted(AGENTS | manifest.agents.named.keys())
    name = manifest.agents.default
    if name not in known:
        meant = nearest(name, known)
        yield Finding(
            ("agents", "default"),
            f"agents.default is {show(name)}, and there is no such agent",
            (f"Did you mean {show(meant)}? " if meant else "") + f"The agents are {show(', '.join(known))}",
        )


@rule("E502")
def agent_without_command(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An agent that Freehold does not know has no command to start it."""
    for name, agent in manifest.agents.named.items():
        if name not in AGENTS and not (agent.command and agent.command[0]):
            key: KeyPath = ("agents", name)
            yield Finding(key, f"[{dotted(key)}] has no command", 'Example: command = "opencode acp"')


@rule("E503")
def bad_package(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An agent's package is not one that can be installed."""
    for name, agent in manifest.agents.named.items():
        if agent.package is not None and not _PACKAGE.fullmatch(agent.package):
            key: KeyPath = ("agents", name, "package")
            yield Finding(
                key,
                f"{dotted(key)} is {show(agent.package)}, which is no package",
                "npm:opencode-ai@1.18.0 or pypi:name==1.2; none when the computer has it",
            )


@rule("W504")
def package_without_version(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An agent's package has no version, so two installations may differ."""
    for name, agent in manifest.agents.named.items():
        found = _PACKAGE.fullmatch(agent.package or "")
        if found and not (found["npm_version"] or found["pypi_version"]):
            key: KeyPath = ("agents", name, "package")
            yield Finding(
                key,
                f"{dotted(key)} is {show(agent.package)}, without a version",
                f"{agent.package}" + ("@1.0.0" if found["npm"] else "==1.0"),
            )


@rule("E505")
def agent_with_unknown_model(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An agent uses a model that is not described or is switched off."""
    for name, agent in manifest.agents.named.items():
        model = manifest.models.get(agent.model) if agent.model else None
        if agent.model and (model is None or not model.enabled):
            key: KeyPath = ("agents", name, "model")
            why = "is switched off" if model else "is not described"
            there = ", ".join(name for name, model in manifest.models.items() if model.enabled) or "none yet"
            yield Finding(
                key,
                f"{dotted(key)} is {show(agent.model)}, and [models.{show(agent.model)}] {why}",
                f"The models are {show(there)}",
            )


@rule("E506")
def agent_file_outside_its_home(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """A configuration file of an agent would be written outside /home/agent."""
    for name, agent in manifest.agents.named.items():
        for path in agent.files:
            parts = PurePosixPath(path)
            if not parts.parts or parts.is_absolute() or ".." in parts.parts:
                key: KeyPath = ("agents", name, "files", path)
                yield Finding(key, f"{show(path)} is not below /home/agent", 'A path such as ".config/agent.toml"')


@rule("W507")
def agent_variable_is_ours(manifest: Manifest, facts: Facts) -> Iterator[Finding]:
    """An agent's environment sets a variable that the computer depends on."""
    for name, agent in manifest.agents.named.items():
        for variable in agent.env:
            if variable.lower() in _SET_BY_FREEHOLD:
                key: KeyPath = ("agents", name, "env", variable)
                yield Finding(
                    key,
                    f"{dotted(key)} replaces what Freehold sets itself, and the agent may lose its way out",
                    "Leave it out",
                )
