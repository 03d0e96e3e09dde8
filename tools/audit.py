"""Audits the lock files.

python -m tools.audit                     every package is pinned by hash and from no other source than a registry
python -m tools.audit --advisories DIR    also compares each version with advisories in the OSV format (JSON files)

There is no advisory database in this repository: without --advisories none is consulted, and the output says so.
Unpack the PyPI and npm exports of osv.dev into one folder to have one.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from packaging.version import InvalidVersion, Version

from tools.locks import LockedPackage, LockFile, list_lock_files


@dataclass(frozen=True)
class KnownVulnerability:
    """A locked version that an advisory names."""

    advisory: str
    package: LockedPackage
    lock: str
    summary: str


def find_foreign_sources(lock: LockFile) -> list[str]:
    """Places in a lock file that name where to download from: only hashes may decide what is installed."""
    text = lock.path.read_text()
    words = ("http://", "https://", "git+", "file:", "--index-url", "--extra-index-url", "--find-links")
    if lock.path.suffix == ".lock":
        return [line.strip() for line in text.splitlines() if any(word in line for word in words)]
    packages = json.loads(text)["packages"].values()
    return [str(package["resolved"]) for package in packages if "resolved" in package]


def read_advisories(folder: Path) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The advisories in a folder, by ecosystem and package. Withdrawn ones are left out."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(folder.rglob("*.json")):
        advisory = json.loads(file.read_text())
        if "withdrawn" in advisory:
            continue
        for affected in advisory.get("affected", ()):
            package = affected.get("package", {})
            found[package.get("ecosystem", ""), package.get("name", "").lower()].append(
                {"id": advisory["id"], "summary": advisory.get("summary", ""), **affected}
            )
    return found


def is_affected(version: str, affected: dict[str, Any]) -> bool:
    """Whether an advisory's entry covers this version: listed, or between an introduction and its fix."""
    if version in affected.get("versions", ()):
        return True
    try:
        return any(
            _is_in_range(Version(version), each.get("events", ()))
            for each in affected.get("ranges", ())
            if each.get("type") in ("ECOSYSTEM", "SEMVER")
        )
    except InvalidVersion:
        # A version that cannot be ordered counts as affected: somebody has to look.
        return True


def _is_in_range(version: Version, events: Sequence[dict[str, str]]) -> bool:
    affected = False
    for kind, limit in sorted(_ordered(events), key=lambda event: event[1]):
        if kind == "introduced" and version >= limit:
            affected = True
        elif (kind == "fixed" and version >= limit) or (kind == "last_affected" and version > limit):
            affected = False
    return affected


def _ordered(events: Sequence[dict[str, str]]) -> Iterator[tuple[str, Version]]:
    for event in events:
        for kind, limit in event.items():
            yield kind, Version("0.dev0" if limit == "0" else limit)


def find_vulnerabilities(locks: Sequence[LockFile], folder: Path) -> list[KnownVulnerability]:
    advisories = read_advisories(folder)
    return [
        KnownVulnerability(affected["id"], package, lock.path.name, affected["summary"])
        for lock in locks
        for package in lock.packages()
        for affected in advisories.get((package.ecosystem, package.name.lower()), ())
        if is_affected(package.version, affected)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--advisories", type=Path, metavar="DIR", help="a folder of advisories in the OSV format")
    options = parser.parse_args(arguments)
    locks = list_lock_files()
    failures = [f"{lock.path.name} names a source: {line}" for lock in locks for line in find_foreign_sources(lock)]
    count = 0
    for lock in locks:
        try:
            count += len(list(lock.packages()))
        except ValueError as error:
            failures.append(str(error))
    if options.advisories is not None and not options.advisories.is_dir():
        failures.append(f"{options.advisories} is not a folder")
    elif options.advisories is not None and not failures:
        failures += [
            f"{each.lock}: {each.package.name} {each.package.version}: {each.advisory} {each.summary}".rstrip()
            for each in find_vulnerabilities(locks, options.advisories)
        ]
    for failure in failures:
        click.echo(failure, err=True)
    known = f"compared with {options.advisories}" if options.advisories else "not compared with advisories (none given)"
    click.echo(f"{count} packages in {len(locks)} lock files; {known}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
