"""SFTP: all requests of the protocol, from OpenSSH, from asyncssh, and from a hostile client."""

import os
import stat
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, SshServerProcess, run_ssh

from freehold.ssh.inside import sftp


@pytest.fixture
async def client(server: SshServerProcess, key: ClientKey) -> AsyncIterator[asyncssh.SFTPClient]:
    folder = key.config.parent
    async with (
        asyncssh.connect(
            "127.0.0.1",
            server.port,
            username="agent",
            client_keys=[(str(folder / "id"), str(folder / "id-cert.pub"))],
            known_hosts=None,
            config=[],
        ) as connection,
        connection.start_sftp_client() as found,
    ):
        await found.mkdir("playground")
        await found.chdir("playground")
        yield found
        await found.chdir("/workspace")
        await found.rmtree("playground")


async def test_files_are_read_and_written_at_any_offset(client: asyncssh.SFTPClient) -> None:
    async with client.open("one", "wb") as file:
        await file.write(b"x" * 1000)
        await file.seek(500)
        await file.write(b"middle")
    async with client.open("one", "rb", encoding=None) as file:
        await file.seek(498)
        assert await file.read(10) == b"xxmiddlexx"  # type: ignore[comparison-overlap]
    async with client.open("one", "ab") as file:
        await file.write(b"end")
    assert await client.getsize("one") == 1003
    await client.truncate("one", 3)
    async with client.open("one", "rb", encoding=None) as file:
        assert await file.read() == b"xxx"  # type: ignore[comparison-overlap]
        await file.fsync()


async def test_attributes_are_set_and_seen(client: asyncssh.SFTPClient) -> None:
    async with client.open("one", "wb") as file:
        await file.write(b"1")
    await client.chmod("one", 0o640)
    await client.utime("one", (1_000_000_000, 1_100_000_000))
    found = await client.stat("one")
    assert found.permissions is not None
    assert (stat.S_IMODE(found.permissions), found.atime, found.mtime) == (0o640, 1_000_000_000, 1_100_000_000)
    with pytest.raises(asyncssh.SFTPError):
        await client.chown("one", 0, 0)


async def test_files_are_created_moved_linked_and_removed(client: asyncssh.SFTPClient, key: ClientKey) -> None:
    async with client.open("one", "wb") as file:
        await file.write(b"1")
    await client.symlink("one", "link")
    assert await client.readlink("link") == "one"
    assert await client.realpath("link") == "/workspace/playground/one"
    await client.link("one", "hard")
    assert (await client.stat("hard")).size == 1
    with pytest.raises(asyncssh.SFTPFailure):
        await client.rename("hard", "one")
    await client.remove("hard")
    async with client.open("other", "wb") as file:
        await file.write(b"22")
    await client.posix_rename("other", "one")
    assert (await client.stat("one")).size == 2
    await client.mkdir("folder")
    with pytest.raises(asyncssh.SFTPFailure):
        await client.mkdir("folder")
    await client.rename("one", "folder/moved")
    assert sorted(await client.listdir(".")) == [".", "..", "folder", "link"]
    with pytest.raises(asyncssh.SFTPNoSuchFile):
        await client.stat("link")
    assert stat.S_ISLNK((await client.lstat("link")).permissions or 0)
    await client.remove("link")
    with pytest.raises(asyncssh.SFTPFailure):
        await client.rmdir("folder")
    with pytest.raises(asyncssh.SFTPNoSuchFile):
        await client.remove("nothing")


async def test_statvfs_limits_and_home_are_reported(client: asyncssh.SFTPClient) -> None:
    assert (await client.statvfs(".")).blocks > 0
    assert client.limits.max_read_len == sftp.MAX_DATA
    async with client.open("one", "wb") as file:
        assert (await file.statvfs()).bsize > 0
    await client.remote_copy("one", "two")
    assert await client.exists("two")


async def test_a_large_folder_is_listed_completely(client: asyncssh.SFTPClient, key: ClientKey) -> None:
    run_ssh(key, "cd playground && seq 1 3000 | xargs touch", check=True)
    assert len(await client.listdir(".")) == 3002


def test_the_openssh_client_works(key: ClientKey, tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_text("deep\n")
    (tmp_path / "tree" / "deep" / "file").chmod(0o750)
    words = f"""mkdir tree
put -rp {tmp_path}/tree .
ls -la tree/deep
chmod 600 tree/deep/file
ln -s file tree/deep/link
ln tree/deep/file tree/deep/hard
rename tree/deep/hard tree/deep/harder
ls -l tree/deep/link
df .
get -rp tree {tmp_path}/back
rm tree/deep/*
rmdir tree/deep
rmdir tree
"""
    done = subprocess.run(
        ["sftp", "-q", "-F", str(key.config), "-b", "-", "computer"],
        input=words,
        capture_output=True,
        text=True,
        timeout=SSH_TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rwxr-x---" in done.stdout
    back = tmp_path / "back" / "deep"
    assert (back / "harder").read_text() == "deep\n"
    assert stat.S_IMODE((back / "file").stat().st_mode) == 0o600


def test_no_path_leads_out_of_the_computer(server: SshServerProcess, key: ClientKey) -> None:
    """The server runs in the computer, so it can open only what the agent can open, with links or without."""
    run_ssh(key, "ln -s / root-link; ln -s /proc/1/root/etc etc-link", check=True)
    for path in (
        str(server.home.vault / "ssh" / "authority"),
        f"root-link{server.home.vault}/ssh/host",
        "etc-link/shadow",
    ):
        done = subprocess.run(
            ["sftp", "-q", "-F", str(key.config), f"computer:{path}", "/dev/null"],
            capture_output=True,
            timeout=SSH_TIMEOUT,
        )
        assert done.returncode != 0
    run_ssh(key, "rm root-link etc-link", check=True)


def packet(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I", len(body)) + body


@given(st.binary(max_size=200))
def test_any_packet_gets_a_reply(body: bytes) -> None:
    """Requests that could change a file by chance are left out."""
    if body and body[0] in (3, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 18, 20, 200) and len(body) > 5:
        body = body[:1] + body[1:5] + struct.pack(">I", 0xFFFFFFF0) + body[9:]
    answer = sftp.SftpServer().reply(body)
    assert not body or answer[4] in (2, 101, 102, 103, 104, 105, 201)


@pytest.mark.parametrize("length", [sftp.MAX_PACKET + 1025, 0xFFFFFFFF])
def test_a_packet_that_is_too_long_ends_the_server(length: int) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", sftp.__file__],
        input=packet(b"\x01", struct.pack(">I", 3)) + struct.pack(">I", length),
        capture_output=True,
        timeout=SSH_TIMEOUT,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout[4] == 2


def test_handles_are_bounded(tmp_path: Path) -> None:
    server = sftp.SftpServer()
    name = os.fsencode(tmp_path)
    for number in range(sftp.MAX_HANDLES + 1):
        request = struct.pack(">BI", 11, number) + struct.pack(">I", len(name)) + name
        answer = server.reply(request)
    assert answer[4] == 101
