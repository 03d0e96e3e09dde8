"""Packages from npm: chosen and fetched by npm, unpacked by us. No script of a package runs."""

import base64
import hashlib
import json
import platform
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.images.command import run_build_command
from freehold.images.layer import LayerWriter
from freehold.images.lock import LockedPackage
from freehold.images.pool import PackagePool

PLACE = "/usr/local/lib/freehold-npm"
"""Beside npm's own global folder, so that the packages share one tree."""
AT_ONCE = 40
_CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


@dataclass(frozen=True)
class NpmEntry:
    """One package of a package-lock.json: where it goes, and what it must be."""

    path: str
    name: str
    version: str
    integrity: str


def fetch_npm_packages(
    wanted: Iterable[str], npm: list[str], pool: PackagePool
) -> tuple[list[LockedPackage], str | None]:
    """Choose the packages with everything they need. Returns them and their package-lock.json. `npm` starts npm."""
    names = sorted(wanted)
    if not names:
        return [], None
    with tempfile.TemporaryDirectory(prefix="freehold-npm-") as name:
        folder = Path(name)
        (folder / "package.json").write_text('{"private": true}')
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", f"--cache={folder / 'cache'}"]
        choose = [*npm, "install", "--package-lock-only", "--save-exact", "--omit-lockfile-registry-resolved", *quiet]
        run_build_command([*choose, *names], folder=folder, inherit=True)
        text = (folder / "package-lock.json").read_text()
        entries = {(one.name, one.version): one for one in read_entries(text)}
        (folder / "tarballs").mkdir()
        specs = [f"{one.name}@{one.version}" for one in entries.values()]
        found: dict[tuple[str, str], str] = {}
        for start in range(0, len(specs), AT_ONCE):
            pack = [*npm, "pack", "--json", "--pack-destination=tarballs", *quiet, *specs[start : start + AT_ONCE]]
            for one in json.loads(run_build_command(pack, folder=folder, inherit=True)):
                found[one["name"], one["version"]] = one["filename"]
        return [_lock_tarball(one, folder / "tarballs" / found[key], pool) for key, one in entries.items()], text


def _lock_tarball(entry: NpmEntry, path: Path, pool: PackagePool) -> LockedPackage:
    algorithm, _, expected = entry.integrity.partition("-")
    if algorithm not in ("sha512", "sha256", "sha1"):
        raise FreeholdError("image.bad-file", f"{entry.name}@{entry.version} has no usable hash: {entry.integrity!r}")
    content = path.read_bytes()
    if base64.b64encode(hashlib.new(algorithm, content).digest()).decode() != expected:
        raise FreeholdError("image.tampered", f"{entry.name}@{entry.version} is not what package-lock.json names")
    digest, size = pool.add(path)
    return LockedPackage("npm", entry.name, entry.version, path.name, digest, size)


def read_entries(package_lock: str) -> Iterator[NpmEntry]:
    """The packages that are installed on this kind of machine."""
    for path, entry in json.loads(package_lock)["packages"].items():
        if path and not entry.get("link") and _fits(entry):
            name = entry.get("name") or path.rpartition("node_modules/")[2]
            if not re.fullmatch(r"(node_modules/(@[\w.~-]+/)?[\w.~-]+/?)+", path) or "/../" in f"/{path}/":
                raise FreeholdError(
                    "image.bad-path", f"package-lock.json has {path!r}, which is not a place for a package"
                )
            yield NpmEntry(path, name, entry["version"], entry.get("integrity", ""))


def _fits(entry: Mapping[str, object]) -> bool:
    def allows(key: str, mine: str) -> bool:
        rules = entry.get(key)
        if not isinstance(rules, list) or not rules:
            return True
        return mine in rules or (all(str(rule).startswith("!") for rule in rules) and f"!{mine}" not in rules)

    return allows("os", "linux") and allows("cpu", _CPU) and allows("libc", "glibc")


def unpack_npm_packages(
    package_lock: str, packages: Iterable[LockedPackage], pool: PackagePool, layer: LayerWriter
) -> None:
    """The tree that package-lock.json describes, and the commands of the packages that were asked for."""
    files = {(one.name, one.version): one for one in packages}
    described = json.loads(package_lock)["packages"]
    wanted = described[""].get("dependencies", {})
    for entry in sorted(read_entries(package_lock), key=lambda one: one.path):
        package = files.get((entry.name, entry.version))
        if package is None:
            raise FreeholdError(
                "image.missing", f"{entry.name}@{entry.version} is not in the lock", hint="freehold build lock"
            )
        commands = described[entry.path].get("bin", {})
        programs = {str(Path(target)) for target in commands.values()}
        _unpack_tarball(pool.open_checked(package), f"{PLACE}/{entry.path}", programs, layer)
        for command, target in sorted(commands.items()) if entry.path.removeprefix("node_modules/") in wanted else ():
            if re.fullmatch(r"[\w.-]+", command) and ".." not in Path(target).parts:
                layer.add_link(f"/usr/local/bin/{command}", f"{PLACE}/{entry.path}/{Path(target)}")


def _unpack_tarball(tarball: Path, place: str, programs: set[str], layer: LayerWriter) -> None:
    with tarfile.open(tarball) as tar:
        members = {each.name: each for each in tar.getmembers() if each.isreg()}
        for name in sorted(members):
            inside = name.partition("/")[2]
            content = tar.extractfile(members[name])
            if inside and content is not None:
                executable = inside in programs or members[name].mode & 0o100
                layer.add_file(f"{place}/{inside}", content.read(), 0o755 if executable else 0o644)
