"""Checks of `[agents]`."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.exceptions import AGENTS
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import KeyPath, show_key, show_value
from freehold.manifest.shape import find_nearest

_PACKAGE = re.compile(
    r"npm:(?P<npm>(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*)(?P<npm_version>@[0-9A-Za-z.+-]+)?"
    r"|pypi:(?P<pypi>[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[a-z0-9,_-]+\])?)(?P<pypi_version>==[0-9A-Za-z.+!]+)?"
    r"|(?P<archive>archive:https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{1,1500}#sha256=[0-9a-f]{64})",
    re.ASCII,
)
_SET_BY_FREEHOLD = frozenset(
    {"http_proxy", "https_proxy", "all_proxy", "no_proxy", "home", "path", "user", "ld_preload"}
)


@check("E501")
def default_agent_unknown(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The default agent is not one that is known or described."""
    known = sorted(AGENTS | manifest.agents.named.keys())
    name = manifest.agents.default
    if name not in known:
        meant = find_nearest(name, known)
        yield CheckFinding(
            ("agents", "default"),
            f"agents.default is {show_value(name)}, and there is no such agent",
            (f"Did you mean {show_value(meant)}? " if meant else "") + f"The agents are {show_value(', '.join(known))}",
        )


@check("E502")
def agent_without_command(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An agent that Freehold does not know has no command to start it."""
    for name, agent in manifest.agents.named.items():
        if name not in AGENTS and not (agent.command and agent.command[0]):
            key: KeyPath = ("agents", name)
            yield CheckFinding(key, f"[{show_key(key)}] has no command", 'Example: command = "opencode acp"')


@check("E503")
def bad_package(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An agent's package is not one that can be installed."""
    for name, agent in manifest.agents.named.items():
        words = (agent.package or "").split()
        archives = [word for word in words if word.startswith("archive:")]
        if agent.package is not None and not (words and all(map(_PACKAGE.fullmatch, words)) and len(archives) <= 1):
            key: KeyPath = ("agents", name, "package")
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(agent.package)}, which is not a package reference",
                "npm:opencode-ai@1.18.0 or pypi:name==1.2, several with spaces between, or one archive:https://…#sha256=…;"
                " none when the computer has it",
            )


@check("W504")
def package_without_version(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An agent's package has no version, so two installations may differ."""
    for name, agent in manifest.agents.named.items():
        for package in (agent.package or "").split():
            found = _PACKAGE.fullmatch(package)
            if found and not (found["npm_version"] or found["pypi_version"] or found["archive"]):
                key: KeyPath = ("agents", name, "package")
                yield CheckFinding(
                    key,
                    f"{show_key(key)} is {show_value(package)}, without a version",
                    package + ("@1.0.0" if found["npm"] else "==1.0"),
                )


@check("E505")
def agent_with_unknown_model(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An agent uses a model that is not described or is switched off."""
    for name, agent in manifest.agents.named.items():
        model = manifest.models.get(agent.model) if agent.model else None
        if agent.model and (model is None or not model.enabled):
            key: KeyPath = ("agents", name, "model")
            why = "is switched off" if model else "is not described"
            there = ", ".join(name for name, model in manifest.models.items() if model.enabled) or "none yet"
            yield CheckFinding(
                key,
                f"{show_key(key)} is {show_value(agent.model)}, and [models.{show_value(agent.model)}] {why}",
                f"The models are {show_value(there)}",
            )


@check("E508")
def default_model_unknown(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The model of agents that name none is not described or is switched off."""
    name = manifest.agents.model
    model = manifest.models.get(name) if name else None
    if name and (model is None or not model.enabled):
        there = ", ".join(name for name, model in manifest.models.items() if model.enabled) or "none yet"
        yield CheckFinding(
            ("agents", "model"),
            f"agents.model is {show_value(name)}, and [models.{show_value(name)}] is "
            + ("switched off" if model else "not described"),
            f"The models are {show_value(there)}",
        )


@check("E506")
def agent_file_outside_its_home(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A configuration file of an agent would be written outside /home/agent."""
    for name, agent in manifest.agents.named.items():
        for path in agent.files:
            parts = PurePosixPath(path)
            if not parts.parts or parts.is_absolute() or ".." in parts.parts:
                key: KeyPath = ("agents", name, "files", path)
                yield CheckFinding(
                    key, f"{show_value(path)} is not below /home/agent", 'A path such as ".config/agent.toml"'
                )


@check("W507")
def agent_variable_is_ours(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """An agent's environment sets a variable that the computer depends on."""
    for name, agent in manifest.agents.named.items():
        for variable in agent.env:
            if variable.lower() in _SET_BY_FREEHOLD:
                key: KeyPath = ("agents", name, "env", variable)
                yield CheckFinding(
                    key,
                    f"{show_key(key)} replaces what Freehold sets itself, and the agent may lose its network access",
                    "Leave it out",
                )
