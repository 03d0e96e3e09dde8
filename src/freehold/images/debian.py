"""Debian packages: chosen and fetched with the package sources of this machine, installed from the pool alone."""

import hashlib
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.images.command import FIXED_ENVIRONMENT, require_program, run_build_command
from freehold.images.lock import ImageLock, LockedPackage
from freehold.images.pool import PackagePool

BASE = ("python3", "ca-certificates")
"""The guest is a Python program, and programs inside speak TLS."""
NOT_NEEDED = ("doc", "man", "locale", "info", "lintian", "bug")
FIELD = re.compile(r"^(Package|Version|Architecture): (.+)$", re.MULTILINE)
# Logs, caches and identities differ from build to build, or tell where it was made.
CLEAN = (
    'rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig "$1"/var/cache/debconf/* "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* '
    '"$1"/etc/apt/sources.list* "$1"/etc/machine-id "$1"/var/lib/dbus/machine-id "$1"/etc/hostname "$1"/etc/resolv.conf'
)

# With a fixed date Python compiles modules so that each import reads the source again and compares its hash. Nothing in an
# image changes after the build, and it is checked at boot: the compiled module is enough (PEP 552), if it is that of its
# source now. The key of the hash is the number of the Python that compiled it; where that Python hashes otherwise than
# this one, the module stays as it was.
TRUST_COMPILED = """
import _imp, importlib.util, os, stat, sys

def read(path, size=-1):
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(size) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""

for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(folder, name)
        if not name.endswith(".pyc") or not stat.S_ISREG(os.lstat(path).st_mode):
            continue
        head = read(path, 16)
        if len(head) < 16 or head[4:8] != bytes([3, 0, 0, 0]):
            continue
        try:
            source = read(importlib.util.source_from_cache(path))
        except (ValueError, OSError):
            continue
        if _imp.source_hash(int.from_bytes(head[:4], "little"), source) == head[8:]:
            with open(path, "r+b") as file:
                file.seek(4)
                file.write(bytes([1]))
"""


def read_architecture() -> str:
    return run_build_command([require_program("dpkg", "dpkg"), "--print-architecture"]).strip()


def fetch_debs(wanted: Iterable[str], suite: str, pool: PackagePool) -> list[LockedPackage]:
    """Choose the packages with everything they need, and put them into the pool. Needs the network and no rights."""
    apt = require_program("apt-get", "apt")
    with tempfile.TemporaryDirectory(prefix="freehold-apt-") as name:
        folder = Path(name)
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "status").touch()  # as if nothing was installed
        options = {
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "Debug::NoLocking": "1",
            "APT::Sandbox::User": "root",
            "APT::Install-Recommends": "false",
            # With its updates and security fixes, and without other releases that the machine may know.
            "APT::Default-Release": f"/^{re.escape(suite)}(-.*)?$/",
        }
        command = [apt, "-qq", "--yes", *(word for key, value in options.items() for word in ("-o", f"{key}={value}"))]
        run_build_command([*command, "update"], inherit=True)
        _check_suite(command, suite)
        run_build_command([*command, "--download-only", "install", "?essential", *sorted(wanted)], inherit=True)
        return [_lock_deb(path, pool) for path in sorted((folder / "cache/archives").glob("*.deb"))]


def _check_suite(command: list[str], suite: str) -> None:
    policy = ["apt-cache", *command[3:], "policy"]
    if f"n={suite}," not in run_build_command(policy, inherit=True):
        raise FreeholdError(
            "image.unknown-suite",
            f"image.suite is {suite!r}, and the package sources of this machine do not have it",
            hint="Add it to /etc/apt/sources.list.d, or set image.suite to the release of this machine",
            kind="invalid",
        )


def _lock_deb(path: Path, pool: PackagePool) -> LockedPackage:
    fields = read_fields(path)
    digest, size = pool.add(path)
    file = f"{fields['Package']}_{fields['Version'].replace(':', '%3a')}_{fields['Architecture']}.deb"
    return LockedPackage("deb", fields["Package"], fields["Version"], file, digest, size)


def read_fields(path: Path) -> dict[str, str]:
    return dict(FIELD.findall(run_build_command(["dpkg-deb", "-f", path])))


def install_debs(lock: ImageLock, pool: PackagePool, target: Path) -> None:
    """Write a tar of a root with the Debian packages of the lock. Offline; the same lock gives the same bytes."""
    mmdebstrap = require_program("mmdebstrap", "mmdebstrap")
    with tempfile.TemporaryDirectory(prefix="freehold-debs-") as name:
        repository = Path(name)
        repository.chmod(0o755)
        _write_repository(lock, pool, repository)
        words: list[str] = [mmdebstrap, "--quiet", "--variant=essential", "--format=tar"]
        trust = shlex.join([sys.executable, "-I", "-S", "-c", TRUST_COMPILED])
        words += [f"--include={','.join(sorted(lock.wanted))}", f"--customize-hook={CLEAN}"]
        words += [f'--customize-hook={trust} "$1"']
        words += ['--aptopt=APT::Sandbox::User "root"', "--dpkgopt=force-unsafe-io"]
        words += [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in NOT_NEEDED]
        words += [f"--architectures={lock.architecture}", lock.suite, str(target)]
        environment = {**FIXED_ENVIRONMENT, "SOURCE_DATE_EPOCH": str(lock.epoch)}
        run_build_command([*words, f"deb [trusted=yes] copy://{repository} ./"], environment=environment)


def _write_repository(lock: ImageLock, pool: PackagePool, folder: Path) -> None:
    """A package source that has exactly what is locked, so that apt has nothing to choose."""
    dpkg = require_program("dpkg-deb", "dpkg")
    paragraphs = []
    for package in lock.of_kind("deb"):
        path = pool.open_checked(package)
        shutil.copyfile(path, folder / package.file)  # an unprivileged build cannot enter the home
        control = run_build_command([dpkg, "-f", path]).rstrip()
        paragraphs.append(f"{control}\nFilename: ./{package.file}\nSize: {package.size}\nSHA256: {package.sha256}\n")
    index = "\n".join(paragraphs).encode()
    (folder / "Packages").write_bytes(index)
    date = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(lock.epoch))
    # mmdebstrap finds packages by the codename.
    (folder / "Release").write_text(
        f"Codename: {lock.suite}\nDate: {date}\nArchitectures: {lock.architecture} all\n"
        f"SHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    )
