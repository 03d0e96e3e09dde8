"""Sockets of container engines: whoever reaches one has full control of this machine."""

from collections.abc import Iterator
from pathlib import Path

from freehold.manifest.facts import MachineFacts

NAMES = frozenset(
    ("docker.sock", "podman.sock", "containerd.sock", "containerd.sock.ttrpc", "crio.sock", "buildkitd.sock")
)
"""What an engine calls its socket, wherever it is."""
_PLACES = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
)


def find_engine_socket(source: Path, host: str | None, facts: MachineFacts) -> Path | None:
    """The socket of an engine that is the source of a mount, or in it. `source` has its links followed.

    `host` is the address of an engine that the manifest names.
    """
    places = {facts.real(place) for place in (*_PLACES, *_list_named(host, facts))}
    if source.name in NAMES or source in places:
        return source
    within = {place for place in places if place.is_relative_to(source)} | {source / name for name in NAMES}
    return next((place for place in sorted(within) if facts.is_socket(place)), None)


def _list_named(host: str | None, facts: MachineFacts) -> Iterator[str]:
    """Where the owner's settings say that an engine listens, and where one without root does."""
    for address in (host, *(facts.environ.get(name) for name in ("DOCKER_HOST", "CONTAINER_HOST"))):
        path = (address or "").removeprefix("unix://")
        if path.startswith("/"):
            yield path
    folder = facts.environ.get("XDG_RUNTIME_DIR", "")
    if folder.startswith("/"):
        yield from (f"{folder}/docker.sock", f"{folder}/podman/podman.sock")
