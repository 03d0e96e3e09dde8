"""The attempts themselves are tried: each must tell a wall from its absence."""

import subprocess

import pytest

from freehold.computer.escapes import ESCAPES, Bait
from freehold.computer.escapes.escape import command_for, judge

# Tried outside of any wall as a user without rights, these must be seen to succeed: an attempt that cannot tell a wall
# from its absence shows nothing. The others need root to succeed, and are not given it.
VISIBLE_WITHOUT_WALLS = (
    "host-file",
    "owner-home",
    "no-sysfs",
    "masked-proc",
    "rare-calls",
    "host-processes",
    "trace-others",
    "host-sockets",
    "abstract-sockets",
    "host-loopback",
    "netlink",
    "host-memory",
    "privileges",
    "host-environment",
)


@pytest.mark.parametrize("name", VISIBLE_WITHOUT_WALLS)
def test_an_attempt_notices_that_a_wall_is_missing(name: str, bait: Bait) -> None:
    """The same program, run by an ordinary user of the host, gets through and says so."""
    escape = next(escape for escape in ESCAPES if escape.name == name)
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
    ran = subprocess.run([*drop, *command_for(escape, bait)], capture_output=True, check=False, cwd="/", timeout=60)

    class Ran:
        stdout, stderr, exit_code = ran.stdout, ran.stderr, ran.returncode

    verdict = judge(escape, bait, Ran())
    assert verdict.outcome == "escaped", verdict.seen
