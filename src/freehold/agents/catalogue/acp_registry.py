"""The index of the ACP registry: agents that others have published, as descriptions for the manifest.

See https://github.com/agentclientprotocol/registry. Nothing of it is trusted: every field has bounds, and an agent is
installed as any other one, pinned and by its hashes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from freehold.agents.visible_text import make_visible
from freehold.errors import FreeholdError
from freehold.manifest.edit import Plain

MAX_INDEX = 8 * 1024 * 1024
MAX_AGENTS = 2_000
MAX_ARGUMENTS = 50
MAX_TEXT = 500
_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_NPM = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*@[0-9A-Za-z.+-]+", re.ASCII)
_PYPI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[a-z0-9,_-]+\])?==[0-9A-Za-z.+!]+", re.ASCII)
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


@dataclass(frozen=True)
class RegistryAgent:
    """One agent of the index. `package` is empty when it comes in no way that can be pinned here; `why` says so."""

    id: str
    name: str
    version: str
    license: str
    description: str
    package: str = ""
    program: str = ""
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    why: str = ""

    def describe(self) -> dict[str, Plain]:
        """Its section of the manifest."""
        section: dict[str, Plain] = {"package": self.package, "command": [self.program, *self.arguments]}
        if self.env:
            section["env"] = dict(self.env)
        return section


def read_registry(data: bytes) -> list[RegistryAgent]:
    """Raises `registry.malformed`. Entries that cannot be read are left out."""
    if len(data) > MAX_INDEX:
        raise FreeholdError("registry.too-big", f"The index has more than {MAX_INDEX} bytes")
    try:
        agents = json.loads(data)["agents"]
    except (ValueError, RecursionError, KeyError, TypeError):
        agents = None
    if not isinstance(agents, list):
        raise FreeholdError("registry.malformed", "This is not an index of the ACP registry: it has no list of agents")
    found = (_read_agent(one) for one in agents[:MAX_AGENTS])
    return sorted((one for one in found if one is not None), key=lambda one: one.id)


def find_in_registry(agents: Sequence[RegistryAgent], name: str) -> RegistryAgent:
    """Raises `registry.not-found`, and `registry.not-offered` for one that cannot be installed."""
    for one in agents:
        if one.id == name:
            if not one.package:
                raise FreeholdError("registry.not-offered", f"{one.name} cannot be added: {one.why}")
            return one
    raise FreeholdError("registry.not-found", f"There is no agent {name[:80]!a} in the index")


def _read_agent(entry: object) -> RegistryAgent | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str) or not _ID.fullmatch(entry["id"]):
        return None
    agent = RegistryAgent(
        entry["id"],
        _read_text(entry.get("name")),
        _read_text(entry.get("version")),
        _read_text(entry.get("license")) or "not named",
        _read_text(entry.get("description")),
    )
    ways = entry.get("distribution")
    if not isinstance(ways, dict):
        return None
    for way, kind, pattern in (("npx", "npm", _NPM), ("uvx", "pypi", _PYPI)):
        made = _read_package(agent, ways.get(way), kind, pattern)
        if made is not None:
            return made
    why = "it has no version that is pinned, or arguments that cannot be used"
    if "binary" in ways and "npx" not in ways and "uvx" not in ways:
        why = "it is a program without a hash, and the index has no package for it"
    return replace(agent, why=why)


def _read_package(agent: RegistryAgent, way: object, kind: str, pattern: re.Pattern[str]) -> RegistryAgent | None:
    if not isinstance(way, dict) or not isinstance(way.get("package"), str) or not pattern.fullmatch(way["package"]):
        return None
    arguments, env = way.get("args") or [], way.get("env") or {}
    if not isinstance(arguments, list) or len(arguments) > MAX_ARGUMENTS or not isinstance(env, dict):
        return None
    if not all(isinstance(one, str) and len(one) <= MAX_TEXT and one.isprintable() for one in arguments):
        return None
    if not all(_VARIABLE.fullmatch(name) and isinstance(value, str) for name, value in env.items()):
        return None
    package, named = way["package"], way.get("cmd")
    if named is not None and not (isinstance(named, str) and _PROGRAM.fullmatch(named)):
        return None
    name = package.rpartition("@")[0] if kind == "npm" else re.split(r"[\[=]", package)[0]
    program = named or name.rpartition("/")[2]
    return replace(agent, package=f"{kind}:{package}", program=program, arguments=tuple(arguments), env=env)


def choose_program(agent: RegistryAgent, offered: Sequence[str]) -> str:
    """Its command, as `npx` chooses it: the only one of the package, or the one that has its name."""
    return offered[0] if len(offered) == 1 and agent.program not in offered else agent.program


def _read_text(value: object) -> str:
    return make_visible(value[:MAX_TEXT], lines=False) if isinstance(value, str) else ""
