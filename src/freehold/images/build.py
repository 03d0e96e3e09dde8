"""Builds the artifacts of an image from its lock and the pool. Offline; the same lock gives the same bytes."""

import fcntl
import hashlib
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.images.artifacts import ARCHIVE, BILL, DISK, RECORD, ROOT, ROOT_LIST, BuiltFile, ImageFolder, ImageRecord
from freehold.images.bill_of_materials import make_bill_of_materials
from freehold.images.command import FIXED_ENVIRONMENT, require_program, run_build_command
from freehold.images.debian import install_debs
from freehold.images.kinds import COMPUTER, ImageKind
from freehold.images.layer import LayerWriter, write_layer
from freehold.images.lock import ImageLock
from freehold.images.npm import unpack_npm_packages
from freehold.images.oci import write_oci_archive
from freehold.images.pool import PackagePool, hash_file
from freehold.images.tree import write_tree_list
from freehold.images.wheels import NODE_WHEEL, unpack_node, unpack_wheel

Say = Callable[[str], None]
BUILD_NAME = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")
EMPTY_UUID = "00000000-0000-0000-0000-000000000000"


def build_image(
    images: ImageFolder, lock: ImageLock, say: Say = lambda what: None, kind: ImageKind = COMPUTER
) -> ImageRecord:
    """Build everything that the lock describes, and make it the current image. Complete or not at all.

    A computer that runs keeps the image that it was started from.
    """
    with _hold_build_lock(images.folder):
        draft = Path(tempfile.mkdtemp(prefix=".new-", dir=images.folder))
        draft.chmod(0o755)
        try:
            record = _build(images, lock, draft, kind, say)
            final = images.folder / f"{lock.digest[:12]}-{secrets.token_hex(4)}"
            draft.rename(final)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        link = images.folder / ".current"
        link.unlink(missing_ok=True)
        link.symlink_to(final.name)
        link.replace(images.current)
    return record


def remove_old_images(images: ImageFolder) -> None:
    """Remove every build but the current one. Only while no computer runs: it may have been started from another."""
    with _hold_build_lock(images.folder):
        current = images.current.resolve()
        for folder in images.folder.iterdir():
            if BUILD_NAME.fullmatch(folder.name) and not folder.is_symlink() and folder.resolve() != current:
                shutil.rmtree(folder)


@contextmanager
def _hold_build_lock(folder: Path) -> Iterator[None]:
    """One build at a time. What interrupted builds left is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for left in folder.iterdir():
            if left.name.startswith((".new-", ".old-")):
                shutil.rmtree(left, ignore_errors=True)
        yield


def _build(images: ImageFolder, lock: ImageLock, draft: Path, kind: ImageKind, say: Say) -> ImageRecord:
    pool = PackagePool(images.pool)
    bill = make_bill_of_materials(lock, __version__)
    (draft / BILL).write_text(bill)
    with tempfile.TemporaryDirectory(prefix=".new-layers-", dir=images.folder) as name:
        layers = make_layers(lock, pool, Path(name), kind, say)
        say("packing the image for containers")
        oci = write_oci_archive(
            layers,
            draft / ARCHIVE,
            name=f"{kind.name}:{lock.digest[:12]}",
            config={**kind.config, "Labels": make_labels(lock, kind, bill)},
            architecture=lock.architecture,
            epoch=lock.epoch,
        )
        if kind.is_system:
            say("unpacking the root folder")
            unpack_root(layers, draft / ROOT)
            write_tree_list(draft / ROOT, draft / ROOT_LIST)
    if kind.is_system and shutil.which("mkfs.erofs", path=FIXED_ENVIRONMENT["PATH"]):
        say("making the disk")
        make_disk(draft / ROOT, draft / DISK, lock.epoch)
    files = {
        path.name: BuiltFile(hash_file(path), path.stat().st_size)
        for path in sorted(draft.iterdir())
        if path.is_file() and path.name != RECORD
    }
    record = ImageRecord(__version__, lock.digest, lock.request, oci.config, files)
    images.write_record(draft, record)
    return record


def make_labels(lock: ImageLock, kind: ImageKind, bill: str) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": kind.title,
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.base.name": f"debian:{lock.suite}",
        "freehold.lock": f"sha256:{lock.digest}",
        "freehold.request": f"sha256:{lock.request}",
        "freehold.sbom": f"sha256:{hashlib.sha256(bill.encode()).hexdigest()}",
    }


def make_layers(lock: ImageLock, pool: PackagePool, folder: Path, kind: ImageKind, say: Say) -> list[Path]:
    """The layers, the one that changes least first: Debian, Node, packages, files, what Freehold itself needs."""
    layers: list[Path] = []

    @contextmanager
    def layer(name: str) -> Iterator[LayerWriter]:
        layers.append(folder / f"{len(layers)}-{name}.tar")
        with write_layer(layers[-1], lock.epoch) as writer:
            yield writer

    say(f"installing {len(lock.of_kind('deb'))} Debian packages")
    base = folder / "base.tar"
    install_debs(lock, pool, base)
    layers.append(base)
    wheels = lock.of_kind("wheel")
    node = [one for one in wheels if one.name == NODE_WHEEL and kind.is_system]
    for package in node:
        with layer("node") as writer:
            unpack_node(pool.open_checked(package), writer)
    others = [one for one in wheels if one not in node]
    if others:
        with layer("python") as writer:
            for package in others:
                unpack_wheel(pool.open_checked(package), find_python_version(lock), writer)
    if lock.npm is not None:
        with layer("npm") as writer:
            unpack_npm_packages(lock.npm, lock.of_kind("npm"), pool, writer)
    layers += [pool.open_checked(package) for package in lock.of_kind("files")]
    with layer("freehold") as writer:
        for one in kind.folders:
            writer.add_folder(one.place, one.mode, one.owner)
        for place, text in kind.files.items():
            writer.add_file(place, text.encode())
    return layers


def find_python_version(lock: ImageLock) -> str:
    """The version of Debian's Python, such as "3.11"."""
    for package in lock.of_kind("deb"):
        if package.name == "python3":
            return ".".join(package.version.split(".")[:2])
    raise FreeholdError("image.bad-lock", "The lock has no python3", hint="freehold build lock", kind="damaged")


def unpack_root(layers: list[Path], root: Path) -> None:
    """The layers one over the other. Whoever builds owns the files; the computer only reads them."""
    root.mkdir()
    for layer in layers:
        tar = ["tar", "-x", "-p", "--no-same-owner", "--delay-directory-restore", "--exclude=./dev/*"]
        run_build_command([*tar, "-f", layer, "-C", root])
    # No program inside can use these bits, and none of this machine should find them.
    run_build_command(["find", root, "-type", "f", "-perm", "/6000", "-exec", "chmod", "a-s", "{}", "+"])


def make_disk(root: Path, target: Path, epoch: int) -> None:
    """A read-only disk of the root folder for a virtual machine."""
    mkfs = require_program("mkfs.erofs", "erofs-utils")
    words: list[str | Path] = [mkfs, "--quiet", "--all-root", "-zlz4hc", f"-T{epoch}", f"-U{EMPTY_UUID}", target, root]
    run_build_command(words)
