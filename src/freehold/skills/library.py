"""The skills of one home: add, update, switch and remove them. The lock says which are used; the store keeps them."""

import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.skills.checks import SkillFinding, SkillScript, check_package, list_scripts
from freehold.skills.lock import LockedSkill, SkillLock, SkillSource, read_skill_lock, write_skill_lock
from freehold.skills.package import SkillPackage
from freehold.skills.proposals import PROPOSALS, read_proposals
from freehold.skills.sources import FoundSkill, Refused, read_source, reasons_of
from freehold.skills.store import SkillStore

MAX_DIFF = 200_000
"""Characters of the difference that is shown of one file."""


@dataclass(frozen=True)
class SkillDetails:
    """Everything about one skill that is used."""

    name: str
    skill: LockedSkill
    package: SkillPackage
    scripts: Sequence[SkillScript]
    findings: Sequence[SkillFinding]


@dataclass(frozen=True)
class SkillChange:
    """One file that an update would change. `diff` is None for one that is not a short text."""

    path: str
    word: str
    diff: str | None


class SkillLibrary:
    """Blocking."""

    def __init__(self, home: Home) -> None:
        self._lock_path = home.skill_lock
        self._workspace = home.workspace
        self.store = SkillStore(home.skills)

    def read_lock(self) -> SkillLock:
        return read_skill_lock(self._lock_path)

    def add(self, found: Sequence[FoundSkill], *, replaces: bool = False) -> list[str]:
        """Store skills and use them. All of them or none. Returns their names.

        Raises `skill.exists` for a name that another version has, unless `replaces`; `skill.refused` for a skill with
        a finding that is refused.
        """
        for one in found:
            _require_clean(one.package)
        names = [one.package.name for one in found]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise FreeholdError("skill.exists", f"Two of these skills are called {twice[0]}", hint="Add one of them")
        with self.store.locked():
            lock = self.read_lock()
            for one in found:
                before = lock.skills.get(one.package.name)
                if before is not None and before.digest != one.package.digest and not replaces:
                    raise FreeholdError(
                        "skill.exists",
                        f"There is another version of the skill {one.package.name}",
                        hint=f"freehold skills update {one.package.name}, or remove it first",
                    )
            for one in found:
                self.store.add(one.package)
                before = lock.skills.get(one.package.name)
                lock = lock.with_skill(one.package.name, _locked(one, before))
            self._use(lock)
        return names

    def describe(self, name: str) -> SkillDetails:
        skill = self._require(self.read_lock(), name)
        package = self.store.read(skill.digest)
        return SkillDetails(name, skill, package, list_scripts(package), check_package(package))

    def read(self, place: str, commit: str | None = None, refused: Refused | None = None) -> list[FoundSkill]:
        """All skills of a source that needs no egress: see `read_source`. Also those that agents propose."""
        if place != PROPOSALS:
            return read_source(place, commit=commit, refused=refused)
        found, not_read = read_proposals(self._workspace)
        if refused is not None:
            refused.update({name: FreeholdError("skill.refused", words) for name, words in not_read.items()})
        if not found:
            why = "".join(f"; {name[:80]!a}: {words}" for name, words in not_read.items())
            raise FreeholdError("skill.not-found", f"There is no proposal of a skill{why}")
        return found

    def find_source(self, name: str) -> SkillSource:
        """Where a skill is looked for when it is updated."""
        return self._require(self.read_lock(), name).source

    def find_update(self, name: str, found: Sequence[FoundSkill], refused: Refused | None = None) -> FoundSkill | None:
        """The version that a source has now; None when it is the one that is used. Raises `skill.not-found`."""
        skill = self._require(self.read_lock(), name)
        for one in found:
            if one.package.name == name:
                return None if one.package.digest == skill.digest else one
        require_not_refused(name, reasons_of(refused or {}))
        raise FreeholdError("skill.not-found", f"There is no skill {name} any more where it came from")

    def compare(self, name: str, new: SkillPackage) -> list[SkillChange]:
        """What an update would change, file by file."""
        old = self.store.read(self._require(self.read_lock(), name).digest)
        return compare_packages(old, new)

    def switch(self, name: str, *, on: bool) -> None:
        """Show a skill to agents, or not. Idempotent."""
        with self.store.locked():
            lock = self.read_lock()
            self._use(lock.with_skill(name, replace(self._require(lock, name), is_on=on)))

    def remove(self, name: str) -> None:
        with self.store.locked():
            lock = self.read_lock()
            self._require(lock, name)
            self._use(lock.without_skill(name))
            self.store.remove_unused(self.read_lock())

    def _use(self, lock: SkillLock) -> None:
        """The lock first: after a kill in between, the next start makes the view from it."""
        write_skill_lock(self._lock_path, lock)
        self.store.show(lock)

    def _require(self, lock: SkillLock, name: str) -> LockedSkill:
        if name not in lock.skills:
            known = ", ".join(lock.skills) or "none"
            raise FreeholdError("skill.not-found", f"There is no skill {name[:80]!a}", hint=f"The skills are: {known}")
        return lock.skills[name]


