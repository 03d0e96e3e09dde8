"""One escape attempt: a program that runs inside a real computer, and how its output is judged."""

import json
import re
from dataclasses import dataclass
from typing import Literal, Protocol

from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.escapes.bait import Bait

Outcome = Literal["refused", "escaped", "unclear"]

# The start of every program. `attempt` calls a function: an OSError is a refusal, anything else is an escape.
PRELUDE = r"""
import ctypes, errno, json, os, signal, socket, stat, struct, subprocess, sys, time
bait = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
reasons = []
children = []

def end(child):
    # Popen.kill would send nothing: it mistakes the stop of a traced child for its end.
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

def see(path):
    # A file that is covered by an empty one shows nothing.
    if not read(path):
        raise FileNotFoundError(errno.ENOENT, "an empty file")

def reach(path):
    # An empty folder that covers something leads nowhere.
    if os.path.isdir(path) and not os.listdir(path):
        raise FileNotFoundError(errno.ENOENT, "an empty folder")
    os.stat(path)

def write(path, content):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)

def in_child(act):
    # Runs `act` in a child and returns its wait status.
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

NOTHING = "there was nothing to try"
SURVIVOR = "survivor"
EPILOGUE = f"""
print("REFUSED", "; ".join(reasons) or {NOTHING!r}, flush=True)
"""


@dataclass(frozen=True)
class EscapeAttempt:
    """`claim` says what must not be possible; `program` is Python (after PRELUDE) that tries it.

    With `beside_another` a process of another session runs at the same time. `bait["neighbour"]` is its pid, and it
    must survive the attempt. With `then_stop` the kill switch is pulled when the program has ended: no process that it
    left behind, by the name SURVIVOR, may be there afterwards.
    """

    name: str
    claim: str
    program: str
    beside_another: bool = False
    then_stop: bool = False


@dataclass(frozen=True)
class Verdict:
    """The result. "unclear" counts as a failure: the attempt has shown nothing."""

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


def build_command(escape: EscapeAttempt, bait: Bait, **more: int) -> list[str]:
    source = PRELUDE + escape.program + EPILOGUE
    return [GUEST_PYTHON, "-I", "-c", source, json.dumps({**bait.shown(), **more})]


def judge_escape(escape: EscapeAttempt, bait: Bait, ran: Ran) -> Verdict:
    """Judge an attempt. The bait's token anywhere in the output is an escape, whatever the program reports."""
    output = ran.stdout.decode(errors="replace")
    last = output.strip().splitlines()[-1] if output.strip() else ""
    if bait.token in output or bait.token.encode() in ran.stderr:
        return Verdict(escape.name, escape.claim, "escaped", "the host's secret was read")
    found = re.search(r"^ESCAPED (.*)$", output, re.MULTILINE)
    if found:
        return Verdict(escape.name, escape.claim, "escaped", found.group(1))
    if ran.exit_code == 0 and last.startswith("REFUSED "):
        return Verdict(escape.name, escape.claim, "refused", last.removeprefix("REFUSED "))
    errors = ran.stderr.decode(errors="replace").strip().splitlines()
    return Verdict(escape.name, escape.claim, "unclear", f"exit {ran.exit_code}: {errors[-1] if errors else last}")
