"""Requests that no honest host sends: each is answered with an error or served, and the guest lives on."""

import asyncio
import random
from typing import Any

import pytest
from tests.support.condition import DEADLINE

from freehold.computer import Computer
from freehold.computer.library.batch import send_batch
from freehold.computer.library.channel import Channel
from freehold.errors import FreeholdError
from freehold.guest.guest import OPERATIONS

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, 1.5, "", "x", "\0", "/", "..", "/proc/1/mem", "\udcff", "a" * 5000,
    [], [None], ["true"], ["sh", "-c", "exit"], [[]], {}, {"a": 1}, {"": ""}, [{"do": "read"}], [{"do": "x"}], [{"do": None}],
]  # fmt: skip
FIELDS = (
    "argv", "cwd", "env", "limits", "apart", "timeout", "capture", "linger", "stdin", "merge", "quiet", "rows", "cols",
    "scrollback", "id", "since", "port", "path", "do", "pattern", "glob", "skip", "most", "regex", "sockets", "offset",
    "length", "size", "to", "mode", "depth",
)  # fmt: skip
OPS = sorted(set(OPERATIONS) - {"shutdown"})
MESSAGES: list[dict[str, Any]] = [
    {"signal": 99}, {"signal": "x"}, {"signal": -1}, {"rows": 0, "cols": "x"}, {"rows": 10**9, "cols": 1}, {"close": []},
    {"kill": None}, {}, {"group": {}},
]  # fmt: skip


class Sink:
    """Receives whatever comes, and counts nothing."""

    def __init__(self) -> None:
        self.channel: Channel | None = None

    def data(self, stream: int, payload: memoryview) -> None:
        if self.channel is not None:
            self.channel.grant(stream, len(payload))

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        return

    def closed(self) -> None:
        return

    def lost(self, error: FreeholdError) -> None:
        return


@pytest.mark.parametrize("seed", range(4))
async def test_no_request_ends_the_guest(computer: Computer, seed: int) -> None:
    chance = random.Random(seed)
    link = computer._connection.link
    for number in range(300):
        fields = chance.sample(FIELDS, chance.randrange(6))
        request = {
            "op": chance.choice([*OPS, *OPS, None, 1, "no-such", [], {}]),
            **{name: chance.choice(VALUES) for name in fields},
        }
        sink = Sink()
        channel = sink.channel = link.open(request, sink)
        for _ in range(chance.randrange(3)):
            channel.send_message(chance.choice(MESSAGES))
        if chance.random() < 0.3:
            await channel.write(b"x" * chance.randrange(1000), chance.randrange(2))
        if chance.random() < 0.3:
            channel.send_end(chance.randrange(2))
        if chance.random() < 0.7:
            channel.close()
        if number % 50 == 0:
            async with asyncio.timeout(DEADLINE):
                assert (await computer.run("echo fine")).stdout == b"fine\n"
    assert not link.ended.done(), link.ended.result() if link.ended.done() else ""
    async with asyncio.timeout(DEADLINE):
        assert (await computer.run("echo fine")).stdout == b"fine\n"


@pytest.mark.parametrize(
    "do", [None, 1, "read", {"do": "read"}, [1], [{}], [{"do": "write", "path": "x"}], [{"do": "list", "path": "."}]]
)
async def test_a_malformed_file_request_is_an_error(computer: Computer, do: Any) -> None:
    async def ask() -> None:
        async with asyncio.timeout(DEADLINE):
            (result,) = await send_batch(computer._connection.link, {"op": "files", "do": do}, 1)
            result.value()

    with pytest.raises(FreeholdError) as caught:
        await ask()
    assert caught.value.code in ("files.bad-request", "computer.bad-request")
    assert (await computer.run("echo fine")).ok
