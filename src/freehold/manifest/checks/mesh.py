"""Checks of `[mesh]`."""

from collections.abc import Iterator

from freehold.manifest.addresses import host_of
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value


@check("E721")
def client_mesh_without_host(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A client of another Freehold does not know which."""
    if manifest.mesh.mode == "client" and not manifest.mesh.host:
        yield CheckFinding(
            ("mesh", "mode"),
            'mesh.mode is "client", and mesh.host does not say whose',
            'host = "https://hub.example.com"',
        )


@check("E722")
def bad_mesh_host(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The Freehold to connect to is no https address."""
    host = manifest.mesh.host
    if host and not (host.startswith("https://") and host_of(host)):
        yield CheckFinding(
            ("mesh", "host"),
            f"mesh.host is {show_value(host)}, which is no https address",
            'host = "https://hub.example.com"',
        )
