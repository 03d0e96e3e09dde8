"""The bubblewrap backend: a computer isolated by namespaces, system-call filters and control groups of this kernel."""

from freehold.computer.contract.backend import Backend


def create_backend(host: str | None = None) -> Backend:
    """`host` is for backends with an engine."""
    from freehold.computer.bubblewrap.backend import Bubblewrap  # other modules here are used without the backend

    return Bubblewrap()
