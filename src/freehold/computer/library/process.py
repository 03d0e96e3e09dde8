"""Commands inside: run to the end with their output captured, or spawned with streams."""

import asyncio
import signal as signals
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from freehold.computer import answers
from freehold.computer.channel import Channel
from freehold.computer.link import Link
from freehold.computer.spec import Limits
from freehold.computer.stream import Stream
from freehold.errors import FreeholdError

Command = str | Sequence[str]


@dataclass(frozen=True)
class Exit:
    """How a process ended: `code` or `signal`, never both."""

    code: int | None
    signal: int | None
    duration: float
    cpu: float
    memory: int
    timed_out: bool


@dataclass(frozen=True)
class Result:
    """A finished command. `exit_code` is negative for a signal, as in `subprocess`.

    `truncated` counts the bytes of stdout and stderr that were beyond the output limit and thrown away.
    `limit` names the field of `Limits` that ended it or that its output met.
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

    def check(self) -> "Result":
        """Itself, or an error that says what went wrong and which setting it met."""
        if self.limit is not None and self.limit != "output":
            raise FreeholdError(
                "computer.limit",
                f"The command met computer.limits.{self.limit} after {self.duration:.1f} s",
                hint=f"Raise computer.limits.{self.limit} in freehold.toml, or give the command less to do",
            )
        if self.exit_code:
            words = answers.printable(self.stderr[-500:].decode(errors="replace").strip())
            raise FreeholdError(
                "computer.command-failed", f"The command ended with {self.exit_code}: {words or 'it said nothing'}"
            )
        return self

    @property
    def text(self) -> str:
        """stdout as UTF-8, what is not being replaced."""
        return self.stdout.decode(errors="replace")


def _words(command: object) -> list[str]:
    """Only text travels: a Path or bytes would be refused further on, where nobody understands why."""
    if not isinstance(command, Sequence) or not all(isinstance(word, str) for word in command):
        raise FreeholdError(
            "computer.bad-request",
            f"A command is a line for the shell or a list of texts, not {command!r:.100}",
            hint='For example run("ls -l") or run(["ls", "-l"]); os.fsdecode makes text of bytes and paths',
        )
    return list(command)


def spawn_request(
    command: Command,
    cwd: str | None,
    env: Mapping[str, str | None] | None,
    limits: Mapping[str, int] | None,
    **more: object,
) -> dict[str, Any]:
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else _words(command)
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


def per_command(limits: Limits | None) -> dict[str, int] | None:
    """What of the limits is held for each command; all but the time has been set for the whole computer already."""
    if limits is None:
        return None
    return {"cpu_time": limits.cpu_time, "file_size": limits.file_size, "open_files": limits.open_files}


def read_exit(message: dict[str, Any]) -> Exit:
    return Exit(
        code=answers.whole_or_none(message, "exit"),
        signal=answers.whole_or_none(message, "signal"),
        duration=answers.number(message, "duration"),
        cpu=answers.number(message, "cpu"),
        memory=answers.whole(message, "memory"),
        timed_out=answers.text(message, "reason") == "timeout",
    )


class Capture:
    """Receiver that gathers a command's output up to a limit on each stream."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._parts: tuple[list[bytes], list[bytes]] = ([], [])
        self._sizes = [0, 0]
        self._dropped = 0
        self._exit: Exit | None = None
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
        self._error = self._error or answers.failure(message)
        if "exit" in message:
            self._exit = read_exit(message)
            self._dropped += sum(
                answers.whole({"dropped": count}, "dropped") for count in answers.items(message, "dropped", most=2)
            )

    def closed(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def lost(self, error: FreeholdError) -> None:
        self._error = error
        self.closed()

    def result(self) -> Result:
        if self._error is not None:
            raise self._error
        if self._exit is None:
            raise FreeholdError("link.protocol", "The computer closed a command without telling how it ended")
        end = self._exit
        limit: str | None = None
        if end.timed_out:
            limit = "wall_time"
        elif (
            end.signal == signals.SIGXCPU or end.code == 128 + signals.SIGXCPU
        ):  # a shell tells of its child's that way
            limit = "cpu_time"
        elif end.signal == signals.SIGXFSZ or end.code == 128 + signals.SIGXFSZ:
            limit = "file_size"
        elif self._dropped:
            limit = "output"
        return Result(
            stdout=b"".join(self._parts[0]),
            stderr=b"".join(self._parts[1]),
            exit_code=end.code if end.code is not None else -(end.signal or 0),
            signal=end.signal,
            duration=end.duration,
            truncated=self._dropped,
            limit=limit,
        )


async def run(link: Link, request: dict[str, Any], stdin: bytes | None, output: int, patience: float | None) -> Result:
    """Cancelling this ends the command with everything it started. `patience` is for a guest that keeps no time."""
    capture = Capture(output)
    channel = capture.channel = link.open(request, capture)
    try:
        if stdin:
            async with asyncio.timeout(patience):
                await channel.write(stdin)
        if stdin is not None:
            channel.send_end()
        if patience is None:
            await capture.done
        else:
            async with asyncio.timeout(patience):
                await capture.done
    except TimeoutError:
        raise FreeholdError("computer.unresponsive", "The computer did not end a command at its time limit") from None
    finally:
        channel.close()
    return capture.result()


class Process:
    """A running process. Leaving its `async with`, or losing the link, ends it with everything it started."""

    def __init__(self) -> None:
        self.stdout = Stream()
        self.stderr = Stream()
        self.pid = 0
        self._channel: Channel | None = None
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._exit: Exit | None = None
        self._error: FreeholdError | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def start(cls, link: Link, request: dict[str, Any]) -> "Process":
        process = cls()
        channel = process._channel = link.open(request, process)
        process.stdout.attach(channel, 0)
        process.stderr.attach(channel, 1)
        try:
            await process._started
        except asyncio.CancelledError:
            channel.close()
            raise
        if process._error is not None:
            raise process._error
        return process

    @property
    def exit(self) -> Exit | None:
        """None while it runs."""
        return self._exit

    async def write(self, data: bytes) -> None:
        """Feed stdin; waits while the process does not read. Does nothing once the process is gone."""
        await self._there.write(data)

    def close_stdin(self) -> None:
        self._there.send_end()

    def signal(self, number: int, *, group: bool = True) -> None:
        self._there.say({"signal": int(number), "group": group})

    def terminate(self) -> None:
        self.signal(signals.SIGTERM)

    def kill(self) -> None:
        """End it and everything it started, daemons included."""
        self._there.say({"kill": True})

    async def wait(self) -> Exit:
        """How it ended. Raises when the link was lost; the process is then ended by the guest."""
        await asyncio.shield(self._over)
        if self._exit is None:
            raise self._error or FreeholdError("computer.ended", "The process was given up")
        return self._exit

    async def close(self) -> None:
        """Idempotent. Does not wait for the guest's answer."""
        self._there.close()
        self._finish(None)

    @property
    def _there(self) -> Channel:
        if self._channel is None:
            raise FreeholdError("computer.ended", "The process was never started")
        return self._channel

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def data(self, stream: int, payload: memoryview) -> None:
        (self.stderr if stream else self.stdout).put(bytes(payload))

    def end(self, stream: int) -> None:
        (self.stderr if stream else self.stdout).end()

    def message(self, message: dict[str, Any]) -> None:
        error = answers.failure(message)
        if error is not None:
            self._error = error
        elif "exit" in message:
            self._exit = read_exit(message)
        elif not self._started.done():
            self.pid = answers.whole(message, "pid", most=2**31)
            self._started.set_result(None)

    def closed(self) -> None:
        self._finish(None)

    def lost(self, error: FreeholdError) -> None:
        self._finish(error)

    def _finish(self, error: FreeholdError | None) -> None:
        self._error = self._error or error
        self.stdout.end(error)
        self.stderr.end(error)
        for waiting in (self._started, self._over):
            if not waiting.done():
                waiting.set_result(None)
