"""The link, from both ends: frames of a hostile guest against the host, and inputs of an owner against a real guest."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from tests.attack.target import RunRound

from freehold.computer import Computer
from freehold.computer.library import frames
from freehold.computer.library.batch import BatchCollector
from freehold.computer.library.channel import Channel, Receiver
from freehold.computer.library.link import Link, UnwantedChannel
from freehold.computer.library.process import OutputCapture, Process
from freehold.computer.library.terminal import Terminal
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError
from freehold.guest.guest import OPERATIONS

GUEST_SEQUENCES = 60
OWNER_REQUESTS = 120
ANSWER_TIMEOUT = 60.0

VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 7, 2**31, 2**63, 2**64, -(2**70), 1.5, 1e300, float("inf"), float("nan"), "", "x", "\0", "\ud800",
    "/", "..", "/proc/1/mem", "/proc/self/fd/0", "\udcff" * 300, "a" * 5000, "x/" * 40_000, "\U0001f600" * 20_000,
    "**/" * 500, "[" * 3000, "(a+)+$", [], [None], ["true"], ["sh", "-c", "exit"], ["x" * 100_000, "y" * 100_000], [[]],
    {}, {"a": 1}, {"": ""}, {"A": "x" * 200_000}, {"cpu_time": 2**70, "open_files": -1, "file_size": 0},
    [{"do": "read", "path": "x" * 3000}], [{"do": "list", "path": ".", "most": 5}], [{"do": "x" * 10_000}],
)  # fmt: skip
FIELDS = (
    "argv", "cwd", "env", "limits", "apart", "timeout", "capture", "linger", "stdin", "merge", "quiet", "rows", "cols",
    "scrollback", "id", "since", "port", "path", "do", "pattern", "glob", "skip", "most", "regex", "sockets", "window",
)  # fmt: skip
ITEM_FIELDS = ("path", "to", "offset", "length", "size", "mode", "depth", "most", "pattern", "skip", "after", "parents")
ITEMS = ("read", "write", "append", "stat", "list", "walk", "glob", "mkdir", "move", "copy", "remove", "chmod")
REPLY_KEYS = (
    "ok", "error", "part", "pid", "exit", "signal", "duration", "cpu", "memory", "reason", "dropped", "id", "argv", "rows",
    "cols", "began", "viewers", "ended", "position", "skipped", "listener",
)  # fmt: skip
REPLY_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**63, 2**70, 1.5, "", "x", "\ud800", "y" * 5000, [], [1], ["computer.x", "y"], ["files.x", "z" * 9000],
    ["keeper.x", "y"], [["a", "file", 1, 2, 3, None]], {}, {"a": []},
)  # fmt: skip


class Nowhere(asyncio.Transport):
    """A transport that drops what is written."""

    def write(self, data: object) -> None:
        return

    def abort(self) -> None:
        return

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        return


@asynccontextmanager
async def open_target(folder: Path) -> AsyncIterator[RunRound]:
    (folder / "workspace").mkdir()
    (folder / "home").mkdir()
    async with Computer.start(folder / "workspace", folder / "home") as computer:

        async def run_round(random: Random) -> int:
            for _ in range(GUEST_SEQUENCES):
                attack_host(random)
            await attack_guest(computer, random)
            return GUEST_SEQUENCES + OWNER_REQUESTS

        yield run_round


def attack_host(random: Random) -> None:
    """Frames in any order. The link ends with a protocol error or goes on; nothing else comes out of it."""
    link = Link(accept=lambda link, number, message: _adopt(link, number, message))
    link.connection_made(Nowhere())
    receivers: list[Receiver] = [OutputCapture(1000), Process(), BatchCollector(1, 100, 100), Terminal(), Tunnel()]
    for receiver in receivers:
        link.open({"op": "x"}, receiver)
    beside = OutputCapture(1000)
    channel = link.open({"op": "beside"}, beside)
    stream = frames.PREAMBLE + b"".join(_frame(random, channel) for _ in range(random.randrange(1, 40)))
    while stream and not link.ended.done():
        room = link.get_buffer(-1)
        size = min(len(room), len(stream), random.randrange(1, 3000))
        room[:size] = stream[:size]
        stream = stream[size:]
        link.buffer_updated(size)
    if link.ended.done():
        assert link.ended.result().code == "link.protocol", link.ended.result()
    else:
        assert not channel.is_closed, "a bad answer has ended the request beside it"
    link.close()


def _adopt(link: Link, number: int, message: dict[str, Any]) -> None:
    if message.get("listener") != 1:
        raise FreeholdError("link.protocol", "an unknown listener")
    link.adopt(number, UnwantedChannel())


def _frame(random: Random, beside: Channel) -> bytes:
    channel = random.choice((1, 3, 5, 7, 9, 1, 3, 5, 7, 9, 2, 4, 0, 77, 2**32 - 1))
    # Mostly answers that are well framed: those may harm their own request only.
    kind = random.choice((frames.MESSAGE,) * 6 + (frames.SIDE,) * 4 + tuple(range(12)))
    assert channel != beside.number
    if random.random() < 0.2:
        payload = random.randbytes(random.randrange(40))
    else:
        keys = random.sample(REPLY_KEYS, random.randrange(1, 4))
        payload = json.dumps({key: random.choice(REPLY_VALUES) for key in keys}).encode()
        if random.random() < 0.3:
            payload = payload[: random.randrange(len(payload))] + random.randbytes(2)
    return frames.HEADER.pack(len(payload), kind, channel) + payload + (b"" if random.random() < 0.99 else b"\xff")


async def attack_guest(computer: Computer, random: Random) -> None:
    """Requests that no owner means. Only they may fail: a running command answers afterwards on the same link."""
    link = computer._connection.link
    # Outside of the workspace: a request of an earlier round may have made it one that nobody can enter.
    async with await computer.spawn(["/bin/cat"], cwd="/", apart="turn") as turn:
        opened = []
        for _ in range(OWNER_REQUESTS):
            try:
                channel = link.open(_request(random), UnwantedChannel(), random.choice((frames.WINDOW, 1, 4096)))
            except (FreeholdError, ValueError):
                continue  # the host refuses it: too large for a frame, or no JSON
            opened.append(channel)
            for _ in range(random.randrange(3)):
                channel.send_message({random.choice(("signal", "rows", "close", "kill")): random.choice(VALUES[:14])})
            if random.random() < 0.3:
                await channel.write(random.randbytes(random.randrange(3000)), random.randrange(2))
            if random.random() < 0.3:
                channel.send_end(random.randrange(2))
            if random.random() < 0.5:
                channel.close()
        for channel in opened:
            channel.close()
        async with asyncio.timeout(ANSWER_TIMEOUT):
            await turn.write(b"here\n")
            assert await turn.stdout.read_exactly(5) == b"here\n"
    assert not link.ended.done(), link.ended.result()
    for info in await computer.terminals():
        await computer.close_terminal(info.id)
    await computer.end_sessions()


def _request(random: Random) -> dict[str, Any]:
    operation = random.choice(sorted(set(OPERATIONS) - {"shutdown", "sessions.end"}))
    if operation == "files" and random.random() < 0.8:
        return {"op": operation, "do": [_item(random) for _ in range(random.randrange(1, 4))]}
    fields = random.sample(FIELDS, random.randrange(6))
    request = {"op": operation, **{name: random.choice(VALUES) for name in fields}}
    if operation in ("spawn", "terminal") and random.random() < 0.7:
        request["argv"] = ["/bin/true"]
    request.pop("window", None)
    return request


def _item(random: Random) -> dict[str, Any]:
    fields = random.sample(ITEM_FIELDS, random.randrange(5))
    return {"do": random.choice((*ITEMS, "no-such", None)), **{name: random.choice(VALUES) for name in fields}}
