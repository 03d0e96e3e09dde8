"""Manifest checks of `[fleet]`."""

import re
from collections.abc import Iterator
from ipaddress import ip_address

from freehold.errors import FreeholdError
from freehold.fleet.labels import check_labels
from freehold.fleet.section import FleetSection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_value

MACHINE = re.compile(r"[a-z][a-z0-9-]{0,23}")


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


@check("E783")
def unusable_autoscaler(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Machines should be started when they are needed, and nothing says how, or a kind of them cannot be."""
    section = manifest.section(FleetSection).autoscaler
    path = ("fleet", "autoscaler")
    for name in ("start", "stop"):
        if section.machines and not getattr(section, name):
            yield CheckFinding(
                (*path, name),
                f"fleet.autoscaler has kinds of machines, and no command in {name}",
                f'{name} = "/srv/freehold/{name}-machine"',
            )
    for name, kind in section.machines.items():
        where = (*path, "machines", name)
        if not MACHINE.fullmatch(name) or name == "head":
            yield CheckFinding(
                where, f"{show_value(name)} is no name for a kind of machine", "[fleet.autoscaler.machines.small]"
            )
        if kind.min > kind.max:
            yield CheckFinding((*where, "min"), f"min is {kind.min}, and max is {kind.max}", "min = 0")
        try:
            check_labels(kind.labels)
        except FreeholdError as error:
            yield CheckFinding((*where, "labels"), error.message, 'labels = {region = "home"}')


@check("E784")
def runs_with_an_image(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Computers of runs should be in a fleet and start from an image, which no node has."""
    image = manifest.computer.image
    if manifest.section(FleetSection).runs and image is not None:
        yield CheckFinding(
            ("fleet", "runs"),
            f"fleet.runs is true, and computer.image is {show_value(image)}: nodes have no image, only their own /usr",
            "runs = false, or leave computer.image out",
        )
