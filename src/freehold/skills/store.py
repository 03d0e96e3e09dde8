"""The store of skills in the home: each version once, in a folder named by its hash, and a view with those in use.

The computer sees the whole folder read-only. `current/NAME` leads to the version that the lock names.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.skills.folder import read_folder
from freehold.skills.lock import SkillLock, read_skill_lock
from freehold.skills.package import SkillPackage

VERSIONS = "versions"
CURRENT = "current"


class SkillStore:
    """Blocking. Only the holder of `locked` may change it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One change at a time. What an interrupted one left is removed."""
        self._prepare()
        with (self.folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in (self.folder / VERSIONS).glob(".new-*"):
                shutil.rmtree(left, ignore_errors=True)
            yield

    def add(self, package: SkillPackage) -> str:
        """Store a version unless it is there, and return its hash. A kill leaves all of it or nothing."""
        place = self._place(package.digest)
        if place.is_dir():
            self.read(package.digest)
            return package.digest
        draft = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder / VERSIONS))
        try:
            for path, file in package.files.items():
                target = draft / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.content)
                target.chmod(0o555 if file.executable else 0o444)
            for folder, _, _ in os.walk(draft):
                Path(folder).chmod(0o755)
            _sync_tree(draft)
            draft.rename(place)
            _sync(place.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return package.digest

    def read(self, digest: str) -> SkillPackage:
        """A version from the disk. Raises `skill.missing`, and `skill.tampered` when it is not what the hash says."""
        place = self._place(digest)
        if not place.is_dir():
            raise FreeholdError(
                "skill.missing",
                f"The version {digest[:12]} of a skill is not in {self.folder}",
                hint="freehold skills add",
            )
        try:
            package = read_folder(place)
        except (FreeholdError, OSError) as error:
            raise _tampered(place) from error
        if package.digest != digest:
            raise _tampered(place)
        return package

    def check(self, lock: SkillLock) -> None:
        """Raise the error of the first skill that is missing or changed, with its name."""
        for name, skill in lock.skills.items():
            try:
                self.read(skill.digest)
            except FreeholdError as error:
                hint = f"Add it again from {skill.source.place}: freehold skills add, or freehold skills remove {name}"
                raise FreeholdError(
                    error.code, f"The skill {name} cannot be used: {error.message}", hint=hint, kind=error.kind.name
                ) from error

    def show(self, lock: SkillLock) -> None:
        """Make `current` lead to the versions of the lock. Each name is replaced in one step."""
        wanted = {name: f"../{VERSIONS}/{skill.digest}" for name, skill in lock.skills.items() if skill.is_on}
        current = self.folder / CURRENT
        for found in current.iterdir():
            if found.name not in wanted:
                found.unlink()
        for name, target in wanted.items():
            _link(current / name, target)

    def remove_unused(self, lock: SkillLock) -> int:
        """Remove versions that the lock does not name. Returns how many."""
        kept = {skill.digest for skill in lock.skills.values()}
        unused = [one for one in (self.folder / VERSIONS).iterdir() if one.name not in kept]
        for one in unused:
            shutil.rmtree(one)
        return len(unused)

    def _prepare(self) -> None:
        for folder in (self.folder, self.folder / VERSIONS, self.folder / CURRENT):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)  # the computer's uid reads it; the home around it is closed to others

    def _place(self, digest: str) -> Path:
        return self.folder / VERSIONS / digest


def check_skills(home: Home) -> None:
    """At boot: everything that the lock names is in the store as it was stored, and can be seen in the view."""
    store = SkillStore(home.skills)
    lock = read_skill_lock(home.skill_lock)
    store.check(lock)
    with store.locked():
        store.show(lock)


def _link(place: Path, target: str) -> None:
    if place.is_symlink() and os.readlink(place) == target:  # noqa: PTH115 - a Path would change it
        return
    draft = place.with_name(f".new-{place.name}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(place)


def _sync_tree(root: Path) -> None:
    for folder, _, names in os.walk(root):
        for name in names:
            _sync(Path(folder) / name)
        _sync(Path(folder))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tampered(place: Path) -> FreeholdError:
    return FreeholdError("skill.tampered", f"{place} is not what was stored", hint="Remove it, and add the skill again")