def compare_packages(old: SkillPackage, new: SkillPackage) -> list[SkillChange]:
    changes = []
    for path in sorted({*old.files, *new.files}):
        before, after = old.files.get(path), new.files.get(path)
        if before == after:
            continue
        word = "added" if before is None else "removed" if after is None else "changed"
        if before is not None and after is not None and before.content == after.content:
            word = "made executable" if after.executable else "made not executable"
        changes.append(
            SkillChange(path, word, _diff(before.content if before else b"", after.content if after else b""))
        )
    return changes


def latest_of(source: SkillSource) -> tuple[str, str | None]:
    """The place and the commit where the newest version of a skill is looked for."""
    if source.kind == "package":
        kind, _, name = source.place.partition(":")
        cut = name.rfind("@") if kind == "npm" else name.find("==")
        return f"{kind}:{name[:cut] if cut > 0 else name}", None
    return source.place, source.ref or ("HEAD" if source.kind == "git" else None)


def choose_skills(
    found: Sequence[FoundSkill], names: Sequence[str], refused: Mapping[str, str] | None = None, *, every: bool
) -> list[FoundSkill]:
    """Those that the owner has named; the only one there is; or all. Raises `skill.bad-choice` when it is not clear which."""
    known = {one.package.name: one for one in found}
    return list(found) if every else [known[name] for name in choose_names(list(known), names, refused, every=False)]


def require_not_refused(name: str, refused: Mapping[str, str]) -> None:
    """Raises `skill.refused` with the reason, when a folder of that name cannot be read."""
    for folder, words in refused.items():
        if folder.rpartition("/")[2] == name:
            raise FreeholdError("skill.refused", f"The skill {name} cannot be read: {words}")


def choose_names(
    known: Sequence[str], names: Sequence[str], refused: Mapping[str, str] | None = None, *, every: bool
) -> list[str]:
    """As `choose_skills`, of the names that are known. `refused`: by the folder, why it cannot be read as a skill."""
    if every or (len(known) == 1 and not names):
        return list(known)
    if not names:
        raise FreeholdError(
            "skill.bad-choice",
            f"There are {len(known)} skills: {', '.join(known)}",
            hint="Name one of them, or say --all",
        )
    missing = [name for name in names if name not in known]
    for name in missing:
        require_not_refused(name, refused or {})
    if missing:
        raise FreeholdError(
            "skill.not-found", f"There is no skill {missing[0][:80]!a}", hint=f"The skills are: {', '.join(known)}"
        )
    return list(dict.fromkeys(names))


def _locked(found: FoundSkill, before: LockedSkill | None) -> LockedSkill:
    package = found.package
    return LockedSkill(
        package.digest,
        package.size,
        len(package.files),
        package.front_matter.description,
        found.source,
        time.time(),
        True if before is None else before.is_on,
    )


def _require_clean(package: SkillPackage) -> None:
    refused = [one for one in check_package(package) if one.level == "refused"]
    if refused:
        one = refused[0]
        line = "" if one.line is None else f", line {one.line}"
        raise FreeholdError("skill.refused", f"The skill {package.name} is not safe: {one.path}{line} {one.words}")


def _diff(before: bytes, after: bytes) -> str | None:
    try:
        old, new = before.decode(), after.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in old or "\0" in new or len(old) + len(new) > MAX_DIFF:
        return None
    lines = difflib.unified_diff(old.split("\n"), new.split("\n"), "before", "after", lineterm="")
    return "\n".join(lines)
