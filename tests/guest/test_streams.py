"""Between descriptors and a channel: credit, captures, and both ends of a pipe."""

import os
from collections.abc import Iterator

import pytest
from tests.guest.link_bench import ChannelBench

from freehold.guest import wire
from freehold.guest.streams import StreamSink, StreamSource


def contents(frames: list[tuple[int, bytes]], kind: int = wire.DATA) -> bytes:
    return b"".join(payload for one, payload in frames if one == kind)


def test_a_source_sends_what_is_written_and_its_end(bench: ChannelBench) -> None:
    reading, writing = os.pipe()
    source = StreamSource(bench.loop, bench.channel, 0, reading, bench.end)
    os.write(writing, b"hello")
    assert contents(bench.sent()) == b"hello"
    os.close(writing)
    assert (wire.END, b"\0") in bench.sent()
    assert bench.ended == 1
    assert not source.live


def test_a_source_stops_without_credit_and_goes_on_with_it(bench: ChannelBench) -> None:
    reading, writing = os.pipe()
    bench.channel.credit[0] = 3
    source = StreamSource(bench.loop, bench.channel, 0, reading, bench.end)
    os.write(writing, b"hello")
    assert contents(bench.sent()) == b"hel"
    assert contents(bench.sent()) == b""
    bench.channel.credit[0] = 100
    source.resume()
    assert contents(bench.sent()) == b"lo"
    source.close()
    source.close()
    os.close(writing)


def test_a_capture_counts_what_it_drops(bench: ChannelBench) -> None:
    reading, writing = os.pipe()
    source = StreamSource(bench.loop, bench.channel, 1, reading, bench.end, capture=4, quiet=True)
    os.write(writing, b"0123456789")
    os.close(writing)
    frames = bench.sent()
    assert contents(frames, wire.SIDE) == b"0123"
    assert source.dropped == 6
    assert not [kind for kind, _ in frames if kind == wire.END]


def test_a_sink_writes_and_grants_as_the_reader_reads(bench: ChannelBench) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    sink = StreamSink(bench.loop, bench.channel, 0, writing)
    block = b"x" * 100_000
    sink.write(block)
    assert sum(wire.CREDIT.unpack(payload)[1] for kind, payload in bench.sent() if kind == wire.GRANT) < len(block)
    received = b""
    while len(received) < len(block):
        received += os.read(reading, 1 << 20)
        bench.turn()
    assert received == block
    sink.end()
    assert os.read(reading, 10) == b""
    assert not sink.live
    os.close(reading)


def test_a_sink_without_a_reader_lets_the_host_go_on(bench: ChannelBench) -> None:
    reading, writing = os.pipe()
    sink = StreamSink(bench.loop, bench.channel, 0, writing)
    os.close(reading)
    sink.write(b"lost")
    assert not sink.live
    sink.write(b"also lost")
    granted = sum(wire.CREDIT.unpack(payload)[1] for kind, payload in bench.sent() if kind == wire.GRANT)
    assert granted == len(b"lostalso lost")


def test_a_long_job_does_not_hold_up_a_timer(bench: ChannelBench) -> None:
    """Jobs run in slices; timers and descriptors have their turn between them."""
    fired: list[int] = []
    steps: list[int] = []

    def endless() -> Iterator[bool]:
        while not fired:
            steps.append(1)
            yield False

    bench.loop.add_job(endless())
    bench.loop.call_later(0.02, lambda: fired.append(len(steps)))
    while not fired:
        bench.turn(1)
    assert fired[0] > 0


def test_a_job_that_fails_harms_no_other(bench: ChannelBench, capfd: pytest.CaptureFixture[str]) -> None:
    def fails() -> Iterator[bool]:
        yield False
        raise RuntimeError("broken")

    done: list[int] = []

    def works() -> Iterator[bool]:
        yield False
        done.append(1)

    bench.loop.add_job(fails())
    bench.loop.add_job(works())
    bench.turn()
    assert done == [1]
