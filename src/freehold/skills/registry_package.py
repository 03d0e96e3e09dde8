"""A package of npm or PyPI as an archive: fetched with the registry's own program, and none of its code is run."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from freehold.agents.catalogue.npm import find_npm
from freehold.errors import FreeholdError

FETCH_TIMEOUT = 300
_PACKAGE = re.compile(
    r"npm:(?P<npm>(?:@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*(?:@[0-9A-Za-z.+-]+)?)"
    r"|pypi:(?P<pypi>[A-Za-z0-9][A-Za-z0-9._-]*(?:==[0-9A-Za-z.+!]+)?)",
    re.ASCII,
)


def is_package(place: str) -> bool:
    return place.startswith(("npm:", "pypi:"))


@contextmanager
def fetch_package(place: str) -> Iterator[tuple[Path, str]]:
    """Its archive, in a folder that is removed afterwards, and its name with its version."""
    found = _PACKAGE.fullmatch(place)
    if found is None:
        raise FreeholdError(
            "skill.bad-choice", f"{place[:200]!a} is not a package", hint="npm:name@1.2.3 or pypi:name==1.2.3"
        )
    with tempfile.TemporaryDirectory(prefix="freehold-skill-") as folder:
        if found["npm"]:
            command = [*find_npm(), "pack", "--ignore-scripts", "--silent", "--pack-destination", folder, found["npm"]]
        else:
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
            # A source package would run its own code to be described.
            command = [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, found["pypi"]]
        _run(command, folder, place)
        archives = [one for one in Path(folder).iterdir() if one.is_file()]
        if len(archives) != 1:
            raise FreeholdError("skill.not-found", f"{place} has {len(archives)} archives instead of one")
        yield archives[0], _with_version(place, archives[0].name)


def _run(command: list[str], folder: str, place: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise FreeholdError("skill.not-fetched", f"{place} was not there within {FETCH_TIMEOUT} s") from None
    if done.returncode:
        raise FreeholdError("skill.not-fetched", f"{place} cannot be fetched: {done.stderr.strip()[-1000:]}")


def _with_version(place: str, archive: str) -> str:
    """`npm:name@1.2.3`, whatever was asked for. The names of archives end with the version, or have it in the middle."""
    kind, _, asked = place.partition(":")
    if kind == "pypi":
        name, version = archive.split("-")[:2]
        return f"pypi:{name}=={version}"
    name = asked if asked.rfind("@") <= 0 else asked[: asked.rfind("@")]
    flat = name.removeprefix("@").replace("/", "-")
    return f"npm:{name}@{archive.removeprefix(f'{flat}-').removesuffix('.tgz')}"
