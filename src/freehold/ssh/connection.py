"""One client's connection: who it is, what it may open, and how it ends."""

import asyncio
import logging
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncssh import SSHKey, SSHListener, SSHServer, SSHServerChannel, SSHTCPSession, SSHUNIXSession
from asyncssh.constants import DISC_BY_APPLICATION, OPEN_RESOURCE_SHORTAGE
from asyncssh.misc import ChannelOpenError

from freehold.computer import Computer
from freehold.computer.tunnel import Tunnel
from freehold.ssh.command import CommandSession
from freehold.ssh.connecting import PRINCIPAL
from freehold.ssh.credentials import Credential
from freehold.ssh.forwarding import ANYWHERE, InsideListener, TcpRelay, UnixRelay, connect_port, connect_socket
from freehold.ssh.gate import Gate
from freehold.ssh.record import Journal, Marks
from freehold.ssh.warrant import Warrants
from freehold.timeline import Json

if TYPE_CHECKING:
    from freehold.ssh.line import Line

log = logging.getLogger(__name__)
MAX_CHANNELS = 128
MAX_LISTENERS = 32
MAX_TRIES = 8
WINDOW = 4 * 1024 * 1024


@dataclass(frozen=True)
class SideDoor:
    """What every visit shares."""

    computer: Computer
    warrants: Warrants
    journal: Journal
    marks: Marks
    gate: Gate
    group: asyncio.TaskGroup
    visits: "set[Visit]"
    forwarding: bool
    work: set[asyncio.Task[None]] = field(default_factory=set)


