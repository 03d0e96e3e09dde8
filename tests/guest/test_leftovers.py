"""No file is seen that a killed guest was writing: it had no name, or the next guest removes it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.computer.machines import host_pid
from tests.support.condition import until

from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.guest import leftovers
from freehold.guest.files import Draft

NAME = ".freehold-0123456789ab"

WRITE_UNTIL_KILLED = """
import os, sys
from freehold.guest import files, leftovers

def wait(*given):
    print(flush=True)
    sys.stdin.read()

top, how = os.fsencode(sys.argv[1]), sys.argv[2]
leftovers.read_mounts = lambda: [(top, True)]
if how == "named":
    os.O_TMPFILE = os.O_DIRECTORY  # as on a file system that cannot make a file without a name
draft = files.Draft(top + b"/below")
os.write(draft.descriptor, b"half")
if how == "renamed":
    os.rename = wait
    draft.move(top + b"/below/file", replace=True)
wait()
"""


def sweep(folder: Path) -> None:
    for _ in leftovers.remove_leftovers([(os.fsencode(folder), True)]):
        pass


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a mount, with a folder and a file in it."""
    monkeypatch.setattr(leftovers, "read_mounts", lambda: [(os.fsencode(tmp_path), True)])
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_text("old")
    return tmp_path


def read_tree(top: Path) -> list[str]:
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


@pytest.mark.parametrize("existing", [True, False])
async def test_a_write_that_is_cut_by_kill_9_leaves_no_name(tmp_path: Path, existing: bool) -> None:
    folders = {name: tmp_path / name for name in ("workspace", "home")}
    for folder in folders.values():
        folder.mkdir()
    if existing:
        (folders["workspace"] / "upload").write_text("old")
    begun, killed = asyncio.Event(), asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 100_000
        begun.set()
        await killed.wait()
        yield b"x"

    async with Computer.start(workspace=folders["workspace"], home=folders["home"]) as computer:
        writing = asyncio.ensure_future(computer.files.write("upload", pieces()))
        await begun.wait()
        await computer.files.list()  # answered after the request to write has arrived
        os.kill(host_pid(computer), signal.SIGKILL)
        killed.set()
        with pytest.raises(FreeholdError):
            await writing
    assert read_tree(folders["workspace"]) == (["upload"] if existing else [])


@pytest.mark.parametrize(("how", "named"), [("unnamed", 0), ("named", 1), ("renamed", 1)])
def test_the_next_guest_removes_what_a_killed_one_left(top: Path, how: str, named: int) -> None:
    """`named`: the file system has no files without a name. `renamed`: just before it takes the place of the old file."""
    command = [sys.executable, "-c", WRITE_UNTIL_KILLED, str(top), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        sweep(top)  # another guest on the same folder starts meanwhile, and leaves it alone
        assert len(read_tree(top)) == 2 + named
        process.send_signal(signal.SIGKILL)
    assert len(read_tree(top)) == 2 + named
    sweep(top)
    assert read_tree(top) == ["below", "below/file"]
    assert (top / "below" / "file").read_text() == "old"


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("writable", [True, False])
def test_a_draft_takes_the_place_of_a_file(
    top: Path, unnamed: bool, writable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the file system has no files without a name, and where the top of the mount is none to write to."""
    if not unnamed:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)
    if not writable:
        monkeypatch.setattr(leftovers, "find_top", lambda folder: b"/proc")
    for name in ("file", "new"):
        draft = Draft(os.fsencode(top / "below"))
        os.write(draft.descriptor, b"whole")
        draft.move(os.fsencode(top / "below" / name), replace=True)
        draft.close()
        assert (top / "below" / name).read_text() == "whole"
    assert read_tree(top) == ["below", "below/file", "below/new"]


async def test_an_error_names_the_path_and_never_a_spare_name(computer: Computer) -> None:
    await computer.run("mkdir shut full; chmod 0555 shut; touch full/x")
    for path in ("missing/file", "shut/file", "full", "/workspace/full/x/file"):
        with pytest.raises(FreeholdError) as caught:
            await computer.files.write(path, b"x")
        assert leftovers.PREFIX.decode() not in str(caught.value)
    assert (await computer.run("ls -A")).stdout.split() == [b"full", b"shut"]


def test_only_files_with_the_name_of_a_draft_are_removed(top: Path) -> None:
    kept = (".freehold-restore-1", ".freehold-0123456789aB", ".freehold-0123456789abc", "freehold-0123456789ab")
    for name in (*kept, NAME):
        (top / name).write_text("")
    (top / ".freehold-0123456789ac").mkdir()
    (top / ".freehold-0123456789ad").symlink_to("below/file")
    os.mkfifo(top / ".freehold-0123456789ae")
    sweep(top)
    assert {path.name for path in top.iterdir()} == {
        "below",
        ".freehold-0123456789ac",
        ".freehold-0123456789ad",
        ".freehold-0123456789ae",
        *kept,
    }


async def test_a_computer_removes_leftovers_when_it_starts(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("workspace", "home")}
    for folder in folders.values():
        folder.mkdir()
        (folder / NAME).write_text("half")
    async with Computer.start(workspace=folders["workspace"], home=folders["home"]) as computer:
        await until(lambda: not any(NAME in read_tree(folder) for folder in folders.values()))
        assert (await computer.run("ls -A")).stdout == b""


def test_mounts_whose_files_end_with_the_computer_or_that_may_wait_for_a_network_are_not_searched() -> None:
    lines = [
        b"36 35 98:0 /w /workspace rw,noatime shared:1 - ext4 /dev/root rw",
        b"37 35 98:0 /u /usr ro,noatime - ext4 /dev/root rw",
        b"38 35 0:5 / /tmp rw,nosuid - tmpfs tmpfs rw",
        b"39 35 98:0 /m /workspace/a\\040b rw - virtiofs share rw",
        b"40 35 0:50 / /workspace/remote rw - fuse.rclone remote: rw",
    ]
    assert list(leftovers.parse_mounts(lines)) == [
        (b"/workspace", True),
        (b"/tmp", False),
        (b"/workspace/a b", True),
        (b"/workspace/remote", False),
    ]


def test_a_spare_name_is_at_the_top_of_the_mount_that_has_the_folder(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = os.fsencode(top / "below")
    remote = inner + b"/remote"
    mounts = [(b"/", True), (os.fsencode(top), True), (inner, True), (remote, False)]
    monkeypatch.setattr(leftovers, "read_mounts", lambda: mounts)
    (top / "below" / "deep").mkdir()
    (top / "link").symlink_to("below/deep")
    (top / "below2").mkdir()
    assert leftovers.find_top(inner + b"/deep") == leftovers.find_top(os.fsencode(top / "link")) == inner
    assert leftovers.find_top(os.fsencode(top / "below2")) == os.fsencode(top)
    assert leftovers.find_top(b"/usr") == b"/"
    assert leftovers.find_top(remote + b"/deep") == remote + b"/deep"
