"""Mounts that are made from something else: archives, commits, memory. Each attack on the unpacking is refused."""

import io
import os
import stat
import subprocess
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from freehold.computer import Computer, Mount
from freehold.computer.contract.spec import MIB, ComputerSpec, MemoryMount
from freehold.computer.library.launch import launch
from freehold.computer.mounts import unpacked
from freehold.computer.mounts.archive import unpack_archive
from freehold.computer.mounts.git_tree import provide_commit
from freehold.computer.mounts.unpacked import UnpackedFolders
from freehold.errors import FreeholdError

FILES = {"one": b"first", "folder/two": b"second"}


def make_tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in FILES.items():
            head = tarfile.TarInfo(name)
            head.size, head.mode = len(content), 0o755 if name == "one" else 0o600
            tar.addfile(head, io.BytesIO(content))
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


def make_zip(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in FILES.items():
            packed.writestr(name, content)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    head = tarfile.TarInfo(name)
    head.type, head.linkname = kind, target
    return head


@pytest.mark.parametrize(("make", "name"), [(make_tar, "a.tar.gz"), (make_zip, "a.zip")])
async def test_an_archive_is_seen_as_a_read_only_folder(
    tmp_path: Path, make: Callable[[Path], Path], name: str
) -> None:
    folder = unpack_archive(make(tmp_path / name), UnpackedFolders(tmp_path / "mounts"))
    async with Computer.start(mounts=[Mount(folder, "/mnt/archive")]) as computer:
        assert (await computer.run("cat /mnt/archive/one /mnt/archive/folder/two")).stdout == b"firstsecond"
        assert not (await computer.run("echo x > /mnt/archive/one")).ok


def test_an_archive_is_unpacked_once_until_it_changes(tmp_path: Path) -> None:
    folders = UnpackedFolders(tmp_path / "mounts")
    archive = make_tar(tmp_path / "a.tar.gz")
    first = unpack_archive(archive, folders)
    marked = first.stat().st_ino
    assert unpack_archive(archive, folders).stat().st_ino == marked
    os.utime(archive, ns=(1, 1))
    again = UnpackedFolders(tmp_path / "mounts")
    second = unpack_archive(archive, again)
    assert second != first
    again.remove_others()
    assert list((tmp_path / "mounts").iterdir()) == [second]


def test_a_tar_whose_last_file_is_a_zip_is_a_tar(tmp_path: Path) -> None:
    """The list of a zip is at its end, so this tar ends as a zip does."""
    packed = make_zip(tmp_path / "inner.zip")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(packed, "inner.zip")
    folder = unpack_archive(tmp_path / "a.tar", UnpackedFolders(tmp_path / "mounts"))
    assert [path.name for path in folder.iterdir()] == ["inner.zip"]
    assert (folder / "inner.zip").read_bytes() == packed.read_bytes()


def test_a_zip_with_a_tar_in_it_and_one_behind_a_program_are_zips(tmp_path: Path) -> None:
    tar = make_tar(tmp_path / "inner.tar.gz")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.write(tar, "inner.tar.gz")
    (tmp_path / "b.zip").write_bytes(b"#!/bin/sh\nexit 1\n" + (tmp_path / "a.zip").read_bytes())
    for archive in (tmp_path / "a.zip", tmp_path / "b.zip"):
        folder = unpack_archive(archive, UnpackedFolders(tmp_path / f"mounts-{archive.name}"))
        assert [path.name for path in folder.iterdir()] == ["inner.tar.gz"]


@pytest.mark.parametrize(
    "attack",
    [
        (member("../out"),),
        (member("/etc/out"),),
        (member("folder/../../out"),),
        (member("link", tarfile.SYMTYPE, "/"), member("link/out")),
        (member("link", tarfile.SYMTYPE, ".."), member("link/out")),
        (member("device", tarfile.CHRTYPE),),
        (member("pipe", tarfile.FIFOTYPE),),
        (member("hard", tarfile.LNKTYPE, "/etc/passwd"),),
        (member("one/below"),),
        (member("x" * 300),),
    ],
    ids=lambda members: members[-1].name[:20] + members[-1].type.decode(),
)
def test_no_entry_of_an_archive_leaves_its_folder(tmp_path: Path, attack: tuple[tarfile.TarInfo, ...]) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", *attack)
    with pytest.raises(FreeholdError) as caught:
        unpack_archive(archive, UnpackedFolders(tmp_path / "mounts"))
    assert caught.value.code == "computer.mount-refused"
    assert not list((tmp_path / "mounts").iterdir()), "nothing is left"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "mounts"]


