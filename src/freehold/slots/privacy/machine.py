"""What names this machine and its user: the full name, the host name, and its addresses in networks."""

import os
import pwd
import socket
from functools import cache
from ipaddress import ip_address

from freehold.slots.privacy.detectors import MachineUser


@cache
def read_machine_user() -> MachineUser:
    """Only what is hardly an everyday word: those would be found everywhere. Account names are found in paths."""
    host = socket.gethostname()
    names = {name for name in (host, host.partition(".")[0]) if any(not one.isalpha() for one in name)}
    try:
        full = pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0]
    except KeyError:
        full = ""
    if " " in full.strip():
        names.add(full.strip())
    return MachineUser(tuple(sorted(names | _list_addresses())))


def _list_addresses() -> set[str]:
    """The address by which this machine reaches each kind of network. Nothing is sent."""
    found = set()
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                found.add(str(probe.getsockname()[0]))
        except OSError:
            continue
    return {one for one in found if not ip_address(one).is_loopback}
