"""The lock: every package of an image by name, version and hash. The same lock always gives the same image."""

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from freehold.errors import FreeholdError
from freehold.strict_json import WrongShape, decode, encode

EPOCH = 1_767_225_600
"""The time of every file in an image: 2026-01-01."""
FORMAT = 1

PackageKind = Literal["deb", "wheel", "npm", "files"]


@dataclass(frozen=True)
class LockedPackage:
    """One file of the pool. `file` is its name as published; for `files` it is the place in the image."""

    kind: PackageKind
    name: str
    version: str
    file: str
    sha256: str
    size: int


@dataclass(frozen=True)
class ImageLock:
    """`request` is the hash of the `[image]` section for which the packages were chosen.

    `wanted` are the names of the Debian packages that were asked for, and `npm` is the package-lock.json of the packages
    from npm.
    """

    suite: str
    architecture: str
    request: str
    wanted: tuple[str, ...]
    packages: tuple[LockedPackage, ...]
    npm: str | None = None
    epoch: int = EPOCH
    format: int = FORMAT

    def of_kind(self, kind: PackageKind) -> tuple[LockedPackage, ...]:
        return tuple(package for package in self.packages if package.kind == kind)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.encode().encode()).hexdigest()

    def encode(self) -> str:
        ordered = sorted(self.packages, key=lambda one: (one.kind, one.name, one.version, one.file))
        return json.dumps(encode(replace(self, packages=tuple(ordered))), indent=1) + "\n"


@dataclass(frozen=True)
class LockChange:
    """One package that is new, gone or has another version. `before` or `after` is None when it is not there."""

    kind: PackageKind
    name: str
    before: str | None
    after: str | None


def read_lock(path: Path) -> ImageLock | None:
    """None when there is none. Raises `image.bad-lock` for one that cannot be used."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    try:
        lock = decode(ImageLock, json.loads(text))
    except (ValueError, WrongShape) as error:
        raise _bad_lock(path, str(error)) from error
    if lock.format != FORMAT:
        raise _bad_lock(path, f"its format is {lock.format}, and this Freehold reads {FORMAT}")
    for package in lock.packages:
        if package.kind != "files" and Path(package.file).name != package.file:
            raise _bad_lock(path, f"{package.file!r} is not the name of a file")
        if len(package.sha256) != 64 or not set(package.sha256) <= set("0123456789abcdef"):
            raise _bad_lock(path, f"{package.sha256!r} is not a SHA-256")
    return lock


def write_lock(path: Path, lock: ImageLock) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(lock.encode())
    draft.replace(path)


def compare_locks(before: ImageLock | None, after: ImageLock) -> tuple[LockChange, ...]:
    """What changes from one lock to the other, by kind and name."""

    def versions(lock: ImageLock | None) -> dict[tuple[PackageKind, str], str]:
        packages = () if lock is None else lock.packages
        found: dict[tuple[PackageKind, str], set[str]] = {}
        for one in packages:
            # Files have no version: their content is what changes.
            found.setdefault((one.kind, one.name), set()).add(one.version or one.sha256[:12])
        return {key: ", ".join(sorted(each)) for key, each in found.items()}

    old, new = versions(before), versions(after)
    return tuple(
        LockChange(kind, name, old.get((kind, name)), new.get((kind, name)))
        for kind, name in sorted(old.keys() | new.keys())
        if old.get((kind, name)) != new.get((kind, name))
    )


def _bad_lock(path: Path, why: str) -> FreeholdError:
    return FreeholdError(
        "image.bad-lock", f"{path} cannot be used: {why}", hint="Make a new one: freehold build lock", kind="damaged"
    )
