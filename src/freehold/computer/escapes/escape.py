"""One attempt to get out: a program that is run inside a real computer, and what it is taken to have shown."""

import json
import re
from dataclasses import dataclass
from typing import Literal, Protocol

from freehold.computer.escapes.bait import Bait

Outcome = Literal["refused", "escaped", "unclear"]

# What every program starts with. `attempt` takes an act: an OSError is a refusal, anything else went through the wall.
PRELUDE = r"""
import ctypes, errno, json, os, signal, socket, stat, struct, subprocess, sys, time
bait = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
reasons = []
children = []

def end(child):
    # Popen.kill takes the stop of a traced child for its end, and then sends nothing.
    os.kill(child.pid, signal.SIGKILL)
    while not os.WIFSIGNALED(os.waitpid(child.pid, 0)[1]):
        pass

def escaped(what):
    for child in children:
        end(child)
    print("ESCAPED", what, flush=True)
    os._exit(0)

def refused(why):
    reasons.append(str(why))

def attempt(label, act, *arguments):
    try:
        act(*arguments)
    except OSError as error:
        refused(f"{label}: {errno.errorcode.get(error.errno, error)}")
    else:
        escaped(label)

X86 = os.uname().machine == "x86_64"

def syscall(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall.restype = ctypes.c_long
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def read(path):
    with open(path, "rb") as file:
        return file.read(4096)

def write(path, content):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)

def in_child(act):
    # Runs `act` in a child; its wait status tells how it ended.
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except OSError as error:
            os._exit(100 + min(error.errno, 150))
        except BaseException:
            os._exit(99)
        os._exit(0)
    return os.waitpid(pid, 0)[1]
"""

NOTHING = "nothing there to try"
EPILOGUE = f"""
print("REFUSED", "; ".join(reasons) or {NOTHING!r}, flush=True)
"""


@dataclass(frozen=True)
class Escape:
    """`claim` says what must not be possible; `program` is Python (after PRELUDE) that tries it.

    One that is tried `beside_another` session's process is told its pid as `bait["neighbour"]`; that process must live on.
    """

    name: str
    claim: str
    program: str
    beside_another: bool = False


@dataclass(frozen=True)
class Verdict:
    """What was seen. Unclear is no better than escaped: the attempt told nothing."""

    name: str
    claim: str
    outcome: Outcome
    seen: str


class Ran(Protocol):
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...
    @property
    def exit_code(self) -> int | None: ...


def command_for(escape: Escape, bait: Bait, **more: int) -> list[str]:
    # Plain indentation at the top, so that bodies are pasted as they are.
    source = PRELUDE + escape.program + EPILOGUE
    return ["/usr/bin/python3", "-I", "-c", source, json.dumps({**bait.shown(), **more})]


def judge(escape: Escape, bait: Bait, ran: Ran) -> Verdict:
    """The bait's token anywhere in the output is an escape, whatever the program says of itself."""
    said = ran.stdout.decode(errors="replace")
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if bait.token in said or bait.token.encode() in ran.stderr:
        return Verdict(escape.name, escape.claim, "escaped", "the host's secret was read")
    found = re.search(r"^ESCAPED (.*)$", said, re.MULTILINE)
    if found:
        return Verdict(escape.name, escape.claim, "escaped", found.group(1))
    if ran.exit_code == 0 and last.startswith("REFUSED "):
        return Verdict(escape.name, escape.claim, "refused", last.removeprefix("REFUSED "))
    words = ran.stderr.decode(errors="replace").strip().splitlines()
    return Verdict(escape.name, escape.claim, "unclear", f"exit {ran.exit_code}: {words[-1] if words else last}")
