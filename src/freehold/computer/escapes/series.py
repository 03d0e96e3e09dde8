"""Many escape attempts in one process of the computer, each in a child of its own.

A new interpreter for each attempt takes most of the time, and seconds in an emulated virtual machine.
"""

import base64
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.escapes.bait import Bait
from freehold.computer.escapes.escape import EPILOGUE, PRELUDE, EscapeAttempt, Verdict, judge_escape
from freehold.computer.library.computer import Computer

MAX_LINE = 1 << 20
"""Bytes: a child's output is cut long before."""

# Reads the programs from standard input, as one line of JSON, and writes one line for each when its child has ended. A
# child has no descriptor that its parent opened. What it leaves running is killed, and so is one that takes too long.
SERIES = r"""
import base64, select, traceback

def run_child(source, seconds):
    pipes = [os.pipe(), os.pipe()]
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        for number, (_, writing) in enumerate(pipes, 1):
            os.dup2(writing, number)
        os.closerange(3, 256)
        code = 0
        try:
            exec(compile(source, "attempt", "exec"), dict(globals()))
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    reading = [reader for reader, _ in pipes]
    for _, writing in pipes:
        os.close(writing)
    found = {reader: b"" for reader in reading}
    open_ones = list(reading)
    deadline = time.monotonic() + seconds
    status = None
    while status is None or open_ones:
        ready, _, _ = select.select(open_ones, [], [], 0.02 if open_ones else 0.002)
        for reader in ready:
            data = os.read(reader, 65536)
            found[reader] = (found[reader] + data)[-65536:]
            if not data:
                open_ones.remove(reader)
        if status is None:
            done, waited = os.waitpid(pid, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(waited)
                # What it left behind may keep its output open.
                deadline = min(deadline, time.monotonic() + 0.2)
        if time.monotonic() > deadline:
            break
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
    if status is None:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for reader in reading:
        os.close(reader)
    return status, [base64.b64encode(found[reader]).decode() for reader in reading]

order = json.loads(sys.stdin.buffer.readline())
for source in order["programs"]:
    status, outputs = run_child(source, order["seconds"])
    print(json.dumps({"exit": status, "stdout": outputs[0], "stderr": outputs[1]}), flush=True)
"""


@dataclass(frozen=True)
class ChildResult:
    """How the child of one attempt has ended, and what it wrote."""

    stdout: bytes
    stderr: bytes
    exit_code: int | None


async def try_series(
    escapes: Sequence[EscapeAttempt], bait: Bait, computer: Computer, seconds: float
) -> AsyncIterator[Verdict]:
    """A verdict for each, as each ends. Where the process is lost, the attempts that it did not finish are unclear."""
    command = [GUEST_PYTHON, "-I", "-c", PRELUDE + SERIES, json.dumps(bait.shown())]
    order = {"programs": [escape.program + EPILOGUE for escape in escapes], "seconds": seconds}
    left = list(escapes)
    async with await computer.spawn(command, timeout=seconds * (len(escapes) + 1)) as process:
        await process.write(json.dumps(order).encode() + b"\n")
        process.close_stdin()
        async for line in _read_lines(process.stdout):
            if not left or (result := _read_result(line)) is None:
                break
            yield judge_escape(left.pop(0), bait, result)
    for escape in left:
        yield Verdict(escape.name, escape.claim, "unclear", "the process that makes the attempts has ended")


async def _read_lines(stream: Any) -> AsyncIterator[bytes]:
    rest = b""
    while data := await stream.read():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line
        if len(rest) > MAX_LINE:
            return


def _read_result(line: bytes) -> ChildResult | None:
    """None for a line that is none: whatever else runs in the computer may have written it."""
    try:
        found = json.loads(line)
        code = found["exit"]
        if not isinstance(code, int):
            return None
        return ChildResult(base64.b64decode(found["stdout"]), base64.b64decode(found["stderr"]), code)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
