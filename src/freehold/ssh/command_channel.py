"""Shells, commands and SFTP: every session channel is a process or terminal inside."""

import asyncio
import contextlib
import fnmatch
import os
import signal as signals
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from asyncssh import SSHServerChannel, SSHServerSession

from freehold.computer.process import Process
from freehold.computer.terminal import Terminal
from freehold.errors import FreeholdError
from freehold.observe.secrets import mask
from freehold.ssh.modes import settings_of, with_settings
from freehold.ssh.pump import Inlet, Outlet

if TYPE_CHECKING:
    from freehold.ssh.visit import Visit

Kind = Literal["shell", "exec", "sftp"]
Outcome = dict[str, int | str | None]
SHELL = "/bin/bash"
ALLOWED_ENVIRONMENT = ("LANG", "LC_*", "COLORTERM", "TERM_PROGRAM", "GIT_PROTOCOL", "NO_COLOR", "TZ", "VSCODE_*")
LONGEST_VALUE = 4096
LONGEST_SHOWN = 2000
MAX_ROWS = 9999
CANNOT_START = 127
LINK_LOST = 255
HANG_UP_PATIENCE = 5.0
END_OF_INPUT = b"\x04"
# Those who send a symbolic link's names in OpenSSH's order only to a server that is called OpenSSH.
LINK_FIRST = ("AsyncSSH_", "libssh_")
# What a client is told of its terminal's place: that this is SSH, and nothing about where it connects from.
ANONYMOUS = "127.0.0.1 0 127.0.0.1 22"
SIGNALS = {
    name: getattr(signals, f"SIG{name}")
    for name in ("ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2")
}
NAMES = {int(number): name for name, number in SIGNALS.items()}


@cache
def sftp_source() -> str:
    return (Path(__file__).parent / "inside" / "sftp.py").read_text()


