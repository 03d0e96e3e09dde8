"""Starts a machine and lets clients connect to it."""

from pathlib import Path

from freehold.computer.contract.backend import Backend, Machine
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.library.prepared_packages import add_prepared_packages
from freehold.computer.registry import find_backend


async def launch(spec: ComputerSpec, socket_path: Path, backend: Backend | None = None) -> Machine:
    """Start a computer that clients reach at `socket_path`. It runs when this returns, and its first link may wait for it.

    The caller owns the machine: `await machine.stop()`.
    """
    if backend is None:
        backend = find_backend()
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
