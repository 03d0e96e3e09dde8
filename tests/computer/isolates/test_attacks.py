"""Code that attacks what runs it: the channel to the guest, the zygote, parked isolates, contexts, and the host."""

import contextlib
import ctypes
import itertools
import platform
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.computer.isolates.conftest import NODE_PLACE, node_folder
from tests.computer.machines import host_pid
from tests.support.condition import until

from freehold.computer import CodeContext, Computer, Grants, Limits, Mount
from freehold.computer.contract.conventions import GUEST_PYTHON
from freehold.computer.isolates.execution import MAX_WAIT, ExecutionDeadline
from freehold.computer.isolates.records import ITEM, MAX_ITEMS, RECORD, RESULT
from freehold.errors import FreeholdError
from freehold.guest.isolates.zygote import SPARES

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

SHORT = 0.4
LIBC = ctypes.CDLL(None)
KCMP = {"x86_64": 312, "aarch64": 272}[platform.machine()]
"""The system call that compares open files of two processes. Where it is refused, names are compared only."""
OPEN_DESCRIPTORS = """
import os
found = []
for number in range(4096):
    try: os.fstat(number)
    except OSError: continue
    found.append(number)
found
"""
OPEN_SOCKETS = """
const fs = require('fs'), found = [];
for (let number = 0; number < 4096; number++)
  try { if (fs.fstatSync(number).isSocket()) found.push(number); } catch {}
found
"""
# What two processes can speak through; the events and polls of the kernel are compared on the host.
PIPES_AND_SOCKETS = """
const fs = require('fs'), found = {};
for (let number = 0; number < 4096; number++)
  try { const about = fs.fstatSync(number); if (about.isFIFO() || about.isSocket()) found[number] = about.ino; } catch {}
found
"""
# As many bytes as libuv reads from its signal pipes: a pointer, which is followed, and a number.
SCRIBBLE = """
const fs = require('fs');
let written = 0;
for (let number = 3; number < 4096; number++)
  try { if (number !== 100) { fs.writeSync(number, Buffer.alloc(16, 0x41)); written++; } } catch {}
written
"""
# Tries to become another process's debugger, to write its memory, to take its descriptors, and to end it.
INTRUDER = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
done = []
for pid in map(int, sys.argv[1:]):
    for name, attempt in {
        "attach": lambda: libc.ptrace(16, pid, None, None),
        "mem": lambda: os.open(f"/proc/{pid}/mem", os.O_RDWR),
        "fd": lambda: os.open(f"/proc/{pid}/fd/0", os.O_RDWR),
        "root": lambda: os.listdir(f"/proc/{pid}/root/"),
        "pidfd_getfd": lambda: libc.syscall(438, os.pidfd_open(pid), 0, 0),
        "kill": lambda: os.kill(pid, signal.SIGKILL),
    }.items():
        try: result = attempt()
        except OSError: continue
        if result != -1: done.append([pid, name])
print(done)
"""
STALE = RECORD.pack(RESULT, 2) + b"{}"
LIES = {
    "not JSON": b"{",
    "not an object": b"[]",
    "an unknown limit": b'{"limit": "patience"}',
    "an error without its parts": b'{"error": "ValueError"}',
    "an exit code that is too large": b'{"exit": 123456789012345678901234567890}',
    "deep": b"[" * 30_000,
    "a refusal": b'{"refused": "\\u001b[2J"}',
    "nothing": b"",
}
ITEMS = {
    "no description": b"x",
    "an unknown role": b'{"role": "answer"}\nx',
    "a file without a name": b'{"role": "file"}\nx',
    "an unknown type": b'{"role": "value", "type": "text/html"}\nx',
    "a description that is a list": b"[]\nx",
    "nothing": b"",
}


def send(content: bytes) -> str:
    return f"import os, time\nos.write(100, {content!r})\ntime.sleep(0.2)"


def find_on_host(computer: Computer, inside: int) -> int:
    """The pid on the host of a process inside."""
    namespace = Path(f"/proc/{host_pid(computer)}/ns/pid").readlink()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "ns/pid").readlink() == namespace:
                _, _, pids = (folder / "status").read_text().partition("NSpid:")
                if int(pids.splitlines()[0].split()[-1]) == inside:
                    return int(folder.name)
    raise AssertionError(f"no process has the pid {inside} inside")


def find_parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def read_links(pid: int) -> dict[int, str]:
    found: dict[int, str] = {}
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile: a zygote prepares its next isolates
            found[int(one.name)] = str(one.readlink())
    return found


def find_shared(pid: int, other: int) -> list[str]:
    """What descriptors of both lead to: the same pipe or socket, or the same open file."""
    found = []
    for (number, link), (theirs, their_link) in itertools.product(read_links(pid).items(), read_links(other).items()):
        same_name = link == their_link and link.startswith(("pipe:", "socket:"))
        if same_name or LIBC.syscall(KCMP, pid, other, 0, number, theirs) == 0:
            found.append(f"{number} and {theirs}: {link}")
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def witness(computer: Computer) -> AsyncIterator[CodeContext]:
    context = await computer.python.contexts.create()
    await context.execute("n = 41")
    yield context


async def test_an_isolate_has_no_descriptor_of_its_zygote(computer: Computer) -> None:
    """Nobody can report a birth or a death but the zygote: its control socket is open nowhere else."""
    assert await computer.python.evaluate(OPEN_DESCRIPTORS) == [0, 1, 2, 100]
    assert await computer.javascript.evaluate(OPEN_SOCKETS) == [100]


async def test_an_isolate_with_grants_has_no_descriptor_of_its_zygote(computer: Computer) -> None:
    """What it adds to the ruleset that all have in common would hold for its siblings."""
    grants = Grants(files={"/workspace/out": "rw"})
    assert (await computer.python.execute(OPEN_DESCRIPTORS, grants=grants)).check().value == [0, 1, 2, 100]
    context = await computer.javascript.contexts.create(grants=grants)
    links = read_links(find_on_host(computer, await context.evaluate("process.pid")))
    assert not [link for link in links.values() if "landlock" in link]
    await context.delete()


async def test_isolates_share_no_pipe_event_poll_or_socket_with_each_other_or_their_zygote(computer: Computer) -> None:
    """Whoever writes to the pipes of libuv's loops lets a thread of their owner follow a pointer."""
    first, second = [await computer.javascript.evaluate(PIPES_AND_SOCKETS) for _ in range(2)]
    assert not set(first.values()) & set(second.values())
    languages = (computer.javascript, computer.javascript, computer.typescript, computer.python, computer.python)
    contexts = [await language.contexts.create() for language in languages]
    own_pid = ["process.pid"] * 3 + ["__import__('os').getpid()"] * 2
    inside = [await context.evaluate(code) for context, code in zip(contexts, own_pid, strict=True)]
    pids = [find_on_host(computer, pid) for pid in inside]
    zygotes = {find_parent(pid) for pid in pids}
    assert len(zygotes) == 2
    for pid, other in itertools.product(pids, {*pids, *zygotes}):
        assert pid == other or find_shared(pid, other) == []
    for context in contexts:
        await context.delete()


