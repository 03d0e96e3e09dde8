"""The SSH server: listens, accepts connections, and ends those whose credential is not valid any more."""

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import asyncssh

from freehold import __version__
from freehold.computer import Computer
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.identity.sign_ins import SignIns
from freehold.identity.tokens import ApiTokens
from freehold.keeper.client import KeeperClient
from freehold.ssh.activity_log import EventWriter, HistoryMarks
from freehold.ssh.connection import SshConnection, SshServerState
from freehold.ssh.connection_limiter import ConnectionLimiter, ConnectionLimits
from freehold.ssh.credential_check import CredentialCheck
from freehold.ssh.credentials import CredentialStore
from freehold.ssh.keys import authority_path, ensure_keys, host_key_path, read_private, read_public
from freehold.ssh.protocol import SshProtocol
from freehold.timeline import Timeline

log = logging.getLogger(__name__)

# None has a known weakness; the first also resists quantum computers.
KEY_EXCHANGES = (
    "mlkem768x25519-sha256",
    "curve25519-sha256",
    "curve25519-sha256@libssh.org",
)
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com")
SIGNATURES = ("ssh-ed25519", "sk-ssh-ed25519@openssh.com", "ecdsa-sha2-nistp256", "rsa-sha2-512", "rsa-sha2-256")
LOGIN_TIMEOUT = 20.0
KEEPALIVE_INTERVAL = 30.0
MAX_MISSED_KEEPALIVES = 4
REKEY_BYTES = 1 << 30
REVOCATION_POLL_INTERVAL = 0.25
# Certificates and sign-ins also expire, and no event announces that: every so many polls, all are checked.
POLLS_PER_FULL_CHECK = 8
BACKLOG = 512


@dataclass(frozen=True)
class SshSettings:
    """The settings of the manifest, and the limits that tests change."""

    host: str
    port: int
    forwarding: bool
    owner: str | None
    sign_in_idle: float
    sign_in_absolute: float
    login_timeout: float = LOGIN_TIMEOUT
    rekey_bytes: int = REKEY_BYTES
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    listeners: tuple[socket.socket, ...] = ()
    """Sockets that listen already, instead of host and port."""


@dataclass(frozen=True)
class RunningSshServer:
    """`port` is the port that the server listens on, also when port 0 was asked for."""

    port: int
    state: SshServerState


def socket_path(home: Home) -> str:
    """The socket for health probes. A flood of connections on the SSH port does not affect it."""
    return str(home.run / "ssh.sock")


@asynccontextmanager
async def serve(home: Home, settings: SshSettings, computer: Computer) -> AsyncIterator[RunningSshServer]:
    """Run the server until the block ends."""
    await asyncio.to_thread(ensure_keys, home)
    with (
        Timeline(home.timeline) as timeline,
        SignIns(
            home.identity, owner=settings.owner, idle=settings.sign_in_idle, absolute=settings.sign_in_absolute
        ) as sign_ins,
        ApiTokens(home.identity, owner=settings.owner) as tokens,
    ):
        credentials = CredentialStore(timeline)
        credential_check = CredentialCheck(credentials, sign_ins, tokens, read_public(authority_path(home)))
        event_writer = EventWriter(timeline)
        limiter = ConnectionLimiter(settings.connection_limits)
        limiter.add_owner_addresses(credential_check.owner_addresses())
        async with asyncio.TaskGroup() as outer:
            writer_task = outer.create_task(event_writer.run())
            try:
                async with asyncio.TaskGroup() as group:
                    state = SshServerState(
                        computer,
                        credential_check,
                        event_writer,
                        HistoryMarks(KeeperClient(home)),
                        limiter,
                        group,
                        set(),
                        settings.forwarding,
                    )
                    tasks = [
                        group.create_task(_watch_expiry(state)),
                        group.create_task(_follow_revocations(timeline, state)),
                    ]
                    servers = await _listen(home, settings, state)
                    probe_server = await _answer_probes(home, state)
                    try:
                        yield RunningSshServer(servers[0].sockets[0].getsockname()[1], state)
                    finally:
                        for listener in (*servers, probe_server):
                            listener.close()
                        for connection in list(state.connections):
                            connection.disconnect("Freehold is stopping")
                        for task in (*tasks, *state.tasks):
                            task.cancel()
            finally:
                writer_task.cancel()


async def _listen(home: Home, settings: SshSettings, state: SshServerState) -> list[asyncio.Server]:
    loop = asyncio.get_running_loop()
    host_key = asyncssh.import_private_key(read_private(host_key_path(home)))
    options = await asyncssh.SSHServerConnectionOptions.construct(
        server_factory=lambda: SshConnection(state),
        server_host_keys=[host_key],
        server_version=f"Freehold_{__version__}",
        kex_algs=list(KEY_EXCHANGES),
        encryption_algs=list(CIPHERS),
        mac_algs=list(MACS),
        compression_algs=["none"],
        signature_algs=list(SIGNATURES),
        login_timeout=settings.login_timeout,
        keepalive_interval=KEEPALIVE_INTERVAL,
        keepalive_count_max=MAX_MISSED_KEEPALIVES,
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

    def make_protocol() -> SshProtocol:
        return SshProtocol(loop, options)

    if settings.listeners:
        return [await loop.create_server(make_protocol, sock=one, backlog=BACKLOG) for one in settings.listeners]
    try:
        host, port = settings.host, settings.port
        return [await loop.create_server(make_protocol, host, port, backlog=BACKLOG, reuse_address=True)]
    except OSError as error:
        raise FreeholdError(
            "ssh.cannot-listen",
            f"Cannot listen on {settings.host} port {settings.port} (ssh.port): {error.strerror or error}",
            hint="Choose another ssh.port in freehold.toml, or set ssh.enabled = false",
        ) from None


async def _answer_probes(home: Home, state: SshServerState) -> asyncio.Server:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(
                json.dumps({"connected": state.limiter.connected, "waiting": state.limiter.pending}).encode() + b"\n"
            )
            await writer.drain()
            writer.close()

    path = socket_path(home)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - left behind by a killed server
    return await asyncio.start_unix_server(answer, sock=_bind_private(path))


def _bind_private(path: str) -> socket.socket:
    """A socket with mode 0600 from the start: between bind and chmod others could connect."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


async def _watch_expiry(state: SshServerState) -> None:
    """End connections within half a second after their sign-in or token ended, and soon after a certificate expired."""
    known, rounds = state.credential_check.revocation_count(), 0
    while True:
        await asyncio.sleep(REVOCATION_POLL_INTERVAL)
        rounds += 1
        current = state.credential_check.revocation_count()
        if current != known or rounds % POLLS_PER_FULL_CHECK == 0:
            known = current
            await _disconnect_invalid(state)


async def _follow_revocations(timeline: Timeline, state: SshServerState) -> None:
    async with aclosing(
        timeline.follow(kinds=["ssh.credential_revoked", "ssh.certificate_issued", "ssh.key_issued"])
    ) as events:
        async for event in events:
            if event.kind == "ssh.credential_revoked":
                await _disconnect_invalid(state)
            else:
                state.limiter.add_owner_addresses(await asyncio.to_thread(state.credential_check.owner_addresses))


async def _disconnect_invalid(state: SshServerState) -> None:
    for connection in list(state.connections):
        if connection.credential is None or not await asyncio.to_thread(
            state.credential_check.is_valid, connection.credential
        ):
            connection.record_event("ssh.connection_ended", {"why": "its key expired or was revoked"})
            connection.disconnect("This key expired or was revoked")