class CommandSession(SSHServerSession[bytes]):
    """One session channel. Its end is the end of what it runs, except for what that has left in the background."""

    def __init__(self, visit: "Visit") -> None:
        self._visit = visit
        self._chan: SSHServerChannel[bytes] | None = None
        self._inlet = Inlet()
        self._outlet = Outlet()
        self._term: str | None = None
        self._size = (24, 80)
        self._settings: list[str] = []
        self._kind: Kind = "shell"
        self._command: str | None = None
        self._inside: Process | Terminal | None = None

    # What the channel calls

    def connection_made(self, chan: SSHServerChannel[bytes]) -> None:
        self._chan = chan
        self._inlet.channel = chan
        chan.set_write_buffer_limits(high=512 * 1024, low=128 * 1024)

    def connection_lost(self, exc: Exception | None) -> None:
        self._outlet.close()
        self._inlet.end()
        self._visit.channel_ended()
        self._hang_up()

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: Mapping[int, int]
    ) -> bool:
        self._term = "".join(letter for letter in term_type if letter.isalnum() or letter in "-+._")[:40] or "dumb"
        self._resize(term_size[1], term_size[0])
        self._settings = settings_of(term_modes)
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        if "\0" in command:
            return False
        self._kind, self._command = "exec", command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        self._kind = "sftp"
        return subsystem == "sftp"

    def session_started(self) -> None:
        self._visit.start(self._run(), f"ssh {self._kind}")

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._inlet.put(data)

    def eof_received(self) -> bool:
        self._inlet.end()
        return True

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._resize(height, width)
        if isinstance(self._inside, Terminal):
            with contextlib.suppress(FreeholdError):
                self._inside.resize(*self._size)

    def signal_received(self, signal: str) -> None:
        number = SIGNALS.get(signal)
        if number is not None and self._inside is not None:
            with contextlib.suppress(FreeholdError):
                self._inside.signal(number)

    def break_received(self, msec: int) -> bool:
        self.signal_received("INT")
        return self._inside is not None

    # Inside

    @property
    def _channel(self) -> SSHServerChannel[bytes]:
        assert self._chan is not None  # nothing runs before the channel is there
        return self._chan

    @property
    def _why(self) -> str:
        words = mask(self._command) if self._command is not None else self._kind  # before a cut hides half a secret
        shown = "".join(letter if letter.isprintable() else " " for letter in words)
        return shown[:LONGEST_SHOWN]

    def _resize(self, rows: int, cols: int) -> None:
        self._size = (min(rows, MAX_ROWS) or 24, min(cols, MAX_ROWS) or 80)

    async def _run(self) -> None:
        visit = self._visit
        number = visit.next_command()
        await visit.house.marks.mark("before", visit.id, self._why)
        visit.note("ssh.command_started", {"command": self._why, "kind": self._kind, "number": number})
        outcome: Outcome = {"exit": LINK_LOST}
        try:
            outcome = await (self._run_terminal() if self._term is not None else self._run_process())
        except FreeholdError as error:
            missing = error.code in ("computer.no-program", "computer.bad-folder")
            outcome = {"exit": CANNOT_START if missing else LINK_LOST, "error": error.code}
            self._tell(f"freehold: {error}\r\n")
        finally:
            self._inside = None
            self._finish(outcome)
            visit.note("ssh.command_ended", {"number": number, **outcome})
            await visit.house.marks.mark("after", visit.id, self._why)

    async def _run_process(self) -> Outcome:
        process = await self._visit.house.computer.spawn(self._argv(), cwd=self._visit.folder, env=self._environment())
        self._inside = process
        async with process:
            async with asyncio.TaskGroup() as group:
                feeding = group.create_task(self._feed(process))
                group.create_task(self._show(process.stdout.read, self._channel.write))
                group.create_task(self._show(process.stderr.read, self._write_error))
                if self._outlet.closed:  # the client left while it was starting
                    self._hang_up()
                with contextlib.suppress(FreeholdError):
                    await process.wait()
                feeding.cancel()
            ending = await process.wait()
        return {"exit": ending.code, "signal": ending.signal}

    async def _run_terminal(self) -> Outcome:
        rows, cols = self._size
        terminal = await self._visit.house.computer.terminal(
            with_settings(self._settings, self._argv()),
            rows=rows,
            cols=cols,
            cwd=self._visit.folder,
            env=self._environment(),
            scrollback=4096,
        )
        self._inside = terminal
        try:
            async with asyncio.TaskGroup() as group:
                feeding = group.create_task(self._feed(terminal))
                if self._size != (rows, cols):
                    terminal.resize(*self._size)
                if self._outlet.closed:
                    self._hang_up()
                await self._show(terminal.read, self._channel.write)
                feeding.cancel()
            ending = await terminal.wait()
        except BaseException:
            await terminal.close()
            raise
        await terminal.detach()  # what the shell has left running goes on
        return {"exit": ending.code, "signal": ending.signal}

    async def _show(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], None]) -> None:
        """A link that is lost meanwhile is told by the wait for the end."""
        with contextlib.suppress(FreeholdError):
            await self._outlet.carry(read, write)

    async def _feed(self, inside: Process | Terminal) -> None:
        """A terminal's end of input is a character; it goes on living to show what comes of it."""
        with contextlib.suppress(FreeholdError):
            while data := await self._inlet.take():
                await inside.write(data)
            if isinstance(inside, Process):
                inside.close_stdin()
            elif not self._outlet.closed:
                await inside.write(END_OF_INPUT)

    def _hang_up(self) -> None:
        """The client is gone. What asked to survive a hang-up does, unless the key itself was revoked."""
        inside = self._inside
        if inside is None:
            return
        with contextlib.suppress(FreeholdError):
            if isinstance(inside, Process):
                inside.kill() if self._visit.revoked else inside.signal(signals.SIGHUP)
            else:
                self._visit.start(self._leave_terminal(inside), "ssh hang-up")

    async def _leave_terminal(self, terminal: Terminal) -> None:
        """The shell is told, and tells its jobs; one that will not go is closed with everything in it."""
        with contextlib.suppress(FreeholdError):
            if not self._visit.revoked and terminal.info is not None:
                terminal.signal(signals.SIGHUP)
                await self._visit.house.computer.run(["kill", "-HUP", str(terminal.info.pid)], timeout=HANG_UP_PATIENCE)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HANG_UP_PATIENCE):
                        await terminal.wait()
            await terminal.close()

    def _argv(self) -> list[str]:
        if self._kind == "sftp":
            order = ["--link-first"] if self._visit.client.startswith(LINK_FIRST) else []
            return ["/usr/bin/python3", "-I", "-S", "-c", sftp_source(), *order]
        if self._command is not None:
            return [SHELL, "-c", self._command]
        return [SHELL, "-l"]

    def _environment(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {"SSH_CONNECTION": ANONYMOUS, "SHELL": SHELL}
        for name, value in self._channel.get_environment_bytes().items():
            word, words = os.fsdecode(name), os.fsdecode(value)
            if len(words) <= LONGEST_VALUE and any(fnmatch.fnmatchcase(word, one) for one in ALLOWED_ENVIRONMENT):
                found[word] = words
        if self._term is not None:
            found["TERM"] = self._term
        return found

    def _write_error(self, data: bytes) -> None:
        self._channel.write_stderr(data)

    def _tell(self, words: str) -> None:
        with contextlib.suppress(OSError):
            self._channel.write_stderr(words.encode())

    def _finish(self, outcome: Mapping[str, int | str | None]) -> None:
        if self._outlet.closed:
            return
        number = outcome.get("signal")
        with contextlib.suppress(OSError):
            if isinstance(number, int):
                if number in NAMES:
                    self._channel.exit_with_signal(NAMES[number])
                else:
                    self._channel.exit(128 + number)
            else:
                code = outcome.get("exit")
                self._channel.exit(code if isinstance(code, int) else LINK_LOST)
