"""The exception that a GPU needs: its devices, and nothing else of /dev."""

from freehold.gpu.section import GpuSection
from freehold.manifest.exceptions import NeededFile, SecurityRelevantUse, Uses
from freehold.manifest.model import Manifest

DRIVER_LIBRARY = "libcuda.so.1"


def _uses(manifest: Manifest) -> Uses:
    if manifest.section(GpuSection).enabled:
        yield ("gpu", "enabled"), "true"


def _adds(manifest: Manifest) -> tuple[str, ...]:
    return (
        f"Devices: {', '.join(manifest.section(GpuSection).list_devices())}, to read and write",
        "Memory: that of the card, which no limit of the computer counts",
        "Folders: none. The driver's libraries are those of the computer's own system",
        "Ports: none",
    )


def _needs(manifest: Manifest) -> tuple[NeededFile, ...]:
    command = (
        "Install the libraries of the GPU's driver, in an image those of the driver of this machine; then run ldconfig"
    )
    return (NeededFile(DRIVER_LIBRARY, command, in_main=True, is_library=True),)


GPU = SecurityRelevantUse(
    "gpu",
    "programs inside talk to the driver of the GPU, which is a large part of the kernel that no filter covers",
    _uses,
    adds=_adds,
    needs=_needs,
    trial="freehold.gpu.trial:try_gpu",
)
