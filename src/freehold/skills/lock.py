"""The lock of skills, beside the manifest: which version of each skill is used, and where it came from."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from freehold.errors import FreeholdError
from freehold.skills.name import check_skill_name
from freehold.strict_json import EpochSeconds, WrongShape, decode, encode

FORMAT = 1
SourceKind = Literal["folder", "archive", "git", "remote", "package", "shipped", "proposal"]


@dataclass(frozen=True)
class SkillSource:
    """Where a skill came from. `commit`: of a git repository. `part`: the folder of the skill inside of the source.
    `ref`: the branch or tag that the owner has named, where updates are looked for.

    `place`: a path of this machine, the address of a repository, a package with its version, or a name of ours.
    """

    kind: SourceKind
    place: str
    part: str = ""
    commit: str | None = None
    ref: str | None = None


@dataclass(frozen=True)
class LockedSkill:
    """`digest` names the version in the store. `added`: seconds since 1970. `is_on`: agents are shown it."""

    digest: str
    size: int
    files: int
    description: str
    source: SkillSource
    added: EpochSeconds
    is_on: bool = True


@dataclass(frozen=True)
class SkillLock:
    skills: Mapping[str, LockedSkill] = field(default_factory=dict)
    format: int = FORMAT

    def with_skill(self, name: str, skill: LockedSkill) -> "SkillLock":
        return SkillLock(dict(sorted({**self.skills, name: skill}.items())))

    def without_skill(self, name: str) -> "SkillLock":
        return SkillLock({one: skill for one, skill in self.skills.items() if one != name})


def read_skill_lock(path: Path) -> SkillLock:
    """Empty when there is none. Raises `skill.bad-lock` for one that cannot be used."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return SkillLock()
    try:
        lock = decode(SkillLock, json.loads(text))
        if lock.format != FORMAT:
            raise WrongShape(f"its format is {lock.format}, and this Freehold reads {FORMAT}")
        for name, skill in lock.skills.items():
            check_skill_name(name)
            if len(skill.digest) != 64 or not set(skill.digest) <= set("0123456789abcdef"):
                raise WrongShape(f"{skill.digest[:80]!a} is not a SHA-256")
    except (ValueError, RecursionError, FreeholdError) as error:
        raise FreeholdError(
            "skill.bad-lock",
            f"{path} cannot be used: {error}",
            kind="damaged",
            hint="Bring back an older one, or remove it",
        ) from error
    return lock


def write_skill_lock(path: Path, lock: SkillLock) -> None:
    """In one step: a reader sees the old one or the new one."""
    draft = path.with_name(f".{path.name}.new")
    with draft.open("w") as file:
        file.write(json.dumps(encode(lock), indent=1) + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
