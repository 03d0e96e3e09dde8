"""`freehold ssh -L` at a port of our own pages would make an app the same site as the control center."""

import pytest

from freehold.errors import FreeholdError
from freehold.ssh.cli import check_forwards

PORTS = frozenset({3000, 8001})


@pytest.mark.parametrize(
    "options",
    [
        ["-L", "3000:localhost:5173"],
        ["-L3000:localhost:5173"],
        ["-NL", "8001:localhost:80"],
        ["-v", "-NfL3000:localhost:5173"],
        ["-L", "127.0.0.1:3000:localhost:5173"],
        ["-L", "[::1]:3000:localhost:5173"],
        ["-L", "[::1]/3000/localhost/5173"],
        ["-L", "*:3000:localhost:5173"],
        ["-L", ":3000:localhost:5173"],
        ["-L", "freehold.localhost:3000:localhost:5173"],
        ["-L", "3000:/run/app.sock"],
        ["-L", "5173:localhost:5173", "-L", "3000:localhost:3000"],
    ],
)
def test_the_ports_of_our_own_pages_are_not_forwarded(options: list[str]) -> None:
    with pytest.raises(FreeholdError, match="belongs to Freehold's own pages") as refused:
        check_forwards(options, PORTS)
    assert "Choose another local port" in refused.value.hint


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-L", "5173:localhost:5173"],
        ["-L", "13000:localhost:3000"],
        ["-L", "127.0.0.1:5173:localhost:3000"],
        ["-L", "/tmp/a.sock:localhost:3000"],
        ["-R", "3000:localhost:3000"],
        ["-o", "LogLevel=ERROR"],
        ["-i", "L3000"],
        ["-p", "3000"],
    ],
)
def test_other_options_are_left_alone(options: list[str]) -> None:
    check_forwards(options, PORTS)
