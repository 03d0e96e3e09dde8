"""The two ports of a virtual machine, with a machine that lies: the host's side believes nothing and never hangs."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from tests.support.condition import until

from freehold.computer.contract.transport import listen_at
from freehold.computer.microvm import vm_init
from freehold.computer.microvm.control import ControlPort
from freehold.computer.microvm.limits import read_usage
from freehold.computer.microvm.streams import (
    CLOSE,
    CREDIT,
    DATA,
    ENDED,
    HEAD,
    MAX_PAYLOAD,
    OPEN,
    WINDOW,
    StreamRelay,
)
from freehold.errors import FreeholdError


class FakeMachine:
    """The machine's end of the port `streams`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read_frame(self) -> tuple[int, int, int, bytes]:
        kind, number, amount = HEAD.unpack(await self._reader.readexactly(HEAD.size))
        return kind, number, amount, await self._reader.readexactly(amount) if kind == DATA else b""

    def send(self, kind: int, number: int, amount: int, content: bytes = b"") -> None:
        self._writer.write(HEAD.pack(kind, number, amount) + content)


@asynccontextmanager
async def relay(
    folder: Path, on_ended: Callable[[int], None] = lambda _: None
) -> AsyncIterator[tuple[FakeMachine, Path]]:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=theirs)
    found = StreamRelay(on_ended)
    await found.open(ours, listen_at(folder / "link"))
    try:
        async with asyncio.timeout(60):
            yield FakeMachine(reader, writer), folder / "link"
    finally:
        found.close()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def client(path: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_each_client_has_a_stream_of_its_own(tmp_path: Path) -> None:
    async with relay(tmp_path) as (machine, path), client(path) as (one, to_one), client(path) as (two, to_two):
        first, second = (await machine.read_frame())[1], (await machine.read_frame())[1]
        to_two.write(b"second")
        assert await machine.read_frame() == (DATA, second, 6, b"second")
        to_one.write(b"first")
        assert await machine.read_frame() == (DATA, first, 5, b"first")
        machine.send(DATA, first, 3, b"one")
        machine.send(DATA, second, 3, b"two")
        assert await two.readexactly(3) == b"two"
        assert await one.readexactly(3) == b"one"
        machine.send(CLOSE, first, 0)
        assert await one.read() == b""


async def test_a_client_that_does_not_read_stops_alone(tmp_path: Path) -> None:
    """The machine gets no more credit for its stream, and the others go on."""
    async with relay(tmp_path) as (machine, path), client(path) as (slow, _), client(path) as (quick, _):
        first, second = (await machine.read_frame())[1], (await machine.read_frame())[1]
        for _ in range(WINDOW // MAX_PAYLOAD):
            machine.send(DATA, first, MAX_PAYLOAD, b"x" * MAX_PAYLOAD)
        machine.send(DATA, second, 5, b"quick")
        assert await quick.readexactly(5) == b"quick"
        assert len(await slow.readexactly(WINDOW)) == WINDOW


async def test_a_client_that_sends_more_than_the_machine_takes_waits(tmp_path: Path) -> None:
    async with relay(tmp_path) as (machine, path), client(path) as (_, writer):
        _, number, _, _ = await machine.read_frame()
        sending = asyncio.ensure_future(_send_all(writer, b"y" * (4 * WINDOW)))
        received = 0
        while received < 4 * WINDOW:
            kind, _, amount, _ = await machine.read_frame()
            assert kind == DATA
            received += amount
            machine.send(CREDIT, number, amount)
        await sending


async def _send_all(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


@pytest.mark.parametrize(
    "frames",
    [
        [(DATA, 99, 3, b"abc")],
        [(CREDIT, 99, 2**32 - 1, b"")],
        [(CLOSE, 99, 0, b"")],
        [(OPEN, 7, 0, b"")],
        [(200, 1, 0, b"")],
        [(CREDIT, 1, 2**32 - 1, b"")] * 1000,
    ],
)
async def test_frames_that_mean_nothing_change_nothing(
    tmp_path: Path, frames: list[tuple[int, int, int, bytes]]
) -> None:
    async with relay(tmp_path) as (machine, path), client(path) as (reader, _):
        _, number, _, _ = await machine.read_frame()
        for frame in frames:
            machine.send(*frame)
        machine.send(DATA, number, 2, b"ok")
        assert await reader.readexactly(2) == b"ok"


async def test_a_frame_that_is_too_long_ends_all_streams(tmp_path: Path) -> None:
    async with relay(tmp_path) as (machine, path), client(path) as (reader, _):
        _, number, _, _ = await machine.read_frame()
        machine.send(DATA, number, MAX_PAYLOAD + 1)
        assert await _read_to_end(reader) == b""


async def test_a_machine_that_sends_more_than_it_was_granted_loses_the_stream(tmp_path: Path) -> None:
    async with relay(tmp_path) as (machine, path), client(path) as (reader, _), client(path) as (other, _):
        first, second = (await machine.read_frame())[1], (await machine.read_frame())[1]
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(64):
            machine.send(DATA, first, MAX_PAYLOAD, b"x" * MAX_PAYLOAD)
        machine.send(DATA, second, 2, b"ok")
        assert await other.readexactly(2) == b"ok"
        while (await machine.read_frame())[:2] != (CLOSE, first):
            pass


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_the_end_of_the_guest_is_told_once(tmp_path: Path) -> None:
    told: list[int] = []
    async with relay(tmp_path, told.append) as (machine, _):
        machine.send(ENDED, 0, 0xFFFF_FF07)
        await until(lambda: bool(told))
    assert told == [7]


def test_both_sides_have_the_same_numbers() -> None:
    assert (vm_init.OPEN, vm_init.DATA, vm_init.CREDIT, vm_init.CLOSE, vm_init.ENDED) == (
        OPEN,
        DATA,
        CREDIT,
        CLOSE,
        ENDED,
    )
    assert (vm_init.HEAD.format, vm_init.WINDOW, vm_init.MAX_PAYLOAD) == (HEAD.format, WINDOW, MAX_PAYLOAD)


@pytest.fixture
def control() -> Iterator[tuple[ControlPort, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(60)
    with closing(ControlPort(ours)) as port, theirs:
        yield port, theirs


def answer(machine: socket.socket, *lines: Callable[[int], bytes]) -> threading.Thread:
    """Answers the next request with these lines, which get its number."""

    def run() -> None:
        number = json.loads(machine.recv(65536))["id"]
        for line in lines:
            machine.sendall(line(number) + b"\n")

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_the_answer_to_a_request_that_was_given_up_is_not_taken_for_another(
    control: tuple[ControlPort, socket.socket],
) -> None:
    port, machine = control
    with pytest.raises(FreeholdError) as caught:
        port.ask("usage", 0.01)
    assert caught.value.code == "computer.unresponsive"
    late = json.loads(machine.recv(65536))["id"]
    machine.sendall(json.dumps({"id": late, "value": "old"}).encode() + b"\n")
    thread = answer(machine, lambda number: json.dumps({"id": number, "value": "new"}).encode())
    assert port.ask("usage")["value"] == "new"
    thread.join()


@pytest.mark.parametrize("line", [b"no json", b"[]", b"7", b"\xff\xfe"])
def test_an_answer_that_cannot_be_read_is_the_end(control: tuple[ControlPort, socket.socket], line: bytes) -> None:
    port, machine = control
    thread = answer(machine, lambda _: line)
    with pytest.raises(FreeholdError) as caught:
        port.ask("usage", 30)
    assert caught.value.code == "computer.ended"
    thread.join()


def test_an_answer_without_an_end_is_given_up(control: tuple[ControlPort, socket.socket]) -> None:
    port, machine = control

    def flood() -> None:
        machine.recv(65536)
        try:
            while True:
                machine.sendall(b"x" * 65536)
        except OSError:
            return

    thread = threading.Thread(target=flood)
    thread.start()
    with pytest.raises(FreeholdError):
        port.ask("usage", 30)
    port.close()
    thread.join()


@pytest.mark.parametrize("part", [b" ", b'{"id": 0}\n'])
def test_a_machine_that_answers_without_end_does_not_hold_up_the_host(
    control: tuple[ControlPort, socket.socket], part: bytes
) -> None:
    """One byte at a time, or answers that nobody asked for: the deadline holds."""
    port, machine = control
    over = threading.Event()

    def drip() -> None:
        while not over.wait(0.001):
            machine.sendall(part)

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        with pytest.raises(FreeholdError) as caught:
            port.ask("usage", 0.2)
        assert caught.value.code == "computer.unresponsive"
    finally:
        over.set()
        thread.join()


def test_counters_that_are_no_numbers_count_as_nothing(control: tuple[ControlPort, socket.socket]) -> None:
    port, machine = control
    odd: dict[str, object] = {
        "memory.current": "many",
        "memory.stat": None,
        "pids.current": [],
        "cpu.stat": "usage_usec x",
        "memory.events": 7,
    }
    thread = answer(machine, lambda number: json.dumps({**odd, "id": number}).encode())
    usage = read_usage(port, None, 30)
    assert (usage.memory, usage.processes, usage.cpu_seconds, usage.out_of_memory) == (0, 0, 0.0, 0)
    thread.join()
