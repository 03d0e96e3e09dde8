"""Starts a machine and lets clients connect to it."""

from pathlib import Path

from freehold.computer.contract.backend import Backend, Machine
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.library.prepared_packages import add_prepared_packages
from freehold.computer.registry import DEFAULT_BACKEND, find_backend
from freehold.errors import FreeholdError


async def launch(spec: ComputerSpec, socket_path: Path, backend: Backend | None = None) -> Machine:
    """Start a computer that clients reach at `socket_path`. It runs when this returns, and its first link may wait for it.

    The caller owns the machine: `await machine.stop()`.
    """
    if backend is None:
        backend = find_backend()
    _check_devices(spec, backend)
    transport = backend.make_transport(socket_path)
    try:
        machine = await backend.start(add_prepared_packages(spec), transport)
        try:
            transport.publish()
        except BaseException:
            await machine.stop(0)
            raise
    except BaseException:
        transport.close()
        raise
    return machine


def _check_devices(spec: ComputerSpec, backend: Backend) -> None:
    if spec.devices and backend.name != DEFAULT_BACKEND:
        raise FreeholdError(
            "computer.no-devices",
            f"The backend {backend.name} cannot let a computer use devices of this machine",
            hint='computer.backend = "bubblewrap"',
        )
    for device in spec.devices:
        if not device.source.is_char_device():
            raise FreeholdError("computer.no-device", f"There is no device {device.source}", hint="Install its driver")
