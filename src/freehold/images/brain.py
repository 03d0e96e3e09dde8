"""Chooses what the image of Freehold itself is made of: Debian packages, the locked dependencies, and this Freehold."""

import hashlib
import importlib.metadata
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import freehold
from freehold.errors import FreeholdError
from freehold.images.build import find_python_version
from freehold.images.command import run_build_command
from freehold.images.debian import BASE, fetch_debs, read_architecture
from freehold.images.layer import LayerWriter, write_layer
from freehold.images.lock import EPOCH, ImageLock, LockedPackage
from freehold.images.pool import PackagePool
from freehold.images.wheels import SITE, fetch_wheels, place_in_image, write_script

Say = Callable[[str], None]
PACKAGES = ("bubblewrap", "curl", "git", "libseccomp2", "procps", "python3-pip", "tini")
"""Walls, the check of its health, mounts of repositories, the installer of agents from PyPI, and what reaps orphans."""
RUNTIME_LOCK = Path(__file__).with_name("runtime.lock")
"""The hashes of every dependency that this version of Freehold was tested with."""
SKIPPED = frozenset({"__pycache__", RUNTIME_LOCK.name})


def hash_brain_request(suite: str) -> str:
    """Changes with the version of Freehold, what it requires and the release of Debian.

    Code that is edited without a new version is packed by `freehold build lock --brain`.
    """
    words = [suite, freehold.__version__, *PACKAGES, *_read_requirements()]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def choose_brain_packages(suite: str, pool: PackagePool, say: Say = lambda what: None) -> ImageLock:
    """Choose and fetch. Needs the network, for packages whose hashes are known beforehand. Raises `image.tampered`."""
    package = Path(freehold.__file__).parent
    if not (package / "gateway/static/index.html").is_file():
        raise FreeholdError("image.missing", "The control center was not built", hint="make web")
    wanted = {*BASE, *PACKAGES}
    say(f"choosing Debian packages of {suite}")
    debs = fetch_debs(wanted, suite, pool)
    lock = ImageLock(suite, read_architecture(), hash_brain_request(suite), tuple(sorted(wanted)), tuple(debs))
    python = find_python_version(lock)
    say("fetching the dependencies of Freehold")
    known = RUNTIME_LOCK.read_text()
    versions = [line.removesuffix(" \\") for line in known.splitlines() if re.match(r"[\w.-]+==", line)]
    wheels = fetch_wheels(_read_requirements(), python, pool, versions)
    check_known(wheels, known)
    say("packing Freehold")
    own = _lock_freehold(package, wheels, python, pool)
    return ImageLock(lock.suite, lock.architecture, lock.request, lock.wanted, (*debs, *wheels, own))


def check_known(wheels: Iterable[LockedPackage], runtime_lock: str) -> None:
    """Raise `image.tampered` for a dependency that is not one of those with which Freehold was tested."""
    known = set(re.findall(r"--hash=sha256:([0-9a-f]{64})", runtime_lock))
    for wheel in wheels:
        if wheel.sha256 not in known:
            raise FreeholdError(
                "image.tampered",
                f"{wheel.file} has the hash {wheel.sha256[:12]}…, which the lock of Freehold does not name",
                hint="The package index gave something else than was published; try again, or another index",
            )


def _read_requirements() -> list[str]:
    """What the installed Freehold declares, without what is optional."""
    declared = importlib.metadata.requires("freehold") or []
    return sorted(one for one in declared if "extra ==" not in one)


def _lock_freehold(package: Path, wheels: Iterable[LockedPackage], python: str, pool: PackagePool) -> LockedPackage:
    """A layer of this Freehold, with everything compiled: the image is read-only, so Python could not keep it.

    It is made now and not by the build, because compiled files need not have the same bytes twice.
    """
    site = SITE.format(version=python)
    with tempfile.TemporaryDirectory(prefix="freehold-brain-") as name:
        folder = Path(name)
        with write_layer(folder / "layer.tar", EPOCH) as layer:
            layer.add_tree(f"{site}/freehold", package, SKIPPED)
            layer.add_file(f"{site}/freehold/images/{RUNTIME_LOCK.name}", RUNTIME_LOCK.read_bytes())
            _add_metadata(site, layer)
            write_script("freehold", "freehold.cli.main", "main", layer)
            if python == f"{sys.version_info.major}.{sys.version_info.minor}":
                _add_compiled(package, [pool.open_checked(one) for one in wheels], site, folder / "root", layer)
        digest, size = pool.add(folder / "layer.tar")
    return LockedPackage("files", f"{site}/freehold", "", f"{site}/freehold", digest, size)


def _add_metadata(site: str, layer: LayerWriter) -> None:
    found = importlib.metadata.distribution("freehold")
    for name in ("METADATA", "entry_points.txt"):
        text = found.read_text(name)
        if text is not None:
            layer.add_file(f"{site}/freehold-{freehold.__version__}.dist-info/{name}", text.encode())


def _add_compiled(package: Path, wheels: Iterable[Path], site: str, root: Path, layer: LayerWriter) -> None:
    for path in package.rglob("*.py"):
        _copy_source(f"{site}/freehold/{path.relative_to(package)}", path.read_bytes(), root)
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                place, _ = place_in_image(name, site)
                if place.startswith(f"{site}/") and place.endswith(".py") and ".." not in place:
                    _copy_source(place, archive.read(name), root)
    compiler = [sys.executable, "-I", "-m", "compileall", "-q", "-j0", "--invalidation-mode=unchecked-hash"]
    # A package may have a file that is no Python, such as a template; it stays as it is.
    run_build_command([*compiler, "-s", root, "-p", "/", root], may_fail=True)
    for path in sorted(root.rglob("*.pyc")):
        layer.add_file(f"/{path.relative_to(root)}", path.read_bytes())


def _copy_source(place: str, content: bytes, root: Path) -> None:
    target = root / place.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
