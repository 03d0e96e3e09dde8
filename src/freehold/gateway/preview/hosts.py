"""The host names of previews: `PORT.preview.localhost:GATEWAY_PORT`, or `PORT.` before the host of `gateway.preview_url`.

A site of a feature has its name in the place of a port.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from freehold.computer.contract.conventions import RESERVED_PORTS
from freehold.errors import FreeholdError
from freehold.gateway.addresses import origin_of
from freehold.identity.sign_ins import CONTROL_CENTER_NAME
from freehold.manifest import Manifest

LOCAL_DOMAIN = "preview.localhost"
"""Ports inside the computer that Freehold serves itself. They cannot be previewed."""
MIN_PORT = 1024
MAX_PORT = 65535

# A port has one spelling only, so that two host names never mean the same port.
_NAME = re.compile(rb"(?:([1-9][0-9]{3,4})|([a-z]{1,20}))\.(.+)")


@dataclass(frozen=True)
class PreviewDomain:
    """The previews below one host name, and the control centers that may frame them."""

    scheme: str
    suffix: str
    frame_origins: tuple[str, ...]

    def host(self, port: int) -> str:
        return f"{port}.{self.suffix}"

    def origin(self, port: int) -> str:
        return f"{self.scheme}://{self.host(port)}"

    @property
    def csp_source(self) -> str:
        """All previews of this domain, as a source of a content security policy."""
        return f"{self.scheme}://*.{self.suffix}"


@dataclass(frozen=True)
class PreviewSite:
    """One preview: a port inside the computer, at one host name. `name` is set for a site of a feature."""

    domain: PreviewDomain
    port: int
    name: str | None = None

    @property
    def host(self) -> str:
        return self.domain.host(self.port) if self.name is None else f"{self.name}.{self.domain.suffix}"

    @property
    def origin(self) -> str:
        return f"{self.domain.scheme}://{self.host}"

    def origin_of(self, port: int) -> str:
        """The origin at which a browser sees this port."""
        return self.origin if port == self.port else self.domain.origin(port)

    def find_sibling_port(self, origin: str) -> int | None:
        """The port of the preview in this domain with this origin; None when there is none.

        A site of a feature has no siblings: pages of agents are on the others.
        """
        if self.name is not None:
            return self.port if origin == self.origin else None
        prefix, _, rest = origin.partition("://")
        found = _read(rest.encode("latin-1", "replace"), (self.domain,), ())
        return found.port if found is not None and prefix == self.domain.scheme else None


class PreviewHosts:
    """Finds the preview of a Host, and the domain of previews for a control center."""

    def __init__(self, manifest: Manifest, names: Collection[str] = ()) -> None:
        """`names` are those of the sites of features."""
        gateway = manifest.gateway
        self._names = frozenset(names)
        local = f":{gateway.port}" if gateway.port != 80 else ""
        framers = (f"http://{CONTROL_CENTER_NAME}{local}",)
        self._local = PreviewDomain("http", f"{LOCAL_DOMAIN}{local}", framers)
        self._public: PreviewDomain | None = None
        self._control = origin_of(gateway.public_url) if gateway.public_url is not None else None
        self._control_host = self._control.partition("://")[2] if self._control is not None else None
        if gateway.preview_url is not None:
            scheme, _, below = origin_of(gateway.preview_url).partition("://")
            seen_from = (self._control,) if self._control is not None else framers
            self._public = PreviewDomain(scheme, below, seen_from)

    @property
    def domains(self) -> tuple[PreviewDomain, ...]:
        return (self._local,) if self._public is None else (self._local, self._public)

    def find(self, host: bytes) -> PreviewSite | None:
        """The preview at a Host header; None for any other host and for ports that cannot be previewed."""
        return _read(host.lower(), self.domains, self._names)

    def domain_for(self, host: str) -> PreviewDomain | None:
        """The domain of previews for the control center at this Host; None when a public one has no domain for them."""
        if host == self._control_host or (self._public is not None and self._control is None):
            return self._public
        return self._local


def _read(host: bytes, families: tuple[PreviewDomain, ...], names: Collection[str]) -> PreviewSite | None:
    found = _NAME.fullmatch(host)
    if found is None:
        return None
    port, name = int(found[1] or 0), found[2].decode() if found[2] else None
    if not can_preview(port) if name is None else name not in names:
        return None
    return next((PreviewSite(family, port, name) for family in families if family.suffix.encode() == found[3]), None)


def can_preview(port: int) -> bool:
    return MIN_PORT <= port <= MAX_PORT and port not in RESERVED_PORTS


def check_port(port: int) -> None:
    if not can_preview(port):
        reason = "is used by Freehold itself" if port in RESERVED_PORTS else f"is not between {MIN_PORT} and {MAX_PORT}"
        raise FreeholdError(
            "preview.port",
            f"Port {port} {reason}",
            hint="freehold preview, or GET /v1/preview/ports, lists the ports that can be previewed",
        )
