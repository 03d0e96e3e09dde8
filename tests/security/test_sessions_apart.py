"""Sessions share one computer and one uid: what one of them is given, no other can read, use or end."""

import asyncio
import json

import pytest

from freehold.computer import Computer
from freehold.computer.escapes import Bait, try_escape
from freehold.computer.escapes.neighbours import NEIGHBOURS
from freehold.computer.walls.landlock import can_separate_sessions
from freehold.errors import FreeholdError

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not can_separate_sessions(), reason="this kernel has no Landlock: freehold doctor says so"),
]

SECRETS = "tr '\\0' '\\n' < /proc/{pid}/environ 2>/dev/null | grep -c SECRET="
LINK_NAMELESS = """
import os
nameless = os.open("a", os.O_TMPFILE | os.O_RDWR)
os.link(f"/proc/self/fd/{nameless}", "b/x", src_dir_fd=os.open(".", os.O_PATH), follow_symlinks=True)
"""


async def readers(computer: Computer, pid: int) -> set[str | None]:
    """Who of three can read the process's environment. The owner is None."""
    found = set()
    for name in ("one", "another", None):
        looked = await computer.run(SECRETS.format(pid=pid), apart=name)
        if looked.text.strip() == "1":
            found.add(name)
    return found


async def test_the_attempts_of_one_session_on_another_do_tell(computer: Computer, bait: Bait) -> None:
    """Without the wall between them each attempt gets through: what the doctor calls refused is not merely broken."""

    class Together:
        """The same computer, in which nobody is apart."""

        machine = computer.machine

        async def run(self, *command: object, apart: str | None = None, **more: object) -> object:
            return await computer.run(*command, apart="together", **more)  # type: ignore[arg-type]

        async def spawn(self, *command: object, apart: str | None = None, **more: object) -> object:
            return await computer.spawn(*command, apart="together", **more)  # type: ignore[arg-type]

    for escape in NEIGHBOURS:
        verdict = await try_escape(escape, bait, Together())  # type: ignore[arg-type]
        assert verdict.outcome == "escaped", (escape.name, verdict.seen)
        assert (await try_escape(escape, bait, computer)).outcome == "refused"


async def test_only_its_own_session_reads_a_process(computer: Computer) -> None:
    """Children, and daemons that nobody is left to answer for, are in as firmly as the agent itself."""
    daemon = "(setsid sh -c 'echo $$ > /tmp/daemon; exec sleep 60' < /dev/null > /dev/null 2>&1 &); cat"
    async with await computer.spawn(daemon, env={"SECRET": "x"}, apart="one") as process:
        assert await readers(computer, process.pid) == {"one"}
        wait = "until grep -q sleep /proc/$(cat /tmp/daemon)/comm; do :; done 2> /dev/null; cat /tmp/daemon"
        orphan = int((await computer.run(wait, timeout=30)).text)
        assert await readers(computer, orphan) == {"one"}


async def test_no_session_reads_or_ends_what_is_the_owners(computer: Computer) -> None:
    """The owner's terminal may hold a password."""
    terminal = await computer.terminal(["/bin/sh", "-c", "echo ready; cat"], env={"SECRET": "x"})
    try:
        assert b"ready" in await terminal.read()
        assert terminal.info is not None
        assert await readers(computer, terminal.info.pid) == {None}
        killed = await computer.run(f"kill -9 {terminal.info.pid}", apart="one")
        assert b"not permitted" in killed.stderr
    finally:
        await terminal.close()


async def test_the_owner_ends_whatever_runs(computer: Computer) -> None:
    """Nobody's secrets are the owner's shell's to read, since it may run what an agent planted; but it may clear up."""
    async with await computer.spawn(["sleep", "60"], apart="one") as process:
        assert (await computer.run(f"kill {process.pid}")).ok
        assert (await process.wait()).signal == 15


async def test_a_sessions_next_agent_reaches_what_its_last_one_left(computer: Computer) -> None:
    """An agent that was let go when idle comes back to the dev server that it started, and can end it."""
    left = await computer.run("setsid sleep 60 < /dev/null > /dev/null 2>&1 & echo $!", apart="one")
    pid = int(left.text)
    assert not (await computer.run(f"kill {pid}", apart="another")).ok
    assert (await computer.run(f"readlink /proc/{pid}/exe && kill {pid}", apart="one")).ok


