"""Translates the terminal modes of an SSH client (RFC 4254, section 8) to arguments of `stty`."""

from collections.abc import Mapping

CHARACTERS = {
    1: "intr",
    2: "quit",
    3: "erase",
    4: "kill",
    5: "eof",
    6: "eol",
    7: "eol2",
    8: "start",
    9: "stop",
    10: "susp",
    12: "rprnt",
    13: "werase",
    14: "lnext",
    18: "discard",
}
FLAGS = {
    30: "ignpar",
    31: "parmrk",
    32: "inpck",
    33: "istrip",
    34: "inlcr",
    35: "igncr",
    36: "icrnl",
    37: "iuclc",
    38: "ixon",
    39: "ixany",
    40: "ixoff",
    41: "imaxbel",
    42: "iutf8",
    50: "isig",
    51: "icanon",
    52: "xcase",
    53: "echo",
    54: "echoe",
    55: "echok",
    56: "echonl",
    57: "noflsh",
    58: "tostop",
    59: "iexten",
    60: "echoctl",
    61: "echoke",
    70: "opost",
    71: "olcuc",
    72: "onlcr",
    73: "ocrnl",
    74: "onocr",
    75: "onlret",
}
NO_CHARACTER = 255
# The command runs also when stty fails. By its path: the first folder of PATH belongs to agents.
_SET_AND_RUN = 'settings=$1; shift; /bin/stty $settings 2>/dev/null; exec "$@"'


def stty_settings(modes: Mapping[int, int]) -> list[str]:
    """The arguments for `stty`. Line speeds, parity and unknown modes are ignored."""
    arguments: list[str] = []
    for number, value in modes.items():
        if (name := CHARACTERS.get(number)) is not None and value <= NO_CHARACTER:
            # At least two digits: stty reads a single digit as the character itself.
            arguments += [name, "undef" if value == NO_CHARACTER else f"0x{value:02x}"]
        elif (flag := FLAGS.get(number)) is not None:
            arguments.append(flag if value else f"-{flag}")
    return arguments


def with_stty(settings: list[str], argv: list[str]) -> list[str]:
    """A command line that sets the terminal first and then runs `argv`."""
    if not settings:
        return argv
    return ["/bin/sh", "-c", _SET_AND_RUN, "sh", " ".join(settings), *argv]
