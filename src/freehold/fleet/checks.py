"""Manifest checks of `[fleet]`."""

from collections.abc import Iterator
from ipaddress import ip_address

from freehold.fleet.section import FleetSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value


@check("E781")
def bad_fleet_address(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The address of the head is no address that nodes can reach, or is one that everybody can."""
    section = manifest.section(FleetSection)
    if not section.enabled:
        return
    try:
        address = ip_address(section.address)
    except ValueError:
        yield CheckFinding(
            ("fleet", "address"),
            f"fleet.address is {show_value(section.address)}, which is no IP address",
            'address = "10.0.0.5"',
        )
        return
    if address.is_unspecified or address.is_multicast or address.is_global:
        yield CheckFinding(
            ("fleet", "address"),
            f"fleet.address is {section.address}, and a head listens in a private network only",
            'address = "10.0.0.5", of a private network or a VPN between the machines',
        )
    elif str(address) in ("127.0.0.1", "::1"):
        yield CheckFinding(
            ("fleet", "address"),
            f"fleet.address is {section.address}, which Ray would replace by another address of this machine",
            'address = "127.0.0.2" to try it on this machine alone',
        )


@check("E782")
def runs_without_fleet(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Computers should run in a fleet that is switched off."""
    section = manifest.section(FleetSection)
    if section.runs and not section.enabled:
        yield CheckFinding(("fleet", "runs"), "fleet.runs is true, and fleet.enabled is false", "enabled = true")
