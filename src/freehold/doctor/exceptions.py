"""What exceptions of the manifest allow, used once in a sealed computer."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from freehold.computer.registry import find_backend
from freehold.doctor.backend_choice import ATTACHED, BackendChoice, load_own_manifest
from freehold.doctor.events import ExceptionTried
from freehold.errors import FreeholdError
from freehold.features import load_reference
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.computer import Device, Limits
    from freehold.computer.library.computer import PendingComputer


async def try_exceptions(home: Home, choice: BackendChoice) -> AsyncIterator[ExceptionTried]:
    """Those in force that can be tried, with the system that the manifest names. Nothing for an attached computer."""
    from freehold.computer import Computer
    from freehold.images.artifacts import ImageFolder
    from freehold.manifest.exceptions import list_exceptional, list_in_force

    loaded = load_own_manifest(home)
    if loaded is None or loaded.errors or choice.name == ATTACHED:
        return
    manifest = loaded.manifest

    def start_computer(limits: "Limits", devices: "Sequence[Device]" = ()) -> "PendingComputer":
        image = ImageFolder(home.images, home.image_lock).resolve(manifest.computer.image, choice.name)
        backend = find_backend(choice.name, choice.host)
        return Computer.start(backend=backend, limits=limits, image=image, devices=devices)

    for one in list_in_force(manifest, datetime.now(UTC).date()):
        trial = list_exceptional()[one.name].trial
        if trial is None:
            continue
        try:
            seen, is_right = await load_reference(trial)(manifest, start_computer), True
        except FreeholdError as error:
            seen, is_right = f"{error.message} {error.hint}".strip(), False
        yield ExceptionTried(one.name, one.adds, is_right, seen)
