"""The docker backend."""

from freehold.computer.contract.backend import Backend


def create_backend(host: str | None = None) -> Backend:
    """`host` is the address of the engine, such as unix:///run/docker.sock."""
    from freehold.computer.engine.backend import ContainerBackend

    return ContainerBackend("docker", host)
