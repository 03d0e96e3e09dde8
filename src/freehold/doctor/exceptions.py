"""What exceptions of the manifest allow, used once in a sealed computer."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from freehold.computer.registry import find_backend
from freehold.doctor.backend_choice import ATTACHED, BackendChoice, load_own_manifest
from freehold.doctor.events import ExceptionTried
from freehold.errors import FreeholdError
from freehold.features import load_reference
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer import Device, Limits
    from freehold.computer.contract.spec import Mount
    from freehold.computer.library.computer import PendingComputer
    from freehold.manifest.exceptions import ExceptionInForce
    from freehold.manifest.model import Manifest


async def try_exceptions(home: Home, choice: BackendChoice) -> AsyncIterator[ExceptionTried]:
    """Those in force that can be tried, with the system that the manifest names. Nothing for an attached computer."""
    from freehold.computer import Computer
    from freehold.images.artifacts import ImageFolder
    from freehold.manifest.exceptions import list_exceptional, list_in_force

    loaded = load_own_manifest(home)
    if loaded is None or loaded.errors or choice.name == ATTACHED:
        return
    manifest = loaded.manifest

    for one in list_in_force(manifest, datetime.now(UTC).date()):
        trial = list_exceptional()[one.name].trial
        if trial is None:
            continue
        mounts = list(_mount_programs(manifest, one))

        def start_computer(
            limits: "Limits", devices: "Sequence[Device]" = (), mounts: "Sequence[Mount]" = mounts
        ) -> "PendingComputer":
            image = ImageFolder(home.images, home.image_lock).resolve(manifest.computer.image, choice.name)
            backend = find_backend(choice.name, choice.host)
            return Computer.start(backend=backend, limits=limits, image=image, devices=devices, mounts=mounts)

        try:
            seen, is_right = await load_reference(trial)(manifest, start_computer), True
        except FreeholdError as error:
            seen, is_right = f"{error.message} {error.hint}".strip(), False
        yield ExceptionTried(one.name, one.adds, is_right, seen)


def _mount_programs(manifest: "Manifest", exception: "ExceptionInForce") -> "Iterator[Mount]":
    """The mounted folders of `main` that have a program which the exception needs, read-only."""
    from freehold.computer.contract.spec import Mount

    needed = [PurePosixPath(file.path) for file in exception.needs if file.in_main]
    for mount in manifest.computer.mounts:
        if mount.kind == "folder" and any(path.is_relative_to(mount.target) for path in needed):
            yield Mount(Path(mount.source).expanduser(), mount.target)
