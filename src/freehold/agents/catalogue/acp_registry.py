"""The index of the ACP registry: agents that others have published, as descriptions for the manifest.

See https://github.com/agentclientprotocol/registry. Nothing of it is trusted: every field has bounds, and an agent is
installed as any other one, pinned and by its hashes.
"""

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from freehold.agents.catalogue.archive import FOLDER, KIND
from freehold.agents.visible_text import make_visible
from freehold.computer.contract.conventions import AGENTS_PATH
from freehold.errors import FreeholdError
from freehold.manifest.edit import Plain

MAX_INDEX = 8 * 1024 * 1024
MAX_AGENTS = 2_000
MAX_ARGUMENTS = 50
"""And variables."""
MAX_TEXT = 500
_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_NPM = re.compile(r"(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*@[0-9A-Za-z.+-]+", re.ASCII)
_PYPI = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[a-z0-9,_-]+\])?)(?:==|@)([0-9][0-9A-Za-z.+!]*)", re.ASCII)
"""`name==1.2.3`, or `name@1.2.3` as `uvx` also takes it."""
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{1,1500}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_PLACE = re.compile(r"(?:\./)?([A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*){0,9})", re.ASCII)
"""Of a program in an archive: no part begins with a dot."""
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


@dataclass(frozen=True)
class RegistryAgent:
    """One agent of the index. `package` is empty when it comes in no way that can be pinned here; `why` says so.

    That of an archive has a hash only if the index names one.
    """

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

    def list_keys(self) -> dict[str, Plain]:
        """The keys of the manifest that describe it."""
        section = f"agents.{self.id}"
        keys: dict[str, Plain] = {
            f"{section}.package": self.package,
            f"{section}.command": [self.program, *self.arguments],
        }
        return keys | {f"{section}.env.{name}": value for name, value in self.env.items()}


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
    programs = ways.get("binary")
    machine = f"linux-{platform.machine()}"
    if isinstance(programs, dict):
        made = _read_archive(agent, programs.get(machine))
        if made is not None:
            return made
        if machine not in programs and "npx" not in ways and "uvx" not in ways:
            return replace(agent, why=f"it has no program for this kind of machine ({machine})")
    return replace(agent, why="it has no version that is pinned, or arguments that cannot be used")


def _read_package(agent: RegistryAgent, way: object, kind: str, pattern: re.Pattern[str]) -> RegistryAgent | None:
    if not isinstance(way, dict) or not isinstance(way.get("package"), str):
        return None
    pinned = pattern.fullmatch(way["package"])
    if pinned is None:
        return None
    start = _read_start(way)
    if start is None:
        return None
    package, named = pinned[0] if kind == "npm" else f"{pinned[1]}=={pinned[2]}", way.get("cmd")
    if named is not None and not (isinstance(named, str) and _PROGRAM.fullmatch(named)):
        return None
    name = package.rpartition("@")[0] if kind == "npm" else re.split(r"[\[=]", package)[0]
    program = named or name.rpartition("/")[2]
    return replace(agent, package=f"{kind}:{package}", program=program, arguments=start[0], env=start[1])


def _read_archive(agent: RegistryAgent, way: object) -> RegistryAgent | None:
    """A program in an archive. One without a hash gets that of what is there when it is added."""
    if not isinstance(way, dict) or not isinstance(way.get("archive"), str) or not isinstance(way.get("cmd"), str):
        return None
    place, start, digest = _PLACE.fullmatch(way["cmd"]), _read_start(way), way.get("sha256")
    if not _ADDRESS.fullmatch(way["archive"]) or place is None or start is None:
        return None
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        return None
    package = f"{KIND}{way['archive']}" + (f"#sha256={digest.lower()}" if digest else "")
    program = f"{AGENTS_PATH}/{agent.id}/{FOLDER}/{place[1]}"
    return replace(agent, package=package, program=program, arguments=start[0], env=start[1])


def _read_start(way: Mapping[str, object]) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """The arguments and variables of one way; None when they are not plain."""
    arguments, env = way.get("args") or [], way.get("env") or {}
    if not isinstance(arguments, list) or len(arguments) > MAX_ARGUMENTS or not isinstance(env, dict):
        return None
    if not all(_is_plain(one) for one in arguments):
        return None
    if len(env) > MAX_ARGUMENTS or not all(_VARIABLE.fullmatch(name) and _is_plain(env[name]) for name in env):
        return None
    return tuple(arguments), env


def choose_program(agent: RegistryAgent, offered: Sequence[str]) -> str:
    """Its command, as `npx` chooses it: the only one of the package, or the one that has its name."""
    return offered[0] if len(offered) == 1 and agent.program not in offered else agent.program


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT and value.isprintable()


def _read_text(value: object) -> str:
    return make_visible(value[:MAX_TEXT], lines=False) if isinstance(value, str) else ""
