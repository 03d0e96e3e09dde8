"""Manifest checks of `[ssh]`."""

from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.units import show_seconds
from freehold.ssh.section import SshSection

MAX_LIFETIME = 86400
MIN_LIFETIME = 60


@check("W701")
def ssh_lifetime_above_a_day(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """`ssh.lifetime` is longer than a day. Certificates are issued for a day."""
    lifetime = manifest.section(SshSection).lifetime
    if lifetime > MAX_LIFETIME:
        yield CheckFinding(
            ("ssh", "lifetime"),
            f"ssh.lifetime is {show_seconds(lifetime)}; a certificate is valid for a day at most",
            'lifetime = "24h"',
        )


@check("E702")
def ssh_lifetime_too_short(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """`ssh.lifetime` is shorter than a minute."""
    lifetime = manifest.section(SshSection).lifetime
    if lifetime < MIN_LIFETIME:
        yield CheckFinding(
            ("ssh", "lifetime"), f"ssh.lifetime is {lifetime} s; it must be at least 60 s", 'lifetime = "24h"'
        )
