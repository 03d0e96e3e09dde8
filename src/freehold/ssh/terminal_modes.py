"""How the client's own terminal treats what is typed, in words that `stty` inside understands (RFC 4254, section 8)."""

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
# Whatever stty makes of them, the command runs.
_SET_AND_RUN = 'settings=$1; shift; stty $settings 2>/dev/null; exec "$@"'


def settings_of(modes: Mapping[int, int]) -> list[str]:
    """Speeds and parity are a wire's, and what we do not know is left as it is."""
    words: list[str] = []
    for number, value in modes.items():
        if (name := CHARACTERS.get(number)) is not None and value <= NO_CHARACTER:
            # Two digits at least: stty takes a single one for the character itself.
            words += [name, "undef" if value == NO_CHARACTER else f"0x{value:02x}"]
        elif (flag := FLAGS.get(number)) is not None:
            words.append(flag if value else f"-{flag}")
    return words


def with_settings(settings: list[str], argv: list[str]) -> list[str]:
    """The command in a terminal that is set so before its first byte."""
    if not settings:
        return argv
    return ["/bin/sh", "-c", _SET_AND_RUN, "sh", " ".join(settings), *argv]
