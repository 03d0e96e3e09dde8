"""Reads the lock files: every package that Freehold is built from or installs, with version and hashes."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_PINNED = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==(?P<version>[^ ;\\]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


@dataclass(frozen=True, order=True)
class LockedPackage:
    """One pinned package. `hashes` are as the lock file has them."""

    ecosystem: str
    name: str
    version: str
    hashes: tuple[str, ...] = ()
    licence: str = ""

    @property
    def purl(self) -> str:
        """The package URL, which names a package in every tool of this field."""
        kind = "pypi" if self.ecosystem == "PyPI" else "npm"
        return f"pkg:{kind}/{self.name.replace('@', '%40')}@{self.version}"


@dataclass(frozen=True)
class LockFile:
    """A lock file, and whether what it pins is part of what an owner runs."""

    path: Path
    runs: bool
    """False for packages that only tests and checks use."""

    def packages(self) -> Iterator[LockedPackage]:
        return read_requirements(self.path) if self.path.suffix == ".lock" else read_package_lock(self.path)


def list_lock_files() -> list[LockFile]:
    source = ROOT / "src" / "freehold"
    agents = [*sorted(source.rglob("*.lock")), *sorted((source / "agents" / "catalogue" / "locks").glob("*.json"))]
    return [
        LockFile(ROOT / "requirements" / "runtime.lock", runs=True),
        LockFile(ROOT / "requirements" / "minilm.lock", runs=True),
        LockFile(ROOT / "requirements" / "dev.lock", runs=False),
        LockFile(ROOT / "web" / "package-lock.json", runs=True),
        *(LockFile(path, runs=True) for path in agents),
    ]


def read_requirements(path: Path) -> Iterator[LockedPackage]:
    """The packages of a requirements file. Raises ValueError for a line that is not a pinned package with a hash."""
    for entry in re.split(r"\n(?=\S)", path.read_text().replace("\\\n", " ")):
        lines = [line for line in entry.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if not lines:
            continue
        found = _PINNED.match(lines[0])
        hashes = tuple(_HASH.findall(" ".join(lines)))
        if found is None or not hashes:
            raise ValueError(f"{path.name}: {lines[0][:80]!r} is not a package pinned by version and hash")
        yield LockedPackage("PyPI", re.sub(r"[-_.]+", "-", found["name"]).lower(), found["version"], hashes)


def read_package_lock(path: Path) -> Iterator[LockedPackage]:
    """The packages of an npm lock file, without those that only its tests use."""
    for place, package in json.loads(path.read_text())["packages"].items():
        if not place or package.get("dev") or package.get("link"):
            continue
        name = package.get("name") or place.rpartition("node_modules/")[2]
        if "integrity" not in package:
            raise ValueError(f"{path.name}: {name} has no hash")
        yield LockedPackage("npm", name, package["version"], (package["integrity"],), str(package.get("license", "")))