async def test_writing_to_every_descriptor_harms_neither_the_zygote_nor_a_sibling(computer: Computer) -> None:
    sibling = await computer.javascript.contexts.create()
    await sibling.execute("globalThis.n = 41")
    zygote = find_parent(find_on_host(computer, await sibling.evaluate("process.pid")))
    for language in (computer.javascript, computer.typescript):
        assert await language.evaluate(SCRIBBLE) > 0
        assert await computer.javascript.evaluate("new Promise((done) => setTimeout(() => done(7), 20))") == 7
    context = await computer.javascript.contexts.create()
    assert await context.evaluate(SCRIBBLE) > 0
    assert await sibling.evaluate("new Promise((done) => setTimeout(() => done(n + 1), 20))") == 42
    after = await computer.javascript.contexts.create()
    assert find_parent(find_on_host(computer, await after.evaluate("process.pid"))) == zygote
    for one in (sibling, context, after):
        await one.delete()


@pytest.mark.parametrize("what", LIES)
async def test_a_forged_answer_harms_only_the_one_who_sent_it(
    computer: Computer, witness: CodeContext, what: str
) -> None:
    forged = RECORD.pack(RESULT, len(LIES[what])) + LIES[what]
    try:
        said = (await computer.python.execute(send(forged))).text
    except FreeholdError as error:
        said = error.message
    assert "\x1b" not in said
    assert await witness.evaluate("n + 1") == 42


@pytest.mark.parametrize("what", ITEMS)
async def test_a_forged_item_harms_only_the_one_who_sent_it(
    computer: Computer, witness: CodeContext, what: str
) -> None:
    forged = RECORD.pack(ITEM, len(ITEMS[what])) + ITEMS[what]
    with pytest.raises(FreeholdError) as refused:
        await computer.python.execute(send(forged))
    assert refused.value.code == "link.protocol"
    assert await witness.evaluate("n + 1") == 42


async def test_a_flood_of_small_items_is_ended(computer: Computer, witness: CodeContext) -> None:
    result = await computer.python.execute(f"for n in range({MAX_ITEMS} + 1): display(n)")
    assert result.limit == "results"
    assert len(result.items) == MAX_ITEMS
    assert await witness.evaluate("n + 1") == 42


async def test_a_context_that_answers_twice_is_ended_and_no_other_gets_its_answer(
    computer: Computer, witness: CodeContext
) -> None:
    context = await computer.python.contexts.create()
    await context.execute(send(STALE))

    async def has_ended() -> bool:
        return (await context.info()).state == "ended"

    await until(has_ended)
    with pytest.raises(FreeholdError) as ended:
        await context.execute("1")
    assert ended.value.code == "computer.context-ended"
    assert await witness.evaluate("n + 1") == 42
    await context.delete()


