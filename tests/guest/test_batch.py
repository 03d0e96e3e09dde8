"""Operations with long replies: they always end with one, and wait for credit."""

import json
from collections.abc import Generator
from typing import Any

from tests.guest.link_bench import ChannelBench

from freehold.guest import wire
from freehold.guest.batch import BatchOperation

Steps = Generator[bool, None, Any]


class Rows(BatchOperation):
    def answer(self) -> Steps:
        yield from self.record({"ok": (yield from self.parts(self._rows(), 1000))})
        self._channel.finish()

    def _rows(self) -> Generator[Any, None, None]:
        for number in range(600):
            yield [number]


class Failing(BatchOperation):
    def answer(self) -> Steps:
        yield False
        raise RuntimeError("a bug of the operation")


def records(frames: list[tuple[int, bytes]]) -> list[Any]:
    return [json.loads(line) for line in b"".join(body for kind, body in frames if kind == wire.SIDE).splitlines()]


def test_rows_are_sent_in_records_and_counted(bench: ChannelBench) -> None:
    bench.channel.operation = Rows(bench.loop, bench.channel)
    *parts, last = records(bench.sent())
    assert [row for part in parts for row in part["part"]] == [[number] for number in range(600)]
    assert last == {"ok": {"count": 600, "more": False}}


def test_without_credit_it_waits_and_then_goes_on(bench: ChannelBench) -> None:
    bench.channel.credit[1] = 10
    bench.channel.operation = Rows(bench.loop, bench.channel)
    first = bench.sent()
    assert sum(len(body) for kind, body in first if kind == wire.SIDE) == 10
    bench.channel.credit[1] = 100_000
    bench.channel.operation.credited()
    frames = first + bench.sent()
    assert records(frames)[-1] == {"ok": {"count": 600, "more": False}}


def test_an_operation_that_fails_still_answers(bench: ChannelBench) -> None:
    bench.channel.operation = Failing(bench.loop, bench.channel)
    frames = bench.sent()
    (message,) = [json.loads(body) for kind, body in frames if kind == wire.MESSAGE]
    assert message == {"error": ["computer.failed", "RuntimeError: a bug of the operation"]}
    assert frames[-1] == (wire.CLOSE, b"")


def test_a_closed_operation_does_no_more_work(bench: ChannelBench) -> None:
    bench.channel.credit[1] = 10
    operation = bench.channel.operation = Rows(bench.loop, bench.channel)
    bench.sent()
    operation.closed()
    bench.channel.credit[1] = 100_000
    operation.credited()
    assert not bench.sent()
