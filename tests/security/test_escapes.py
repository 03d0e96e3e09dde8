"""Every escape attempt runs in a real computer; afterwards it and another one still answer."""

import pytest

from freehold.computer.escapes import ESCAPES, Bait, EscapeAttempt, try_escape
from freehold.computer.library.computer import Computer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
async def test_an_escape_is_refused(escape: EscapeAttempt, bait: Bait, computer: Computer, bystander: Computer) -> None:
    """The attempt fails and breaks nothing."""
    verdict = await try_escape(escape, bait, computer)
    assert verdict.outcome == "refused", verdict.seen
    assert (await bystander.run(["echo", "here"])).stdout == b"here\n"


async def test_a_debugger_may_trace_its_own_child(computer: Computer) -> None:
    """Only tracing other processes is refused: strace and gdb work on their own child."""
    ran = await computer.run("strace -f -e trace=execve true 2>&1 | tail -1")
    assert b"exited with 0" in ran.stdout, ran


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'import ssl, socket; print(socket.getaddrinfo(\"localhost\", 80)[0][4][0])'",
        "node -e 'require(\"os\").networkInterfaces(); console.log(1)'",
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline",
        "echo 'int main(){return 0;}' > x.c && gcc x.c -o x && ./x && echo built",
        "gpg --batch --version",
        "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, 2]))'",
        "python3 -c 'import tempfile, mmap, threading; threading.Thread(target=print, args=(1,)).start()'",
        "ulimit -c 0 && ulimit -n 64 && echo lowered",
    ],
)
async def test_ordinary_programs_work_behind_the_walls(command: str, computer: Computer) -> None:
    """The walls do not hinder ordinary work."""
    if command.startswith("gpg") and (await computer.run("command -v gpg")).exit_code:
        command = "true && echo no gpg here"
    ran = await computer.run(f"mkdir -p work-$$ && cd work-$$ && {command}", timeout=60)
    assert ran.ok, ran
    assert ran.stdout
