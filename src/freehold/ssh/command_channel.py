"""Shells, commands and SFTP. Each channel is a process or a terminal in the computer."""

import asyncio
import contextlib
import fnmatch
import os
import signal as signals
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from asyncssh import SSHServerChannel, SSHServerSession

from freehold.computer.library.process import Process
from freehold.computer.library.terminal import Terminal
from freehold.errors import FreeholdError
from freehold.observe.secrets import mask_secrets
from freehold.ssh.channel_buffer import ChannelInput, ChannelOutput
from freehold.ssh.terminal_modes import stty_settings, with_stty

if TYPE_CHECKING:
    from freehold.ssh.connection import SshConnection

ChannelKind = Literal["shell", "exec", "sftp"]
Outcome = dict[str, int | str | None]
RunningT = TypeVar("RunningT", Process, Terminal)
SHELL = "/bin/bash"
FALLBACK_FOLDER = "/"
ALLOWED_ENVIRONMENT = ("LANG", "LC_*", "COLORTERM", "TERM_PROGRAM", "GIT_PROTOCOL", "NO_COLOR", "TZ", "VSCODE_*")
MAX_VALUE_CHARS = 4096
MAX_SHOWN_CHARS = 2000
MAX_ROWS = 9999
CANNOT_START_EXIT = 127
LINK_LOST_EXIT = 255
HANG_UP_TIMEOUT = 5.0
END_OF_INPUT = b"\x04"
# SFTP clients that send the arguments of a symlink request in the order of OpenSSH only to a server named OpenSSH.
LINK_FIRST_CLIENTS = ("AsyncSSH_", "libssh_")
# SSH_CONNECTION tells programs that this is SSH. It does not contain the real address of the client.
ANONYMOUS = "127.0.0.1 0 127.0.0.1 22"
SIGNALS = {
    name: getattr(signals, f"SIG{name}")
    for name in ("ABRT", "ALRM", "FPE", "HUP", "ILL", "INT", "KILL", "PIPE", "QUIT", "SEGV", "TERM", "USR1", "USR2")
}
SIGNAL_NAMES = {int(number): name for name, number in SIGNALS.items()}


@cache
def sftp_source() -> str:
    return (Path(__file__).parent / "inside" / "sftp.py").read_text()


