"""The names of previews: `<port>.preview.localhost:<gateway's port>`, or `<port>.` below `gateway.preview_url`."""

import re
from dataclasses import dataclass

from freehold.agents.tools.server import PORT as TOOLS_PORT
from freehold.egress.models import PORT as MODEL_PORT
from freehold.errors import FreeholdError
from freehold.gateway.addresses import origin_of
from freehold.gateway.sealed import PROXY_PORT
from freehold.manifest import Manifest

LOCAL = "preview.localhost"
OURS = frozenset({PROXY_PORT, MODEL_PORT, TOOLS_PORT})
"""Ports inside where the host itself answers: no app, and nothing to look at."""
LOWEST = 1024
HIGHEST = 65535

# Spelled in one way only, so that two names never lead to one port and one pass never opens two names.
_NAME = re.compile(rb"([1-9][0-9]{3,4})\.(.+)")


@dataclass(frozen=True)
class Family:
    """Previews below one name, and the control centers that may frame them."""

    scheme: str
    below: str
    framers: tuple[str, ...]

    def host(self, port: int) -> str:
        return f"{port}.{self.below}"

    def origin(self, port: int) -> str:
        return f"{self.scheme}://{self.host(port)}"

    @property
    def source(self) -> str:
        """All of it, as a content policy names it."""
        return f"{self.scheme}://*.{self.below}"


@dataclass(frozen=True)
class Place:
    """One preview: a port inside, under one name."""

    family: Family
    port: int

    @property
    def host(self) -> str:
        return self.family.host(self.port)

    @property
    def origin(self) -> str:
        return self.family.origin(self.port)

    def sibling(self, origin: str) -> int | None:
        """The port whose preview in this family has this origin."""
        prefix, _, rest = origin.partition("://")
        found = _read(rest.encode("latin-1", "replace"), (self.family,))
        return found.port if found is not None and prefix == self.family.scheme else None


class PreviewHosts:
    """Which Host is a preview, and where the preview of a port is for who looks from a given control center."""

    def __init__(self, manifest: Manifest) -> None:
        gateway = manifest.gateway
        local = f":{gateway.port}" if gateway.port != 80 else ""
        # No [::1]: a content policy cannot name it.
        framers = tuple(f"http://{name}{local}" for name in ("localhost", "127.0.0.1"))
        self._local = Family("http", f"{LOCAL}{local}", framers)
        self._public: Family | None = None
        self._control = origin_of(gateway.public_url) if gateway.public_url is not None else None
        self._control_host = self._control.partition("://")[2] if self._control is not None else None
        if gateway.preview_url is not None:
            scheme, _, below = origin_of(gateway.preview_url).partition("://")
            seen_from = (self._control,) if self._control is not None else framers
            self._public = Family(scheme, below, seen_from)

    @property
    def families(self) -> tuple[Family, ...]:
        return (self._local,) if self._public is None else (self._local, self._public)

    def find(self, host: bytes) -> Place | None:
        """The preview that a Host header names; None for every other name, and for ports that are not shown."""
        return _read(host.lower(), self.families)

    def seen_from(self, host: str) -> Family | None:
        """The previews of the control center at this Host; None when it is public and they have no address there."""
        if host == self._control_host or (self._public is not None and self._control is None):
            return self._public
        return self._local


def _read(host: bytes, families: tuple[Family, ...]) -> Place | None:
    found = _NAME.fullmatch(host)
    if found is None or not is_shown(port := int(found[1])):
        return None
    return next((Place(family, port) for family in families if family.below.encode() == found[2]), None)


def is_shown(port: int) -> bool:
    return LOWEST <= port <= HIGHEST and port not in OURS


def check_port(port: int) -> None:
    if not is_shown(port):
        words = "is Freehold's own" if port in OURS else f"is not between {LOWEST} and {HIGHEST}"
        raise FreeholdError(
            "preview.port",
            f"Port {port} {words}",
            hint="freehold preview, or GET /v1/preview/ports, lists what can be looked at",
        )
