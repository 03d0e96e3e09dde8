"""Tests of the attempts themselves: each must notice a missing wall."""

import subprocess

import pytest

from freehold.computer.escapes import ESCAPES, Bait
from freehold.computer.escapes.escape import build_command, judge_escape

# On the host, without walls and without privileges, these attempts must succeed. An attempt that never succeeds proves
# nothing. The others would need root.
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
    """The same program, run by an ordinary user of the host, succeeds and reports it."""
    escape = next(escape for escape in ESCAPES if escape.name == name)
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
    ran = subprocess.run([*drop, *build_command(escape, bait)], capture_output=True, check=False, cwd="/", timeout=60)

    class Ran:
        stdout, stderr, exit_code = ran.stdout, ran.stderr, ran.returncode

    verdict = judge_escape(escape, bait, Ran())
    assert verdict.outcome == "escaped", verdict.seen