class CommandChannel(SSHServerSession[bytes]):
    """One channel of a connection. When it closes, its command is ended; processes in the background keep running."""

    def __init__(self, connection: "SshConnection") -> None:
        self._connection = connection
        self._chan: SSHServerChannel[bytes] | None = None
        self._input = ChannelInput()
        self._output = ChannelOutput()
        self._term: str | None = None
        self._size = (24, 80)
        self._settings: list[str] = []
        self._kind: ChannelKind = "shell"
        self._command: str | None = None
        self._running: Process | Terminal | None = None

    # Called by asyncssh

    def connection_made(self, chan: SSHServerChannel[bytes]) -> None:
        self._chan = chan
        self._input.channel = chan
        chan.set_write_buffer_limits(high=512 * 1024, low=128 * 1024)

    def connection_lost(self, exc: Exception | None) -> None:
        self._output.close()
        self._input.end()
        self._connection.release_channel()
        self._hang_up()

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: Mapping[int, int]
    ) -> bool:
        self._term = "".join(letter for letter in term_type if letter.isalnum() or letter in "-+._")[:40] or "dumb"
        self._resize(term_size[1], term_size[0])
        self._settings = stty_settings(term_modes)
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
        self._connection.run_in_background(self._run(), f"ssh {self._kind}")

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._input.append(data)

    def eof_received(self) -> bool:
        self._input.end()
        return True

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._resize(height, width)
        if isinstance(self._running, Terminal):
            with contextlib.suppress(FreeholdError):
                self._running.resize(*self._size)

    def signal_received(self, signal: str) -> None:
        number = SIGNALS.get(signal)
        if number is not None and self._running is not None:
            with contextlib.suppress(FreeholdError):
                self._running.signal(number)

    def break_received(self, msec: int) -> bool:
        self.signal_received("INT")
        return self._running is not None

    # Inside

    @property
    def _channel(self) -> SSHServerChannel[bytes]:
        assert self._chan is not None  # `connection_made` is called first
        return self._chan

    @property
    def _description(self) -> str:
        # Masked before it is shortened: a part of a secret would not be recognized.
        text = mask_secrets(self._command) if self._command is not None else self._kind
        return "".join(letter if letter.isprintable() else " " for letter in text)[:MAX_SHOWN_CHARS]

    def _resize(self, rows: int, cols: int) -> None:
        self._size = (min(rows, MAX_ROWS) or 24, min(cols, MAX_ROWS) or 80)

    async def _run(self) -> None:
        connection = self._connection
        number = connection.next_command_number()
        await connection.server.marks.mark("before", connection.id, self._description)
        connection.record_event(
            "ssh.command_started", {"command": self._description, "kind": self._kind, "number": number}
        )
        outcome: Outcome = {"exit": LINK_LOST_EXIT}
        try:
            outcome = await (self._run_terminal() if self._term is not None else self._run_process())
        except FreeholdError as error:
            missing = error.code in ("computer.no-program", "computer.bad-folder")
            outcome = {"exit": CANNOT_START_EXIT if missing else LINK_LOST_EXIT, "error": error.code}
            self._write_message(f"freehold: {error}\r\n")
        finally:
            self._running = None
            self._finish(outcome)
            connection.record_event("ssh.command_ended", {"number": number, **outcome})
            await connection.server.marks.mark("after", connection.id, self._description)

    async def _start(self, start: Callable[[str], Awaitable[RunningT]]) -> RunningT:
        """In the workspace; a shell and SFTP else in /, so that the owner can give back what a program has taken.

        A command is refused instead: `rm -r *` must not run in another folder than usual.
        """
        try:
            return await start(self._connection.folder)
        except FreeholdError as error:
            if error.code != "computer.bad-folder" or self._kind == "exec":
                raise
            if self._kind == "shell":
                self._write_message(f"freehold: {error.message}. This shell is in {FALLBACK_FOLDER}\r\n")
            return await start(FALLBACK_FOLDER)

    async def _run_process(self) -> Outcome:
        computer = self._connection.server.computer
        process = await self._start(lambda folder: computer.spawn(self._argv(), cwd=folder, env=self._environment()))
        self._running = process
        async with process:
            async with asyncio.TaskGroup() as group:
                input_task = group.create_task(self._copy_input(process))
                group.create_task(self._copy_output(process.stdout.read, self._channel.write))
                group.create_task(self._copy_output(process.stderr.read, self._write_error))
                if self._output.closed:  # the client left during the start
                    self._hang_up()
                with contextlib.suppress(FreeholdError):
                    await process.wait()
                input_task.cancel()
            ending = await process.wait()
        return {"exit": ending.code, "signal": ending.signal}

    async def _run_terminal(self) -> Outcome:
        rows, cols = self._size
        computer = self._connection.server.computer
        command = with_stty(self._settings, self._argv())
        terminal = await self._start(
            lambda folder: computer.terminal(
                command, rows=rows, cols=cols, cwd=folder, env=self._environment(), scrollback=4096
            )
        )
        self._running = terminal
        try:
            async with asyncio.TaskGroup() as group:
                input_task = group.create_task(self._copy_input(terminal))
                if self._size != (rows, cols):
                    terminal.resize(*self._size)
                if self._output.closed:
                    self._hang_up()
                await self._copy_output(terminal.read, self._channel.write)
                input_task.cancel()
            ending = await terminal.wait()
        except BaseException:
            await terminal.close()
            raise
        await terminal.detach()  # background processes of the shell keep running
        return {"exit": ending.code, "signal": ending.signal}

    async def _copy_output(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], None]) -> None:
        """Copy output to the client. When the link is lost, `wait` reports it."""
        with contextlib.suppress(FreeholdError):
            await self._output.copy(read, write)

    async def _copy_input(self, running: Process | Terminal) -> None:
        """Copy input from the client. The end of input closes a pipe, and is a character for a terminal."""
        with contextlib.suppress(FreeholdError):
            while data := await self._input.read():
                await running.write(data)
            if isinstance(running, Process):
                running.close_stdin()
            elif not self._output.closed:
                await running.write(END_OF_INPUT)

    def _hang_up(self) -> None:
        """The client has left: send SIGHUP to its command, or kill it when the credential was revoked."""
        running = self._running
        if running is None:
            return
        with contextlib.suppress(FreeholdError):
            if isinstance(running, Process):
                running.kill() if self._connection.revoked else running.signal(signals.SIGHUP)
            else:
                self._connection.run_in_background(self._close_terminal(running), "ssh hang-up")

    async def _close_terminal(self, terminal: Terminal) -> None:
        """Send SIGHUP to the shell, which passes it to its jobs. A shell that does not end is killed with its jobs."""
        with contextlib.suppress(FreeholdError):
            if not self._connection.revoked:
                terminal.signal(signals.SIGHUP)
                terminal.signal(signals.SIGHUP, group=False)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HANG_UP_TIMEOUT):
                        await terminal.wait()
            await terminal.close()

    def _argv(self) -> list[str]:
        if self._kind == "sftp":
            order = ["--link-first"] if self._connection.client_version.startswith(LINK_FIRST_CLIENTS) else []
            return ["/usr/bin/python3", "-I", "-S", "-c", sftp_source(), *order]
        if self._command is not None:
            return [SHELL, "-c", self._command]
        return [SHELL, "-l"]

    def _environment(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {"SSH_CONNECTION": ANONYMOUS, "SHELL": SHELL}
        for name, value in self._channel.get_environment_bytes().items():
            variable, text = os.fsdecode(name), os.fsdecode(value)
            if len(text) <= MAX_VALUE_CHARS and any(fnmatch.fnmatchcase(variable, one) for one in ALLOWED_ENVIRONMENT):
                found[variable] = text
        if self._term is not None:
            found["TERM"] = self._term
        return found

    def _write_error(self, data: bytes) -> None:
        self._channel.write_stderr(data)

    def _write_message(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._channel.write_stderr(text.encode())

    def _finish(self, outcome: Mapping[str, int | str | None]) -> None:
        if self._output.closed:
            return
        number = outcome.get("signal")
        with contextlib.suppress(OSError):
            if isinstance(number, int):
                if number in SIGNAL_NAMES:
                    self._channel.exit_with_signal(SIGNAL_NAMES[number])
                else:
                    self._channel.exit(128 + number)
            else:
                code = outcome.get("exit")
                self._channel.exit(code if isinstance(code, int) else LINK_LOST_EXIT)
