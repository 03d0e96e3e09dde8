"""Manifest checks of `[mesh]`."""

from collections.abc import Iterator

from freehold.manifest.addresses import host_of, is_loopback, split_url
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value
from freehold.mesh.nostr.bech32 import is_public_key
from freehold.mesh.section import MeshSection


@check("E721")
def client_mesh_without_host(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A client of another Freehold does not know which."""
    section = manifest.section(MeshSection)
    if section.mode == "client" and not section.host:
        yield CheckFinding(
            ("mesh", "mode"),
            'mesh.mode is "client", and mesh.host does not say whose',
            'host = "https://hub.example.com"',
        )


@check("E722")
def bad_mesh_host(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The Freehold to register with is neither an https address nor on this machine."""
    host = manifest.section(MeshSection).host
    if host and not ((host.startswith("https://") and host_of(host)) or _is_here(host, "http")):
        yield CheckFinding(
            ("mesh", "host"),
            f"mesh.host is {show_value(host)}, which is no https address",
            'host = "https://hub.example.com"',
        )


@check("E723")
def bad_mesh_relay(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A relay has neither a `wss` address nor one on this machine."""
    for place, url in enumerate(manifest.section(MeshSection).relays):
        parts = split_url(url)
        is_wss = parts is not None and parts.scheme == "wss" and parts.hostname and not parts.username
        if not (is_wss or _is_here(url, "ws")):
            yield CheckFinding(
                ("mesh", "relays", place),
                f"{show_value(url)} is not the address of a relay",
                'relays = ["wss://relay.example.com"]',
            )


@check("E724")
def required_mesh_is_off(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The mesh is required and off, so that Freehold would never be ready."""
    section = manifest.section(MeshSection)
    if section.required and not section.enabled:
        yield CheckFinding(("mesh", "required"), "mesh.required is true, and mesh.mode is off", 'mode = "peer"')


@check("E725")
def bad_owner_key(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The owner's own key for the relay is not a public key."""
    owner = manifest.section(MeshSection).relay.owner
    if owner is not None and not is_public_key(owner):
        yield CheckFinding(
            ("mesh", "relay", "owner"),
            f"mesh.relay.owner is {show_value(owner)}, which is not a public key",
            'owner = "npub1…", as your Nostr client shows it',
        )


def _is_here(url: str, scheme: str) -> bool:
    parts = split_url(url)
    return parts is not None and parts.scheme == scheme and not parts.username and is_loopback(parts.hostname or "")
