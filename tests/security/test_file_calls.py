"""Links planted by a hostile program, against every file call, also while they are being exchanged under its feet."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from freehold.computer.escapes import Bait
from freehold.computer.library.computer import Computer
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")

Call = Callable[[Computer, str], Awaitable[object]]


async def stream(computer: Computer, path: str) -> bytes:
    return b"".join([piece async for piece in computer.files.stream(path)])


CALLS: dict[str, Call] = {
    "read": lambda c, path: c.files.read(path),
    "read_text": lambda c, path: c.files.read_text(path),
    "stream": stream,
    "write": lambda c, path: c.files.write(path, b"planted"),
    "write exclusive": lambda c, path: c.files.write(path + "-new", b"planted", exclusive=True),
    "write parents": lambda c, path: c.files.write(path + "/deep/er", b"planted", parents=True),
    "append": lambda c, path: c.files.append(path, b"planted"),
    "stat": lambda c, path: c.files.stat(path),
    "list": lambda c, path: c.files.list(path),
    "walk": lambda c, path: c.files.walk(path),
    "glob": lambda c, path: c.files.glob("**/*", path),
    "search": lambda c, path: c.files.search("[0-9a-f]{32}", path, regex=True),
    "mkdir": lambda c, path: c.files.mkdir(path + "/planted", parents=True),
    "move out of": lambda c, path: c.files.move(path, "/workspace/moved", replace=True),
    "move into": lambda c, path: c.files.move("/workspace/own", path + "/planted", replace=True),
    "copy from": lambda c, path: c.files.copy(path, "/workspace/copied", replace=True),
    "copy into": lambda c, path: c.files.copy("/workspace/own", path + "/planted", replace=True),
    "remove": lambda c, path: c.files.remove(path, recursive=True, missing_ok=True),
    "chmod": lambda c, path: c.files.chmod(path, 0o777),
    "read_many": lambda c, path: c.files.read_many([path, path + "/secret"]),
    "write_many": lambda c, path: c.files.write_many({path: b"planted", path + "/planted": b"planted"}),
    "append_many": lambda c, path: c.files.append_many({path: b"planted"}),
    "stat_many": lambda c, path: c.files.stat_many([path]),
    "list_many": lambda c, path: c.files.list_many([path]),
    "mkdir_many": lambda c, path: c.files.mkdir_many([path + "/planted"]),
    "move_many": lambda c, path: c.files.move_many({path: "/workspace/moved"}, replace=True),
    "copy_many": lambda c, path: c.files.copy_many({path: "/workspace/copied"}, replace=True),
    "remove_many": lambda c, path: c.files.remove_many([path], recursive=True, missing_ok=True),
}

RACER = """
import os, sys, time
targets = sys.argv[1:]
print("racing", flush=True)
number = 0
while True:
    number += 1
    for target in targets:
        try:
            os.symlink(target, f"/workspace/next-{number}")
            os.replace(f"/workspace/next-{number}", "/workspace/race")
        except OSError:
            pass
        try:
            os.unlink("/workspace/race")
            os.mkdir("/workspace/race")
            os.link("/workspace/own", "/workspace/race/secret")
        except OSError:
            pass
        try:
            os.unlink("/workspace/race/secret")
            os.rmdir("/workspace/race")
        except OSError:
            pass
"""


def state_of(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All that a call could have changed: what is there, whose it is, its mode and its content."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        info = path.lstat()
        found[str(path)] = (info.st_mode, info.st_uid, info.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found


async def attempt(call: Call, computer: Computer, path: str, bait: Bait) -> None:
    """Whatever the call answers, it is not the host's secret."""
    try:
        async with asyncio.timeout(30):
            answer = await call(computer, path)
    except FreeholdError as error:
        answer = error.message
    assert bait.token not in repr(answer)


@pytest.mark.parametrize("name", CALLS)
async def test_a_planted_link_leads_nowhere_but_inside(name: str, bait: Bait, computer: Computer) -> None:
    """To the secret, to its folder, up and out, through /proc: no call reads or changes anything on the host."""
    before = state_of(bait.folder)
    secret, folder = str(bait.folder / "secret"), str(bait.folder)
    for target in (
        secret,
        folder,
        "../../../.." + secret,
        "/proc/1/root" + secret,
        "/proc/self/root" + folder,
        "/proc/1/cwd",
    ):
        await computer.run(["sh", "-c", 'rm -rf link own moved copied; echo own > own; ln -s "$1" link', "sh", target])
        await attempt(CALLS[name], computer, "/workspace/link", bait)
    for path in (secret, folder, "../../../.." + secret):
        await attempt(CALLS[name], computer, path, bait)
    assert state_of(bait.folder) == before
    assert (await computer.run(["echo", "here"])).stdout == b"here\n"


async def test_links_exchanged_during_the_calls_lead_nowhere_either(
    bait: Bait, computer: Computer, bystander: Computer
) -> None:
    """A program swaps a folder, a link and a hard link as fast as it can while every call is made again and again."""
    before = state_of(bait.folder)
    await computer.run("rm -rf /workspace/* && echo own > /workspace/own")
    targets = [str(bait.folder), str(bait.folder / "secret"), "../../../.." + str(bait.folder), "/proc/1/root/tmp"]
    racer = await computer.spawn(["python3", "-c", RACER, *targets])
    try:
        assert await racer.stdout.read() == b"racing\n"
        for _ in range(12):
            for call in CALLS.values():
                await attempt(call, computer, "/workspace/race", bait)
    finally:
        racer.kill()
        await racer.wait()
    assert state_of(bait.folder) == before
    assert (await computer.run(["echo", "here"])).stdout == b"here\n"
    assert (await bystander.run(["echo", "here"])).stdout == b"here\n"


@pytest.mark.parametrize("source", ["/usr/bin/env", "/etc/passwd", "/opt/freehold/guest.pyz"])
async def test_a_second_name_for_a_system_file_cannot_be_made(source: str, computer: Computer) -> None:
    """Hard links do not cross from the system into the persistent folders."""
    assert not (await computer.run(["ln", source, "/workspace/second"])).ok


@pytest.mark.parametrize(
    "make", ["mkfifo odd", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"odd\")'", "ln -s /dev/zero odd", "ln -s odd odd"]
)  # fmt: skip
async def test_an_odd_file_hangs_nobody(make: str, bait: Bait, computer: Computer) -> None:
    """A pipe without a writer, a socket, an endless device, a link to itself: each call ends, and the guest goes on."""
    for name in ("read", "append", "stat", "search", "copy from", "read_many", "chmod"):
        assert (await computer.run(f"rm -rf odd own copied; echo own > own; {make}")).ok
        path = "/workspace/odd"
        call: Call = (lambda c, p: c.files.read(p, limit=1 << 20)) if name == "read" else CALLS[name]
        if "zero" in make and name in ("copy from", "read_many"):
            continue
        await attempt(call, computer, path, bait)
        assert (await computer.run(["echo", "here"])).stdout == b"here\n"