async def test_nothing_of_a_poisoned_context_is_left_after_a_reset(computer: Computer) -> None:
    context = await computer.python.contexts.create()
    poison = (
        "import builtins, json, sys, threading, time, os\n"
        "open('json.py', 'w').write('raise SystemExit(9)')\n"
        "json.dumps = builtins.compile = builtins.isinstance = None\n"
        "sys.modules['ast'] = None\n"
        "threading.Thread(target=lambda: time.sleep(600), daemon=True).start()"
    )
    await context.execute(poison)
    await context.reset()
    assert await context.evaluate("import json; json.dumps({'a': [1]})") == '{"a": [1]}'
    assert await context.evaluate("import os; os.listdir('.')") == []
    assert await computer.python.evaluate("import json; json.dumps([2])") == "[2]"
    await context.delete()


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.close(100)\nwhile True: pass",
        "import os, signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2, 15, 20])\nos.close(100); time.sleep(60)",
    ],
)
async def test_code_that_does_not_answer_is_ended_in_a_context_as_well(
    computer: Computer, witness: CodeContext, code: str
) -> None:
    assert (await computer.python.execute(code, timeout=SHORT)).limit == "wall_time"
    context = await computer.python.contexts.create()
    assert (await context.execute(code, timeout=SHORT)).limit == "wall_time"
    assert (await context.info()).state == "ended"
    assert await witness.evaluate("n + 1") == 42
    await context.delete()


async def test_descriptors_that_an_isolate_sends_are_not_kept(computer: Computer, witness: CodeContext) -> None:
    """A descriptor in flight would be one of the guest's. Whatever the isolate manages to send, the guest goes on."""
    code = (
        "import socket, array\nfor _ in range(300):\n"
        "  s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=100)\n"
        "  try: s.sendmsg([b''], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1, 2] * 30))])\n"
        "  finally: s.detach()"
    )
    for _ in range(5):
        await computer.python.execute(code)
    assert await witness.evaluate("n + 1") == 42
    assert (await computer.run("echo here")).text == "here\n"


@pytest.mark.parametrize("apart", [None, "session 2"])
async def test_a_process_of_a_session_cannot_touch_zygotes_parked_isolates_or_contexts(
    computer: Computer, apart: str | None
) -> None:
    """One that could would run in the place of the owner's code, or of another session's."""
    context = await computer.python.contexts.create(apart=apart)
    await context.execute("n = 41")
    targets = {one.pid: one.parent for one in await computer.processes() if "--zygote" in one.command}
    assert len(targets) > 1
    tried = await computer.run([GUEST_PYTHON, "-I", "-c", INTRUDER, *map(str, targets)], apart="session 1", timeout=60)
    assert tried.text == "[]\n", tried
    assert await context.evaluate("n + 1") == 42
    alive = {one.pid for one in await computer.processes()}
    assert {pid for pid, parent in targets.items() if parent == 1} <= alive
    await context.delete()


async def test_starts_that_fail_cost_neither_a_process_nor_a_descriptor_nor_a_folder() -> None:
    """/tmp is full, then nobody may write to it, then there is no such package: more often than the guest has descriptors."""
    # Not fewer: the kernel counts descriptors that wait in sockets for all computers of this machine together, and one
    # of another test has hundreds of them. A guest with a lower limit could give none to its zygote meanwhile.
    limits = Limits(tmp=1 << 20, open_files=1024)
    async with Computer.start(limits=limits, mounts=[Mount(node_folder(), NODE_PLACE)]) as computer:
        await computer.run("head -c 2M /dev/zero > /tmp/full")
        for _ in range(800):
            with pytest.raises(FreeholdError, match="No space left"):
                await computer.javascript.execute("1")
        await computer.run("rm /tmp/full && chmod 555 /tmp")
        for _ in range(160):
            with pytest.raises(FreeholdError, match="Permission denied"):
                await computer.python.execute("1", outputs=("none",))
            with pytest.raises(FreeholdError, match="Permission denied"):
                await computer.python.contexts.create()
        await computer.run("chmod 1777 /tmp")
        for _ in range(40):
            with pytest.raises(FreeholdError, match="unheard"):
                await computer.python.contexts.create(packages=("unheard-of",))
        assert await computer.javascript.evaluate("6 * 7") == 42
        assert await computer.python.evaluate("6 * 7") == 42

        async def only_spares_are_left() -> bool:
            running = [one for one in await computer.processes() if one.state != "Z"]
            folders = [one for one in await computer.files.list("/tmp") if one.name.startswith("isolate-")]
            return len(running) <= 2 * (1 + SPARES) and not folders

        await until(only_spares_are_left)


async def test_a_guest_may_let_code_wait_for_its_turn_once() -> None:
    deadline = ExecutionDeadline(1.0)
    async with deadline.timeout:
        before = deadline.timeout.when() or 0
        deadline.postpone(True)
        assert (deadline.timeout.when() or 0) > before + MAX_WAIT / 2
        deadline.postpone(False)
        assert (deadline.timeout.when() or 0) < before + MAX_WAIT / 2
        for waits in (True, False):
            with pytest.raises(FreeholdError, match="twice"):
                deadline.postpone(waits)
    with pytest.raises(FreeholdError, match="twice"):
        ExecutionDeadline(1.0).postpone(False)
