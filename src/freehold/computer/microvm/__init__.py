"""The micro-VM backend: a computer with a kernel of its own, in a virtual machine of QEMU."""

from freehold.computer.contract.backend import Backend


def create_backend(host: str | None = None) -> Backend:
    """`host` is for backends with an engine."""
    from freehold.computer.microvm.backend import MicroVm  # other modules here are used without the backend

    return MicroVm()