async def test_sessions_beyond_number_are_all_apart(computer: Computer) -> None:
    """More than the guest remembers: one that it forgot is given a new place, never another's."""
    async with await computer.spawn(["sleep", "60"], env={"SECRET": "x"}, apart="one") as process:
        for number in range(140):
            assert (await computer.run(["true"], apart=f"crowd-{number}")).ok
        assert await readers(computer, process.pid) == set()
        assert (await computer.run(["true"], apart="one")).ok


@pytest.mark.parametrize(
    "command",
    [
        "git init -q a && cd a && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git clone -q . ../b",
        "mkdir from to && echo x > from/x && mv from/x to/x && ln to/x from/y && mv from elsewhere && cat elsewhere/y",
        f"mkdir a b && python3 -c '{LINK_NAMELESS}' && cat b/x",
        "mkdir -p /workspace/a /workspace/b ~/a ~/b && for w in /workspace ~; do touch $w/a/x && ln $w/a/x $w/b/x && mv $w/a/x $w/b/y && mv $w/b $w/a; done",
        "strace -f -e trace=execve true",
        "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'",
        "{ sleep 60 & kill $! && ! wait $!; }",
        "script -qec 'stty -a; tty' /dev/null",
        "cat /proc/self/environ /proc/$$/maps > /dev/null; ps -ef | grep -q sh; echo x > /dev/stderr",
        'node -e \'const n = require("net"); const s = n.createServer().listen("\\0abc", () => n.connect("\\0abc", () => process.exit()))\'',
    ],
)
async def test_work_goes_on_as_before_inside_a_session(command: str, computer: Computer) -> None:
    ran = await computer.run(["/bin/bash", "-c", f"cd $(mktemp -d) && {command}"], timeout=60, apart="one")
    assert ran.ok, ran


async def test_a_program_may_wall_itself_in_further(computer: Computer) -> None:
    """Codex and others use Landlock themselves; ours leaves room for theirs."""
    program = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
WRITING, MOVING = 1 << 1, 1 << 13
os.chdir("/workspace")
os.makedirs("here/from", exist_ok=True)
os.makedirs("here/to", exist_ok=True)
open("here/from/file", "w").close()
for _ in range(8):
    handle = libc.syscall(444, (ctypes.c_uint64 * 1)(WRITING | MOVING), 8, 0)
    root = os.open("/", os.O_PATH)
    beneath = ctypes.create_string_buffer(MOVING.to_bytes(8, "little") + root.to_bytes(4, "little"), 12)
    assert libc.syscall(445, handle, 1, beneath, 0) == 0 and libc.syscall(446, handle, 0) == 0
os.rename("here/from/file", "here/to/file")
try:
    open("here/to/file", "w")
except PermissionError:
    print("walled in")
"""
    ran = await computer.run(["/usr/bin/python3", "-c", program], apart="one")
    assert ran.text == "walled in\n", ran


async def test_a_name_that_is_none_is_refused(computer: Computer) -> None:
    with pytest.raises(FreeholdError, match="NUL"):
        await computer.run(["true"], apart="a\0b")
    assert json.loads((await computer.run(["echo", "1"], apart="../1")).text) == 1
    await asyncio.gather(*(computer.run(["true"], apart=name) for name in ("é", " ", "a" * 1000)))


async def test_the_guest_takes_nothing_out_of_a_session_for_another(computer: Computer) -> None:
    """The guest sees into everybody. Whoever plants a link to a process has it read, copied or written for nobody."""
    async with await computer.spawn(["sleep", "60"], env={"SECRET": "x"}, apart="one") as process:
        await computer.run(
            f"ln -sfn /proc/{process.pid} planted; ln -sf /proc/{process.pid}/environ file", apart="another"
        )
        for path in ("planted/environ", "file", "planted/task", "planted/maps"):
            with pytest.raises(FreeholdError):
                await computer.files.read(path)
        for path in ("planted/environ", "planted/maps", "planted/cmdline"):
            with pytest.raises(FreeholdError):
                await computer.files.copy(path, "stolen")
        await computer.files.copy("file", "only-a-link")
        looked = await computer.run("cat only-a-link stolen; cat planted/environ", apart="another")
        assert looked.stdout == b""
        with pytest.raises(FreeholdError):
            await computer.files.append("planted/mem", b"x")
        with pytest.raises(FreeholdError):
            await computer.files.write("planted/oom_score_adj", b"1000")
