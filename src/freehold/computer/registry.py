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
    "attached": "freehold.computer.attached",
}
FLEET = "freehold.fleet"
FLEET_WORDS = ("fleet", "ray")
"""A name that begins so says where in a fleet a computer should run, such as `fleet?priority=5`: see `fleet.place`.

It is no choice for the owner's own computer, whose files are on this machine.
"""


def find_backend(name: str = DEFAULT_BACKEND, host: str | None = None) -> Backend:
    """`host` is where a container engine or a fleet is reached. Raises `computer.unknown-backend`, or the error of a backend that cannot work on this machine."""
    if name.startswith(FLEET_WORDS):
        place = host if name == "ray" else name
        fleet: Backend = import_module(FLEET).create_backend(place)
        return fleet
    package = BACKENDS.get(name)
    if package is None:
        raise FreeholdError(
            "computer.unknown-backend",
            f"There is no computer backend {name!r}",
            hint=f"Set computer.backend in freehold.toml to one of: {', '.join(sorted(BACKENDS))}",
        )
    backend: Backend = import_module(package).create_backend(host)
    return backend