class Visit(SSHServer):
    """From the first byte to the last. Nothing of the computer is touched before `auth_completed`."""

    folder = "/workspace"

    def __init__(self, house: SideDoor) -> None:
        self.house = house
        self.id = secrets.token_hex(4)
        self.address = ""
        self.keyed = False
        self.spoke = False
        self.revoked = False
        self.credential: Credential | None = None
        self._line: Line | None = None
        self._let_in = False
        self._refused = False
        self.gone = False
        self._tries = 0
        self._channels = 0
        self._listeners = 0
        self._commands = 0

    # What the connection calls

    def connection_made(self, conn: "Line") -> None:  # type: ignore[override]
        self._line = conn
        self.address = str(conn.get_extra_info("peername", ("",))[0])
        if not self.house.gate.admit(self):
            self._refused = True
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self.house.visits.discard(self)
        if self._let_in:
            self.house.gate.left()
            self.note("ssh.disconnected", {"commands": self._commands})
        elif not self._refused and self.house.gate.gave_up(self, tried=self.spoke):
            self.house.journal.note("ssh.address_banned", {"address": self.address}, "ssh")

    def begin_auth(self, username: str) -> bool:
        self.keyed = True
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: SSHKey) -> bool:
        """A bare key that we made ourselves for a client that knows no certificates."""
        if username != PRINCIPAL:
            return self.fail_try()
        warrant = await asyncio.to_thread(self.house.warrants.for_key, key.get_fingerprint())
        self.credential = warrant
        return warrant is not None or self.fail_try()

    def validate_ca_key(self, username: str, key: SSHKey) -> bool:
        return username == PRINCIPAL and self.house.warrants.is_authority(key.public_data)

    async def auth_completed(self) -> None:
        credential = self.credential
        assert self._line is not None
        if credential is None or not self.house.gate.let_in(self):
            self._line.disconnect(DISC_BY_APPLICATION, "There are too many connections")
            return
        self._let_in = True
        self.house.visits.add(self)
        self.note("ssh.connected", {"address": self.address, "credential": credential.id, "key_id": credential.key_id})
        self.start(asyncio.to_thread(self.house.warrants.note_use, credential, self.address), "ssh use")
        if not await asyncio.to_thread(self.house.warrants.holds, credential):  # revoked while it was signing
            self.end("This key was revoked")

    def session_requested(self) -> "tuple[SSHServerChannel[bytes], CommandSession]":
        self._take_channel_or_refuse()
        assert self._line is not None
        channel = self._line.create_server_channel(None, "strict", WINDOW, 32768)
        return channel, CommandSession(self)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> "Coroutine[Any, Any, SSHTCPSession[bytes]] | bool":
        if not self.house.forwarding:
            return False
        self._take_channel_or_refuse()
        return connect_port(self, dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> "Coroutine[Any, Any, SSHUNIXSession[bytes]] | bool":
        if not self.house.forwarding:
            return False
        self._take_channel_or_refuse()
        return connect_socket(self, dest_path)

    async def server_requested(self, listen_host: str, listen_port: int) -> SSHListener | bool:
        line = self._line
        assert line is not None

        async def open_channel(tunnel: Tunnel) -> TcpRelay:
            relay = TcpRelay(self, tunnel)
            await line.create_connection(lambda: relay, listen_host, listener.get_port(), "127.0.0.1", 0)
            return relay

        listener = InsideListener(self, open_channel)
        if listen_host not in ANYWHERE:
            return False
        return await self._listen(listener, listen_port)

    async def unix_server_requested(self, listen_path: str) -> SSHListener | bool:
        line = self._line
        assert line is not None

        async def open_channel(tunnel: Tunnel) -> UnixRelay:
            relay = UnixRelay(self, tunnel)
            await line.create_unix_connection(lambda: relay, listen_path)
            return relay

        if not listen_path.startswith("/"):
            return False
        return await self._listen(InsideListener(self, open_channel), listen_path)

    # What its channels use

    @property
    def client(self) -> str:
        """The program on the other side, as it calls itself."""
        assert self._line is not None
        return str(self._line.get_extra_info("client_version", "")).removeprefix("SSH-2.0-")

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        """Runs beside the connection, and may outlive it: what a command left behind is followed to its end."""
        task = self.house.group.create_task(_guarded(work, name), name=name)
        self.house.work.add(task)
        task.add_done_callback(self.house.work.discard)

    def note(self, kind: str, data: Mapping[str, Json]) -> None:
        who = f"ssh:{self.credential.id}" if self.credential is not None else "ssh"
        self.house.journal.note(kind, {"connection": self.id, **data}, who)

    def next_command(self) -> int:
        self._commands += 1
        return self._commands

    def take_channel(self) -> bool:
        if self._channels >= MAX_CHANNELS:
            return False
        self._channels += 1
        return True

    def channel_ended(self) -> None:
        self._channels -= 1

    def listener_ended(self) -> None:
        self._listeners -= 1

    # How it ends

    def fail_try(self) -> bool:
        """Counts a key that is not let in; always False. A client with a full agent offers several, a guesser many."""
        self._tries += 1
        if self._tries >= MAX_TRIES and self._line is not None:
            self._line.disconnect(DISC_BY_APPLICATION, "Too many keys were tried")
        return False

    def drop(self) -> None:
        """Ended by the gate to make room."""
        self._refused = True
        if self._line is not None:
            self._line.abort()

    def end(self, words: str) -> None:
        """At once: what it runs goes with it."""
        self.revoked = True
        if self._line is not None:
            self._line.disconnect(DISC_BY_APPLICATION, words)
            self._line.abort()

    async def _listen(self, listener: InsideListener, where: int | str) -> SSHListener | bool:
        if not self.house.forwarding or self._listeners >= MAX_LISTENERS:
            return False
        self._listeners += 1
        if await listener.listen(where):
            return listener
        self._listeners -= 1
        return False

    def _take_channel_or_refuse(self) -> None:
        if not self.take_channel():
            raise ChannelOpenError(OPEN_RESOURCE_SHORTAGE, f"{MAX_CHANNELS} channels are open already")


async def _guarded(work: Coroutine[Any, Any, Any], name: str) -> None:
    """One channel's trouble leaves the others alone."""
    try:
        await work
    except Exception:
        log.exception("%s failed", name)
