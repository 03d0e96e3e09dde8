"""SFTP packets of every kind with random and broken fields. Each is answered once, in bounds, and harms nobody else."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import asyncssh
from tests.attack.target import RunRound
from tests.ssh.ssh_server import SshServerProcess, run_ssh_server

from freehold.ssh.inside.sftp import MAX_REQUEST

INPUTS = 60
REPLY_TIMEOUT = 30
REPLIES = {101, 102, 103, 104, 105, 201}
NUMBERS = (0, 1, 2, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1)
LARGE = (*NUMBERS, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
NAMES = (
    b"",
    b".",
    b"..",
    b"a",
    b"folder",
    b"folder/b",
    b"link",
    b"/",
    b"//etc//passwd",
    b"../../../../../../etc/shadow",
    b"/proc/self/root/etc/hostname",
    b"/proc/1/environ",
    b"/dev/null",
    b"\0",
    b"a\0b",
    b"\xff\xfe",
    b"x" * 255,
    b"x" * 256,
    b"y/" * 2100,
    b"~",
    b"~root",
)
EXTENDED = (
    b"posix-rename@openssh.com",
    b"statvfs@openssh.com",
    b"fstatvfs@openssh.com",
    b"hardlink@openssh.com",
    b"fsync@openssh.com",
    b"lsetstat@openssh.com",
    b"limits@openssh.com",
    b"expand-path@openssh.com",
    b"copy-data",
    b"home-directory",
    b"unknown@example.org",
    b"",
)


def string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


OPEN_WORKSPACE = string(struct.pack(">BI", 9, 1) + string(b"/workspace") + struct.pack(">II", 4, 0o755))
OPENED = struct.pack(">BII", 101, 1, 0) + string(b"") + string(b"")


def attributes(random: Random) -> bytes:
    flags = random.choice((0, 1, 2, 4, 8, 15, 0x80000000, 2**32 - 1))
    fields = struct.pack(">I", flags)
    fields += struct.pack(">Q", random.choice((0, 10, 2**40))) if flags & 1 else b""
    for flag in (2, 8):
        fields += struct.pack(">II", random.choice(NUMBERS), random.choice(NUMBERS)) if flags & flag else b""
    fields += struct.pack(">I", random.choice((0o600, 0o777, 0o4755, 2**32 - 1))) if flags & 4 else b""
    return fields + (struct.pack(">I", random.choice((0, 1, 2**32 - 1))) if flags & 0x80000000 else b"")


def make_fields(random: Random, kind: int, handles: list[bytes]) -> bytes:
    """The fields of one request, as a client that knows the protocol would write them, with any values."""
    name, other = string(random.choice(NAMES)), string(random.choice(NAMES))
    handle = string(random.choice([*handles, b"", b"0", b"\xff" * 4, b"9" * 300]))
    place = struct.pack(">Q", random.choice(LARGE))
    match kind:
        case 3:
            return name + struct.pack(">I", random.choice((1, 2, 3, 8, 10, 26, 42, 2**32 - 1))) + attributes(random)
        case 5:
            return handle + place + struct.pack(">I", random.choice(NUMBERS))
        case 6:
            small = struct.pack(">Q", random.choice((0, 1, 4096)))
            return handle + small + string(random.randbytes(random.choice((0, 1, 1000, 40_000))))
        case 4 | 8 | 12:
            return handle
        case 10:
            return handle + attributes(random)
        case 9 | 14:
            return name + attributes(random)
        case 18 | 20:
            return name + other
        case 200:
            return string(random.choice(EXTENDED)) + random.choice(
                (name + other, handle, handle + place * 2 + handle, b"")
            )
        case _:
            return name


def make_packet(random: Random, request: int, handles: list[bytes]) -> bytes:
    kind = random.choice((*range(3, 21), 200, 0, 2, 21, 99, 101, 255))
    body = bytearray(struct.pack(">BI", kind, request) + make_fields(random, kind, handles))
    fate = random.random()
    if fate < 0.1 and len(body) > 6:
        del body[random.randrange(5, len(body)) :]
    elif fate < 0.25:
        for _ in range(random.choice((1, 3, 9))):
            body[random.randrange(5, len(body)) if len(body) > 5 else 0] ^= 1 << random.randrange(8)
    elif fate < 0.3:
        body += random.randbytes(random.choice((1, 64, 4096)))
    return struct.pack(">I", len(body)) + bytes(body)


class SftpSession:
    """One SFTP session, byte by byte."""

    def __init__(self, process: "asyncssh.SSHClientProcess[bytes]") -> None:
        self._process = process

    async def send(self, packet: bytes) -> bytes | None:
        """The reply without its length; None when the server has ended the session."""
        try:
            self._process.stdin.write(packet)
            async with asyncio.timeout(REPLY_TIMEOUT):
                (length,) = struct.unpack(">I", await self._process.stdout.readexactly(4))
                assert 5 <= length <= MAX_REQUEST, f"a reply of {length} bytes to {packet[:200]!r}"
                return await self._process.stdout.readexactly(length)
        except (asyncio.IncompleteReadError, BrokenPipeError, asyncssh.Error):
            return None


@asynccontextmanager
async def open_session(connection: asyncssh.SSHClientConnection) -> AsyncIterator[SftpSession]:
    process = await connection.create_process(subsystem="sftp", encoding=None)
    try:
        session = SftpSession(process)
        greeting = await session.send(struct.pack(">IBI", 5, 1, 3))
        assert greeting is not None
        assert greeting[:5] == struct.pack(">BI", 2, 3), "the server does not answer a greeting"
        yield session
    finally:
        process.close()


async def run_inputs(connection: asyncssh.SSHClientConnection, random: Random) -> int:
    sent = 0
    while sent < INPUTS:
        handles: list[bytes] = []
        async with open_session(connection) as session:
            while sent < INPUTS:
                request = random.randrange(2**32)
                packet = make_packet(random, request, handles)
                sent += 1
                reply = await session.send(packet)
                if reply is None:
                    break  # it may end a session that breaks the protocol; the next must work
                kind, answered = struct.unpack_from(">BI", reply)
                assert kind in REPLIES, f"a reply of kind {kind} to {packet[:200]!r}"
                assert answered == request, f"a reply to request {answered} instead of {request}"
                if kind == 102:
                    handles = [*handles[-20:], reply[9:]]
    return sent


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    with run_ssh_server(folder / "ssh") as server:
        canary = server.home.root / "canary"
        canary.write_text("untouched")
        client = server.issue().config.parent

        async def run_round(random: Random) -> int:
            async with _connect(server, client) as neighbour, open_session(neighbour) as calm:
                # A former round may have locked the workspace. SFTP is a way to open it again.
                assert await calm.send(OPEN_WORKSPACE) == OPENED, "the workspace cannot be opened again"
                async with _connect(server, client) as connection:
                    sent = await run_inputs(connection, random)
                stat = struct.pack(">BI", 17, 7) + string(b"/")
                reply = await calm.send(struct.pack(">I", len(stat)) + stat)
                assert reply is not None, "another session was harmed"
                assert reply[0] == 105
            assert server.process.poll() is None, "the SSH server has ended"
            assert canary.read_text() == "untouched"
            return sent

        yield run_round


@asynccontextmanager
async def _connect(server: SshServerProcess, client: Path) -> AsyncIterator[asyncssh.SSHClientConnection]:
    async with asyncssh.connect(
        "127.0.0.1",
        server.port,
        username="agent",
        client_keys=[(str(client / "id"), str(client / "id-cert.pub"))],
        known_hosts=None,
        config=[],
    ) as connection:
        yield connection