def test_a_link_in_an_archive_stays_a_link(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tar.gz", member("link", tarfile.SYMTYPE, "/etc/passwd"))
    folder = unpack_archive(archive, UnpackedFolders(tmp_path / "mounts"))
    assert (folder / "link").readlink() == Path("/etc/passwd")


@pytest.mark.parametrize("size", [0, unpacked.MAX_LINK + 1, 64 * MIB])
def test_a_link_that_no_system_takes_is_refused_and_not_unpacked_whole(tmp_path: Path, size: int) -> None:
    head = zipfile.ZipInfo("link")
    head.external_attr = (stat.S_IFLNK | 0o777) << 16
    head.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr(head, b"a" * size)
    tracemalloc.start()
    try:
        with pytest.raises(FreeholdError, match="the link 'link' is empty, has a zero byte or more than 4095 bytes"):
            unpack_archive(tmp_path / "a.zip", UnpackedFolders(tmp_path / "mounts"))
        assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    finally:
        tracemalloc.stop()


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked, "MAX_BYTES", 10_000)
    bomb = member("bomb")
    bomb.size = 100_000
    with pytest.raises(FreeholdError, match="larger than"):
        unpack_archive(make_tar(tmp_path / "a.tar.gz", bomb), UnpackedFolders(tmp_path / "mounts"))
    assert not list((tmp_path / "mounts").iterdir())


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b broken", b"PK\x03\x04 broken"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(FreeholdError, match="cannot be mounted"):
        unpack_archive(tmp_path / "file", UnpackedFolders(tmp_path / "mounts"))
    with pytest.raises(FreeholdError, match="There is no archive"):
        unpack_archive(tmp_path / "none", UnpackedFolders(tmp_path / "mounts"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "tool").write_text("#!/bin/sh\necho first\n")
    (folder / "tool").chmod(0o755)
    (folder / "link").symlink_to("tool")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", "v1")
    (folder / "tool").write_text("#!/bin/sh\necho second\n")
    git(folder, "commit", "-qam", "two")
    return folder


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, "-C", folder, *words], check=True, capture_output=True)


async def test_a_commit_is_seen_as_a_read_only_folder(repository: Path, tmp_path: Path) -> None:
    folder = provide_commit(repository, "v1", UnpackedFolders(tmp_path / "mounts"))
    assert not (folder / ".git").exists()
    async with Computer.start(mounts=[Mount(folder, "/mnt/code")]) as computer:
        assert (await computer.run("/mnt/code/link")).stdout == b"first\n"
        assert not (await computer.run("touch /mnt/code/x")).ok
    assert provide_commit(repository, "main", UnpackedFolders(tmp_path / "mounts")) != folder


@pytest.mark.parametrize("name", ["v2", "", "--upload-pack=touch", "main:tool", "v1..main"])
def test_an_unknown_commit_is_refused(repository: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(FreeholdError) as caught:
        provide_commit(repository, name, UnpackedFolders(tmp_path / "mounts"))
    assert caught.value.code == "computer.mount-missing"


def test_a_link_of_a_commit_that_no_system_takes_is_refused(repository: Path, tmp_path: Path) -> None:
    (repository / "long").write_bytes(b"a" * (unpacked.MAX_LINK + 1))
    written = ["git", "-C", str(repository), "hash-object", "-w", "long"]
    number = subprocess.run(written, check=True, capture_output=True, text=True).stdout.strip()
    git(repository, "update-index", "--add", "--cacheinfo", f"120000,{number},long")
    git(repository, "commit", "-qm", "long")
    with pytest.raises(FreeholdError, match="the link 'long' is empty, has a zero byte or more than 4095 bytes"):
        provide_commit(repository, "main", UnpackedFolders(tmp_path / "mounts"))


def test_a_repository_cannot_run_programs_on_the_host(repository: Path, tmp_path: Path) -> None:
    """Its configuration names a program for each thing that git may run; reading a commit runs none."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "filter.x.smudge", "filter.x.process", "diff.x.textconv"):  # fmt: skip
        git(repository, "config", name, str(trap))
    git(repository, "config", "core.hooksPath", str(tmp_path))
    (repository / ".git/info/attributes").write_text("* filter=x diff=x export-subst\n")
    provide_commit(repository, "main", UnpackedFolders(tmp_path / "mounts"))
    assert not (tmp_path / "sprung").exists()


async def test_a_folder_in_memory_is_writable_up_to_its_size_and_gone_at_the_end(tmp_path: Path) -> None:
    for part in ("workspace", "home"):
        (tmp_path / part).mkdir()
    spec = ComputerSpec(
        tmp_path / "workspace", tmp_path / "home", memory_mounts=(MemoryMount("/mnt/scratch", 2 * MIB),)
    )
    for _ in range(2):
        machine = await launch(spec, tmp_path / "link")
        try:
            async with Computer.connect(machine.transport) as computer:
                assert (await computer.run("ls -A /mnt/scratch && head -c 1M /dev/zero > /mnt/scratch/a")).stdout == b""
                assert not (await computer.run("head -c 3M /dev/zero > /mnt/scratch/b")).ok
                assert (await computer.run("stat -c %s /mnt/scratch/a")).stdout == b"1048576\n"
        finally:
            await machine.stop(0)
