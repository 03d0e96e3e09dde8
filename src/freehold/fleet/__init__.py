"""A fleet: sealed computers on other machines, placed by Ray. Nothing here imports Ray: it runs in a sandbox of its own."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.computer.contract.backend import Backend


def create_backend(host: str | None = None) -> "Backend":
    """`host` says where: `fleet`, `ray:///HOME`, each with wishes such as `?priority=5`. See `place`."""
    from freehold.fleet.backend import RayBackend
    from freehold.fleet.place import read_place

    return RayBackend(read_place(host))
