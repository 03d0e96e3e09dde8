"""Commands inside: run to the end with their output captured, or started with streams."""

import asyncio
import signal as signals
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.computer.contract.spec import Limits
from freehold.computer.library import reply
from freehold.computer.library.channel import Channel
from freehold.computer.library.link import Link
from freehold.computer.library.operation import ChannelOperation
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError

Command = str | Sequence[str]


@dataclass(frozen=True)
class ProcessExit:
    """How a process ended: `code` or `signal`, never both."""

    code: int | None
    signal: int | None
    duration: float
    cpu: float
    memory: int
    timed_out: bool


@dataclass(frozen=True)
class CommandResult:
    """A finished command. `exit_code` is negative for a signal, as in `subprocess`.

    `truncated` counts the bytes of stdout and stderr beyond the output limit, which were discarded.
    `limit` names the field of `Limits` that ended the command or cut its output.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int
    signal: int | None
    duration: float
    truncated: int
    limit: str | None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    def check(self) -> "CommandResult":
        """This result if the command succeeded; else an error with the reason and the setting that it met."""
        if self.limit is not None and self.limit != "output":
            raise FreeholdError(
                "computer.limit",
                f"The command reached computer.limits.{self.limit} after {self.duration:.1f} s",
                hint=f"Raise computer.limits.{self.limit} in freehold.toml, or change the command",
            )
        if self.exit_code:
            stderr = reply.escape_unprintable(self.stderr[-500:].decode(errors="replace").strip())
            raise FreeholdError(
                "computer.command-failed",
                f"The command failed with exit code {self.exit_code}: {stderr or 'no output on stderr'}",
            )
        return self

    @property
    def text(self) -> str:
        """stdout as UTF-8; invalid bytes are replaced."""
        return self.stdout.decode(errors="replace")


def _check_arguments(command: object) -> list[str]:
    """The link carries text only. Bytes and paths are refused here, where the error can say how to convert them."""
    if not isinstance(command, Sequence) or not all(isinstance(word, str) for word in command):
        raise FreeholdError(
            "computer.bad-request",
            f"A command must be a string or a list of strings, not {command!r:.100}",
            hint='For example run("ls -l") or run(["ls", "-l"]); os.fsdecode converts bytes and paths',
        )
    return list(command)


def build_spawn_request(
    command: Command,
    cwd: str | None,
    env: Mapping[str, str | None] | None,
    limits: Mapping[str, int] | None,
    **more: object,
) -> dict[str, Any]:
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else _check_arguments(command)
    request: dict[str, Any] = {
        "op": "spawn",
        "argv": argv,
        **{name: value for name, value in more.items() if value is not None},
    }
    if cwd is not None:
        request["cwd"] = cwd
    if env:
        request["env"] = dict(env)
    if limits:
        request["limits"] = dict(limits)
    return request


def describe_command_limits(limits: Limits | None) -> dict[str, int] | None:
    """The limits that the guest applies to a single command."""
    if limits is None:
        return None
    return {"cpu_time": limits.cpu_time, "file_size": limits.file_size, "open_files": limits.open_files}


def read_exit(message: dict[str, Any]) -> ProcessExit:
    return ProcessExit(
        code=reply.read_optional_int(message, "exit"),
        signal=reply.read_optional_int(message, "signal"),
        duration=reply.read_number(message, "duration"),
        cpu=reply.read_number(message, "cpu"),
        memory=reply.read_int(message, "memory"),
        timed_out=reply.read_text(message, "reason") == "timeout",
    )


class OutputCapture:
    """Collects a command's output up to a limit on each stream."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._parts: tuple[list[bytes], list[bytes]] = ([], [])
        self._sizes = [0, 0]
        self._dropped = 0
        self._exit: ProcessExit | None = None
        self._error: FreeholdError | None = None
        self.channel: Channel | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data(self, stream: int, payload: memoryview) -> None:
        size = len(payload)
        room = self._output - self._sizes[stream]
        if room > 0:
            self._parts[stream].append(bytes(payload[:room]))
        self._dropped += max(0, size - max(room, 0))
        self._sizes[stream] += size
        if self.channel is not None:
            self.channel.grant(stream, size)

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        self._error = self._error or reply.read_error(message)
        if "exit" in message:
            self._exit = read_exit(message)
            self._dropped += sum(
                reply.read_int({"dropped": count}, "dropped") for count in reply.read_list(message, "dropped", most=2)
            )

    def closed(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def lost(self, error: FreeholdError) -> None:
        self._error = error
        self.closed()

    def result(self) -> CommandResult:
        if self._error is not None:
            raise self._error
        if self._exit is None:
            raise FreeholdError("link.protocol", "The computer closed a command without its exit status")
        end = self._exit
        limit: str | None = None
        if end.timed_out:
            limit = "wall_time"
        elif (
            end.signal == signals.SIGXCPU or end.code == 128 + signals.SIGXCPU
        ):  # 128 + signal is how a shell reports the death of its child
            limit = "cpu_time"
        elif end.signal == signals.SIGXFSZ or end.code == 128 + signals.SIGXFSZ:
            limit = "file_size"
        elif self._dropped:
            limit = "output"
        return CommandResult(
            stdout=b"".join(self._parts[0]),
            stderr=b"".join(self._parts[1]),
            exit_code=end.code if end.code is not None else -(end.signal or 0),
            signal=end.signal,
            duration=end.duration,
            truncated=self._dropped,
            limit=limit,
        )


async def run_command(
    link: Link,
    request: dict[str, Any],
    stdin: bytes | None,
    output: int,
    timeout: float | None,
    *,
    counts: bool = True,
) -> CommandResult:
    """Cancelling this kills the command and everything it started.

    The guest enforces the command's own time limit. `timeout` is for a guest that fails to do so.
    """
    capture = OutputCapture(output)
    with link.use.hold_or_observe(counts):
        channel = capture.channel = link.open(request, capture, counts=counts)
        # A plain timer: `asyncio.timeout` takes several times as long, and a tenth of the host's part of a command.
        timer = None if timeout is None else asyncio.get_running_loop().call_later(timeout, _give_up, channel)
        try:
            if stdin:
                async with asyncio.timeout(timeout):
                    await channel.write(stdin)
            if stdin is not None:
                channel.send_end()
            await capture.done
        except TimeoutError:
            raise _unresponsive() from None
        finally:
            if timer is not None:
                timer.cancel()
            channel.close()
    return capture.result()


def _give_up(channel: Channel) -> None:
    channel.refuse(_unresponsive())


def _unresponsive() -> FreeholdError:
    return FreeholdError("computer.unresponsive", "The computer did not end a command at its time limit")


class Process(ChannelOperation):
    """A running process. Leaving its `async with`, or losing the link, kills it and everything it started."""

    def __init__(self) -> None:
        self.stdout = ChannelStream()
        self.stderr = ChannelStream()
        super().__init__(self.stdout, self.stderr)
        self.pid = 0
        self._exit: ProcessExit | None = None

    @classmethod
    async def start(cls, link: Link, request: dict[str, Any]) -> "Process":
        return await cls()._begin(link, request)

    @property
    def exit(self) -> ProcessExit | None:
        """None while it runs."""
        return self._exit

    async def write(self, data: bytes) -> None:
        """Write to stdin; waits while the process does not read. Does nothing once the process has ended."""
        await self._channel.write(data)

    def close_stdin(self) -> None:
        self._channel.send_end()

    def signal(self, number: int, *, group: bool = True) -> None:
        self._channel.send_message({"signal": int(number), "group": group})

    def terminate(self) -> None:
        self.signal(signals.SIGTERM)

    def kill(self) -> None:
        """Kill it and everything it started, daemons included."""
        self._channel.send_message({"kill": True})

    async def wait(self) -> ProcessExit:
        """How it ended. Raises if the link was lost; the guest then kills the process."""
        await asyncio.shield(self._over)
        if self._exit is None:
            raise self._error or FreeholdError("computer.ended", "The process was closed before it ended")
        return self._exit

    async def close(self) -> None:
        """Kill it if it runs. Does not wait for the guest's reply. Idempotent."""
        self._channel.close()
        self._finish(None)

    def data(self, stream: int, payload: memoryview) -> None:
        self._streams[stream].feed(bytes(payload))

    def end(self, stream: int) -> None:
        self._streams[stream].end()

    def message(self, message: dict[str, Any]) -> None:
        error = reply.read_error(message)
        if error is not None:
            self._error = error
        elif "exit" in message:
            self._exit = read_exit(message)
        elif not self._started.done():
            self.pid = reply.read_int(message, "pid", most=2**31)
            self._started.set_result(None)
