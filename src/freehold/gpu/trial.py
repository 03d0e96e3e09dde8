"""What the doctor tries: a program computes on the GPU, sealed, and sees no other device."""

from collections.abc import Callable
from pathlib import Path

from freehold.computer import Device, Limits
from freehold.computer.contract.conventions import HOST_COMMANDS
from freehold.computer.library.computer import PendingComputer
from freehold.errors import FreeholdError
from freehold.gpu.section import GpuSection
from freehold.manifest.model import Manifest

USUAL = frozenset(
    [
        "console",
        "core",
        "fd",
        "full",
        "null",
        "ptmx",
        "pts",
        "random",
        "shm",
        "stderr",
        "stdin",
        "stdout",
        "tty",
        "urandom",
        "zero",
    ]
)
TIMEOUT = 120.0
# Fills memory of the card on the card, and reads it back. Needs the driver's library, and no toolkit.
PROGRAM = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit(f"The driver's library is not in the system of the computer: {error}")
def call(name, *given):
    code = getattr(cuda, name)(*given)
    if code:
        sys.exit(f"{name} failed with {code}")
device, context, place = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
name, read = ctypes.create_string_buffer(100), (ctypes.c_uint32 * 1024)()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDeviceGetName", name, 100, device)
call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
call("cuMemAlloc_v2", ctypes.byref(place), ctypes.sizeof(read))
call("cuMemsetD32_v2", place, 4242, len(read))
call("cuMemcpyDtoH_v2", read, place, ctypes.sizeof(read))
if set(read) != {4242}:
    sys.exit("The card did not compute what it should")
print(name.value.decode())
"""


async def try_gpu(manifest: Manifest, start_computer: Callable[..., PendingComputer]) -> str:
    """What was seen. Raises when no program runs on the card, or when a device is there that is not named."""
    named = manifest.section(GpuSection).list_devices()
    devices = [Device(Path(one), one) for one in named]
    async with start_computer(Limits(), devices) as computer:
        listed = await computer.run(["/bin/ls", "-1", "/dev"], apart=HOST_COMMANDS)
        computed = await computer.run(["/usr/bin/python3", "-I", "-c", PROGRAM], timeout=TIMEOUT, apart=HOST_COMMANDS)
    others = set(listed.stdout.decode(errors="replace").split()) - USUAL - {Path(one).name for one in named}
    if others:
        raise FreeholdError("gpu.failed", f"The computer has devices that nobody named: {', '.join(sorted(others))}")
    if not computed.ok:
        words = computed.stderr.decode(errors="replace").strip().splitlines()
        raise FreeholdError("gpu.failed", f"No program runs on the GPU: {words[-1][:300] if words else 'it was ended'}")
    return f"{computed.text.strip()[:100]} computed for a sealed program. It has no other device."
