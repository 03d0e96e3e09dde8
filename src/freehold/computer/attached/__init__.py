"""The attached backend: somebody else starts the computer, such as docker compose. Freehold checks its walls and links."""

from freehold.computer.contract.backend import Backend


def create_backend(host: str | None = None) -> Backend:
    """`host` is the folder that Freehold shares with the computer, such as unix:///var/lib/freehold-link."""
    from freehold.computer.attached.backend import AttachedBackend

    return AttachedBackend(host)
