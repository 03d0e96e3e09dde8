"""A Python for agents that need a newer one than the computer has: Debian's packages, pinned by hash, with their own C library.

It stands beside the agents, as Node does, and runs on every Linux of this machine's architecture.
"""

import hashlib
import importlib.resources
import io
import json
import platform
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from freehold.agents.catalogue.install_command import Progress
from freehold.agents.catalogue.staging_folder import replace_agent_folder
from freehold.computer.contract.conventions import AGENTS_PATH
from freehold.errors import FreeholdError
from freehold.home import Home

FOLDER = ".python"
PROGRAM = f"{FOLDER}/bin/python3"
PYTHON_INSIDE = f"{AGENTS_PATH}/{PROGRAM}"
DOWNLOAD_TIMEOUT = 60.0
SOURCES = ("http://deb.debian.org/debian", "https://snapshot.debian.org/archive/debian/{snapshot}")
"""What is fetched is checked by its hash. The second keeps what the first has replaced by a newer version."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_RECEIPT = "freehold.json"
_LIBRARIES = "libraries"
_START = """\
#!/bin/sh
case $0 in */*) own=$0 ;; *) own=$(command -v -- "$0") ;; esac
own=$(readlink -f -- "$own")
root=${{own%/bin/*}}
exec "$root/{libraries}/{loader}" --library-path "$root/{libraries}" --argv0 "$root/bin/python3" "$root/program/python" "$@"
"""


@dataclass(frozen=True)
class DebianPackage:
    """One package of the lock: where it is in Debian's archive, and what it must be."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class PythonLock:
    """The packages of one architecture."""

    version: str
    snapshot: str
    packages: tuple[DebianPackage, ...]

    @property
    def digest(self) -> str:
        return "sha256:" + hashlib.sha256("".join(one.sha256 for one in self.packages).encode()).hexdigest()


def read_lock() -> PythonLock:
    """The shipped lock for this machine. Raises `agent.no-python` for an architecture that it does not have."""
    found = json.loads((importlib.resources.files("freehold.agents.catalogue") / "managed_python.json").read_bytes())
    architecture = _ARCHITECTURES.get(platform.machine(), "")
    if architecture not in found:
        raise FreeholdError(
            "agent.no-python",
            f"There is no newer Python for this kind of machine ({platform.machine()})",
            hint="Use a system whose own Python is new enough for this agent",
            kind="unavailable",
        )
    packages = tuple(DebianPackage(one["path"], one["sha256"], one["size"]) for one in found[architecture])
    return PythonLock(found["version"], found["snapshot"], packages)


def fetch_python(home: Home, progress: Progress) -> Path:
    """Puts the Python beside the agents. Returns the program that starts it. Idempotent; needs the network once."""
    lock = read_lock()
    place = home.agents / FOLDER
    if not is_python_ready(home):
        with replace_agent_folder(home, FOLDER) as staging:
            (staging / "bin").mkdir()
            (staging / "program").mkdir()
            (staging / _LIBRARIES).mkdir()
            for done, package in enumerate(lock.packages):
                progress(f"fetching Python {lock.version}", done, len(lock.packages))
                _unpack(_fetch(package, lock.snapshot), staging)
            _write_program(staging)
            (staging / _RECEIPT).write_text(json.dumps({"version": lock.version, "lock": lock.digest}))
    return place / "bin" / "python3"


def is_python_ready(home: Home) -> bool:
    """Whether the Python of this Freehold's lock is there, whole."""
    try:
        return bool(json.loads((home.agents / FOLDER / _RECEIPT).read_bytes())["lock"] == read_lock().digest)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _fetch(package: DebianPackage, snapshot: str) -> bytes:
    import urllib.request  # a gateway asks only whether the Python is there

    reasons = []
    for source in SOURCES:
        address = f"{source.format(snapshot=snapshot)}/{package.path}"
        try:
            with urllib.request.urlopen(address, timeout=DOWNLOAD_TIMEOUT) as answer:  # noqa: S310 - one of SOURCES
                data: bytes = answer.read(package.size + 1)
        except OSError as error:
            reasons.append(f"{address}: {error}")
            continue
        if hashlib.sha256(data).hexdigest() == package.sha256:
            return data
        reasons.append(f"{address}: its hash is another than the one in the lock")
    raise FreeholdError(
        "agent.install-failed",
        f"A part of Python could not be fetched: {'; '.join(reasons)[:2000]}",
        hint="Check the network and try again",
    )


def _unpack(package: bytes, staging: Path) -> None:
    """Takes the standard library, the program and the shared libraries of a Debian package. Runs none of its scripts."""
    import tarfile  # as above

    with tarfile.open(fileobj=io.BytesIO(_find_data(package)), mode="r:*") as archive:
        for member in archive:
            place = _choose_place(PurePosixPath(member.name))
            if place is None or member.isdir():
                continue
            if member.issym() and "/" in member.linkname:
                continue  # leads out of its folder: settings of a system that is not there
            member.name = str(place)
            archive.extract(member, staging, filter="data")


def _find_data(package: bytes) -> bytes:
    """The files of a Debian package, which is an `ar` archive: a mark of 8 bytes, then heads of 60 bytes with their content."""
    offset = 8
    while package.startswith(b"!<arch>\n") and offset + 60 <= len(package):
        name, size = package[offset : offset + 16].strip(), int(package[offset + 48 : offset + 58])
        if name.startswith(b"data.tar"):
            return package[offset + 60 : offset + 60 + size]
        offset += 60 + size + size % 2
    raise FreeholdError("agent.install-failed", "A part of Python is not a Debian package")


def _choose_place(path: PurePosixPath) -> PurePosixPath | None:
    parts = path.parts
    if parts[:2] == ("usr", "bin") and path.name.startswith("python3."):
        return PurePosixPath("program/python")
    if parts[:2] == ("usr", "lib") and len(parts) > 3 and parts[2].startswith("python3."):
        return None if path.name == "EXTERNALLY-MANAGED" else PurePosixPath("lib", *parts[2:])
    is_library = len(parts) == 4 and parts[:2] == ("usr", "lib") and parts[2].endswith("-linux-gnu")
    is_loader = len(parts) == 3 and path.name.startswith("ld-linux")
    return PurePosixPath(_LIBRARIES, path.name) if (is_library or is_loader) and ".so" in path.name else None


def _write_program(staging: Path) -> None:
    """The program is started by the loader of its own C library, from wherever the folder stands."""
    loader = next(path.name for path in (staging / _LIBRARIES).iterdir() if path.name.startswith("ld-linux"))
    program = staging / "bin" / "python3"
    program.write_text(_START.format(libraries=_LIBRARIES, loader=loader))
    program.chmod(0o755)
