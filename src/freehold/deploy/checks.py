"""Checks of `[deploy]`."""

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from freehold.deploy.section import DeploySection
from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_key, show_value

MIN_MEMORY = 256 * 1024**2


@check("E271")
def caddy_without_address(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Caddy needs the name for which it gets a certificate."""
    url = manifest.gateway.public_url or ""
    if manifest.section(DeploySection).caddy and not url:
        yield CheckFinding(
            ("deploy", "caddy"),
            "deploy.caddy is true, and gateway.public_url does not say for which name",
            'public_url = "https://agent.example.com" under [gateway]',
        )
    elif manifest.section(DeploySection).caddy and urlsplit(url).scheme != "https":
        yield CheckFinding(
            ("gateway", "public_url"),
            f"gateway.public_url is {show_value(url)}, and Caddy serves https",
            'public_url = "https://agent.example.com"',
        )


@check("E272")
def ports_of_containers_collide(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Two parts of a deployment would have the same port of the machine."""
    section = manifest.section(DeploySection)
    taken = {80, 443} if section.caddy else {section.http_port}
    if section.ssh_port in taken:
        yield CheckFinding(
            ("deploy", "ssh_port"),
            f"deploy.ssh_port is {section.ssh_port}, where the control center is served",
            "ssh_port = 2222",
        )


@check("E273")
def too_little_memory_for_freehold(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """Freehold cannot run with so little memory."""
    memory = manifest.section(DeploySection).memory
    if memory < MIN_MEMORY:
        yield CheckFinding(
            ("deploy", "memory"),
            f"deploy.memory is {memory}, and Freehold needs at least {MIN_MEMORY}",
            'memory = "2GiB"',
        )


@check("E274")
def private_network_is_none(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A network that Freehold may reach in a cluster is not a network, or is written as an address in it."""
    for index, text in enumerate(manifest.section(DeploySection).kubernetes.private_networks):
        try:
            ipaddress.ip_network(text)
        except ValueError:
            key = ("deploy", "kubernetes", "private_networks", index)
            yield CheckFinding(
                key, f"{show_key(key)} is {show_value(text)}, which is not a network", 'Example: "10.96.0.0/12"'
            )
