"""The side door as a running thing: listens, lets in, and shows out whose key no longer holds."""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import asyncssh

from freehold import __version__
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.sessions import Sessions
from freehold.identity.tokens import Tokens
from freehold.keeper.client import KeeperClient
from freehold.ssh.credentials import Credentials
from freehold.ssh.gate import Gate, GateLimits
from freehold.ssh.keys import authority_path, ensure_keys, host_key_path, read_private, read_public
from freehold.ssh.line import Line
from freehold.ssh.record import Journal, Marks
from freehold.ssh.visit import SideDoor, Visit
from freehold.ssh.warrant import Warrants
from freehold.timeline import Timeline

log = logging.getLogger(__name__)

# Each is without a known weakness; the first two also against a quantum computer of tomorrow.
KEY_EXCHANGES = ("mlkem768x25519-sha256", "sntrup761x25519-sha512", "curve25519-sha256", "curve25519-sha256@libssh.org")
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")
SIGNATURES = ("ssh-ed25519", "sk-ssh-ed25519@openssh.com", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")
LOGIN_GRACE = 20.0
KEEPALIVE = 30.0
KEEPALIVES_MISSED = 4
REKEY_BYTES = 1 << 30
LOOK_EVERY = 0.25
# Certificates and sessions also end by themselves; nobody announces that.
LOOK_AT_ALL_EVERY = 8
BACKLOG = 512


@dataclass(frozen=True)
class SshSettings:
    """What the manifest says of the side door, and how patient it is."""

    host: str
    port: int
    forwarding: bool
    owner: str | None
    session_idle: float
    session_absolute: float
    login_grace: float = LOGIN_GRACE
    rekey_bytes: int = REKEY_BYTES
    gate: GateLimits = field(default_factory=GateLimits)


@dataclass(frozen=True)
class Serving:
    """A door that is open. `port` is the one it really listens on."""

    port: int
    door: SideDoor


def socket_path(home: Home) -> str:
    """Where the keeper asks whether the server lives: flooding the door itself cannot make that look otherwise."""
    return str(home.run / "ssh.sock")


@asynccontextmanager
async def serve(home: Home, settings: SshSettings, computer: Computer) -> AsyncIterator[Serving]:
    """Listening until the block ends."""
    await asyncio.to_thread(ensure_keys, home)
    with (
        Timeline(home.timeline) as timeline,
        Sessions(
            home.identity, owner=settings.owner, idle=settings.session_idle, absolute=settings.session_absolute
        ) as sessions,
        Tokens(home.identity, owner=settings.owner) as tokens,
    ):
        credentials = Credentials(timeline)
        warrants = Warrants(credentials, sessions, tokens, read_public(authority_path(home)))
        journal = Journal(timeline)
        gate = Gate(settings.gate)
        gate.know_owner(warrants.owner_addresses())
        async with asyncio.TaskGroup() as keeping:
            writing = keeping.create_task(journal.run())
            try:
                async with asyncio.TaskGroup() as group:
                    door = SideDoor(
                        computer, warrants, journal, Marks(KeeperClient(home)), gate, group, set(), settings.forwarding
                    )
                    tasks = [group.create_task(_watch(door)), group.create_task(_follow_revocations(timeline, door))]
                    server = await _listen(home, settings, door)
                    answering = await _answer_probes(home, door)
                    try:
                        yield Serving(server.sockets[0].getsockname()[1], door)
                    finally:
                        for listener in (server, answering):
                            listener.close()
                        for visit in list(door.visits):
                            visit.end("Freehold is stopping")
                        for task in (*tasks, *door.work):
                            task.cancel()
            finally:
                writing.cancel()


async def _listen(home: Home, settings: SshSettings, door: SideDoor) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    host_key = asyncssh.import_private_key(read_private(host_key_path(home)))
    options = await asyncssh.SSHServerConnectionOptions.construct(
        server_factory=lambda: Visit(door),
        server_host_keys=[host_key],
        server_version=f"Freehold_{__version__}",
        kex_algs=[name for name in KEY_EXCHANGES if name.encode() in asyncssh.kex.get_kex_algs()],
        encryption_algs=list(CIPHERS),
        mac_algs=list(MACS),
        compression_algs=["none"],
        signature_algs=list(SIGNATURES),
        login_timeout=settings.login_grace,
        keepalive_interval=KEEPALIVE,
        keepalive_count_max=KEEPALIVES_MISSED,
        rekey_bytes=settings.rekey_bytes,
        gss_host=None,
        agent_forwarding=False,
        x11_forwarding=False,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        line_editor=False,
        encoding=None,
    )
    try:
        return await loop.create_server(
            lambda: Line(loop, options), settings.host, settings.port, backlog=BACKLOG, reuse_address=True
        )
    except OSError as error:
        raise FreeholdError(
            "ssh.cannot-listen",
            f"Cannot listen on {settings.host} port {settings.port} (ssh.port): {error.strerror or error}",
            hint="Choose another ssh.port in freehold.toml, or set ssh.enabled = false",
        ) from None


async def _answer_probes(home: Home, door: SideDoor) -> asyncio.Server:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(json.dumps({"connected": door.gate.connected, "waiting": door.gate.waiting}).encode() + b"\n")
            await writer.drain()
            writer.close()

    path = socket_path(home)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - a socket that a killed server left behind
    return await asyncio.start_unix_server(answer, path)


async def _watch(door: SideDoor) -> None:
    """Signing out ends what was opened with it, within half a second; so does the end of a certificate."""
    known, rounds = door.warrants.revision(), 0
    while True:
        await asyncio.sleep(LOOK_EVERY)
        rounds += 1
        current = door.warrants.revision()
        if current != known or rounds % LOOK_AT_ALL_EVERY == 0:
            known = current
            await _end_those_that_do_not_hold(door)


async def _follow_revocations(timeline: Timeline, door: SideDoor) -> None:
    async with aclosing(
        timeline.follow(kinds=["ssh.credential_revoked", "ssh.certificate_issued", "ssh.key_issued"])
    ) as events:
        async for event in events:
            if event.kind == "ssh.credential_revoked":
                await _end_those_that_do_not_hold(door)
            else:
                door.gate.know_owner(await asyncio.to_thread(door.warrants.owner_addresses))


async def _end_those_that_do_not_hold(door: SideDoor) -> None:
    for visit in list(door.visits):
        if visit.credential is None or not await asyncio.to_thread(door.warrants.holds, visit.credential):
            visit.note("ssh.connection_ended", {"why": "its key no longer holds"})
            visit.end("This key has ended or was revoked")
