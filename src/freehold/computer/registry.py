"""Every backend by its name in the manifest (`computer.backend`).

A backend is a module with a function `create_backend(host)`. It is imported only when a computer is started with it:
connecting to a computer loads no backend.
"""

from importlib import import_module

from freehold.computer.contract.backend import Backend
from freehold.errors import FreeholdError

DEFAULT_BACKEND = "bubblewrap"
BACKENDS = {
    "bubblewrap": "freehold.computer.bubblewrap",
    "docker": "freehold.computer.engine.docker",
    "podman": "freehold.computer.engine.podman",
    "microvm": "freehold.computer.microvm",
}


def find_backend(name: str = DEFAULT_BACKEND, host: str | None = None) -> Backend:
    """`host` is where a container engine is reached. Raises `computer.unknown-backend`, or the error of a backend that cannot work on this machine."""
    package = BACKENDS.get(name)
    if package is None:
        raise FreeholdError(
            "computer.unknown-backend",
            f"There is no computer backend {name!r}",
            hint=f"Set computer.backend in freehold.toml to one of: {', '.join(sorted(BACKENDS))}",
        )
    backend: Backend = import_module(package).create_backend(host)
    return backend
