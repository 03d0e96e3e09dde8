"""One SSH connection: authentication, its channels and forwards, and its end."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncssh import SSHKey, SSHListener, SSHServer, SSHServerChannel, SSHTCPSession, SSHUNIXSession
from asyncssh.constants import DISC_BY_APPLICATION, OPEN_RESOURCE_SHORTAGE
from asyncssh.misc import ChannelOpenError

from freehold.computer import Computer
from freehold.computer.contract.conventions import WORKSPACE
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError
from freehold.ssh.activity_log import EventWriter, HistoryMarks
from freehold.ssh.client_config import PRINCIPAL
from freehold.ssh.command_channel import CommandChannel
from freehold.ssh.connection_limiter import ConnectionLimiter
from freehold.ssh.credential_check import CredentialCheck
from freehold.ssh.credentials import Credential
from freehold.ssh.forwards import (
    LISTEN_HOSTS,
    RemoteForward,
    TcpForward,
    UnixForward,
    forward_to_port,
    forward_to_socket,
)
from freehold.timeline import Json

if TYPE_CHECKING:
    from freehold.ssh.protocol import SshProtocol

log = logging.getLogger(__name__)
MAX_CHANNELS = 128
MAX_LISTENERS = 32
MAX_FAILED_KEYS = 8
CHANNEL_WINDOW_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class SshServerState:
    """What all connections of the server share."""

    computer: Computer
    credential_check: CredentialCheck
    events: EventWriter
    marks: HistoryMarks
    limiter: ConnectionLimiter
    group: asyncio.TaskGroup
    connections: "set[SshConnection]"
    forwarding: bool
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class SshConnection(SSHServer):
    """asyncssh calls these methods for one client. The computer is not used before `auth_completed`."""

    folder = WORKSPACE

    def __init__(self, server: SshServerState) -> None:
        self.server = server
        self.id = secrets.token_hex(4)
        self.address = ""
        self.has_exchanged_keys = False
        self.has_sent_data = False
        self.revoked = False
        self.credential: Credential | None = None
        self._protocol: SshProtocol | None = None
        self._is_accepted = False
        self._is_refused = False
        self.is_closed = False
        self._failed_keys = 0
        self._channels = 0
        self._listeners = 0
        self._commands = 0
        self._awake = contextlib.ExitStack()

    # Called by asyncssh

    def connection_made(self, conn: "SshProtocol") -> None:  # type: ignore[override]
        self._protocol = conn
        self.address = str(conn.get_extra_info("peername", ("",))[0])
        if not self.server.limiter.admit(self):
            self._is_refused = True
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        self._awake.close()
        self.server.connections.discard(self)
        if self._is_accepted:
            self.server.limiter.release()
            self.record_event("ssh.disconnected", {"commands": self._commands})
        elif not self._is_refused and self.server.limiter.remove_pending(self, tried=self.has_sent_data):
            self.server.events.record("ssh.address_banned", {"address": self.address}, "ssh")
            log.warning("%s is banned from SSH: too many failed attempts", self.address)  # `deploy fail2ban` finds it

    def begin_auth(self, username: str) -> bool:
        self.has_exchanged_keys = True
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: SSHKey) -> bool:
        """Accept a plain key that this Freehold created for a client without certificate support."""
        if username != PRINCIPAL:
            return self.count_failed_key()
        self.credential = await asyncio.to_thread(self.server.credential_check.find_by_key, key.get_fingerprint())
        return self.credential is not None or self.count_failed_key()

    def validate_ca_key(self, username: str, key: SSHKey) -> bool:
        return username == PRINCIPAL and self.server.credential_check.is_authority(key.public_data)

    async def auth_completed(self) -> None:
        credential = self.credential
        assert self._protocol is not None
        if credential is None or not self.server.limiter.accept(self):
            self._protocol.disconnect(DISC_BY_APPLICATION, "Too many connections")
            return
        self._is_accepted = True
        self._awake.enter_context(self.server.computer.hold_awake())
        self.server.connections.add(self)
        self.record_event(
            "ssh.connected", {"address": self.address, "credential": credential.id, "key_id": credential.key_id}
        )
        self.run_in_background(
            asyncio.to_thread(self.server.credential_check.record_use, credential, self.address), "ssh use"
        )
        # It may have been revoked during the authentication.
        if not await asyncio.to_thread(self.server.credential_check.is_valid, credential):
            self.disconnect("This key was revoked")

    def session_requested(self) -> "tuple[SSHServerChannel[bytes], CommandChannel]":
        self._require_channel()
        assert self._protocol is not None
        channel = self._protocol.create_server_channel(None, "strict", CHANNEL_WINDOW_BYTES, 32768)
        return channel, CommandChannel(self)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> "Coroutine[Any, Any, SSHTCPSession[bytes]] | bool":
        if not self.server.forwarding:
            return False
        self._require_channel()
        return forward_to_port(self, dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> "Coroutine[Any, Any, SSHUNIXSession[bytes]] | bool":
        if not self.server.forwarding:
            return False
        self._require_channel()
        return forward_to_socket(self, dest_path)

    async def server_requested(self, listen_host: str, listen_port: int) -> SSHListener | bool:
        protocol = self._protocol
        assert protocol is not None

        async def open_channel(tunnel: Tunnel) -> TcpForward:
            forward = TcpForward(self, tunnel)
            await protocol.create_connection(lambda: forward, listen_host, listener.get_port(), "127.0.0.1", 0)
            return forward

        listener = RemoteForward(self, open_channel)
        if listen_host not in LISTEN_HOSTS:
            return False
        return await self._listen(listener, listen_port)

    async def unix_server_requested(self, listen_path: str) -> SSHListener | bool:
        protocol = self._protocol
        assert protocol is not None

        async def open_channel(tunnel: Tunnel) -> UnixForward:
            forward = UnixForward(self, tunnel)
            await protocol.create_unix_connection(lambda: forward, listen_path)
            return forward

        if not listen_path.startswith("/"):
            return False
        return await self._listen(RemoteForward(self, open_channel), listen_path)

    # Used by its channels

    @property
    def client_version(self) -> str:
        """The name and version that the client program sent."""
        assert self._protocol is not None
        return str(self._protocol.get_extra_info("client_version", "")).removeprefix("SSH-2.0-")

    def run_in_background(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Run a task that may outlive the connection, such as a command whose client has left."""
        task = self.server.group.create_task(_log_failure(work, name), name=name)
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)

    def record_event(self, kind: str, data: Mapping[str, Json]) -> None:
        who = f"ssh:{self.credential.id}" if self.credential is not None else "ssh"
        self.server.events.record(kind, {"connection": self.id, **data}, who)

    def next_command_number(self) -> int:
        self._commands += 1
        return self._commands

    def reserve_channel(self) -> bool:
        if self._channels >= MAX_CHANNELS:
            return False
        self._channels += 1
        return True

    def release_channel(self) -> None:
        self._channels -= 1

    def release_listener(self) -> None:
        self._listeners -= 1

    # The end

    def count_failed_key(self) -> bool:
        """Count a refused key and disconnect after too many. A client with an SSH agent offers several. Returns False."""
        self._failed_keys += 1
        if self._failed_keys >= MAX_FAILED_KEYS and self._protocol is not None:
            self._protocol.disconnect(DISC_BY_APPLICATION, "Too many keys were offered")
        return False

    def drop(self) -> None:
        """End this connection because the limiter needs the slot."""
        self._is_refused = True
        if self._protocol is not None:
            self._protocol.abort()

    def disconnect(self, reason: str) -> None:
        """End the connection and kill the commands that it runs."""
        self.revoked = True
        if self._protocol is not None:
            self._protocol.disconnect(DISC_BY_APPLICATION, reason)
            self._protocol.abort()

    async def _listen(self, listener: RemoteForward, where: int | str) -> SSHListener | bool:
        if not self.server.forwarding or self._listeners >= MAX_LISTENERS:
            return False
        self._listeners += 1
        if await listener.listen(where):
            return listener
        self._listeners -= 1
        return False

    def _require_channel(self) -> None:
        if not self.reserve_channel():
            raise ChannelOpenError(OPEN_RESOURCE_SHORTAGE, f"{MAX_CHANNELS} channels are open already")


async def _log_failure(work: Coroutine[Any, Any, Any], name: str) -> None:
    """Log an exception instead of raising it, so that one failed channel does not end the others."""
    try:
        await work
    except FreeholdError as error:
        log.warning("%s failed: %s", name, error)
    except Exception:
        log.exception("%s failed", name)
