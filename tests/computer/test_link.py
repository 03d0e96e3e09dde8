"""A hostile guest can only lose its link; it cannot harm the host. A bad answer harms its own request only."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.computer.hostile import Peer, hostile_guest

from freehold.computer import Computer
from freehold.computer.contract.transport import SocketTransport
from freehold.computer.library import frames
from freehold.computer.library.link import MAX_GUEST_CHANNELS, MAX_NUMBER, MAX_UNSETTLED, Link
from freehold.computer.library.process import run_command
from freehold.computer.library.reply import MAX_ERROR_TEXT
from freehold.computer.library.request import send_request
from freehold.errors import FreeholdError


class Witness:
    """A receiver that records what it receives."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.over: asyncio.Future[FreeholdError | None] = asyncio.get_running_loop().create_future()

    def data(self, stream: int, payload: memoryview) -> None:
        self.heard.append((stream, bytes(payload)))

    def end(self, stream: int) -> None:
        self.heard.append(("end", stream))

    def message(self, message: dict[str, Any]) -> None:
        self.heard.append(message)

    def closed(self) -> None:
        self.over.set_result(None)

    def lost(self, error: FreeholdError) -> None:
        self.over.set_result(error)


@pytest.mark.parametrize(
    ("name", "kind", "channel", "payload"),
    [
        ("data on a channel that is not open", frames.DATA, 77, b"x"),
        ("a reply nobody asked for", frames.MESSAGE, 3, b'{"ok":true}'),
        ("a close of nothing", frames.CLOSE, 5, b""),
        ("more than was granted", frames.DATA, 1, b"x" * 200_000),
        ("a short credit", frames.GRANT, 1, b"\x00"),
        ("credit for stream 7", frames.GRANT, 1, frames.CREDIT.pack(7, 1)),
        ("credit without bounds", frames.GRANT, 1, frames.CREDIT.pack(0, 2**32 - 1)),
        ("a channel it may not open", frames.OPEN, 9, b"{}"),
        ("a channel for a listener that is not", frames.OPEN, 2, b'{"listener":1}'),
        ("a ping", frames.PING, 1, b""),
    ],
)
async def test_a_guest_that_violates_the_protocol_loses_its_link(
    tmp_path: Path, name: str, kind: int, channel: int, payload: bytes
) -> None:
    cut = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.receive_open()
        for _ in range(2):
            peer.send(kind, channel, payload)
        await peer.until_cut()
        cut.set()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        witness = Witness()
        link.open({"op": "anything"}, witness)
        error = await witness.over
        assert error is not None, name
        assert error.code == "link.protocol", name
        assert (await link.ended) is error
        await cut.wait()
        with pytest.raises(FreeholdError):
            link.open({"op": "again"}, Witness())


@pytest.mark.parametrize(
    ("name", "kind", "payload"),
    [
        ("a message that is not JSON", frames.MESSAGE, b"{"),
        ("a message that is a list", frames.MESSAGE, b"[]"),
        ("a deep message", frames.MESSAGE, b"[" * 100_000),
        ("a number without end", frames.MESSAGE, b'{"ok":' + b"9" * 5000 + b"}"),
        ("an error that is no pair", frames.MESSAGE, b'{"error":["computer.x"]}'),
        ("an error of another room", frames.MESSAGE, b'{"error":["keeper.gone","x"]}'),
        ("an exit that is no number", frames.MESSAGE, b'{"exit":"x"}'),
        ("an end of stream 9", frames.END, b"\x09"),
    ],
)
async def test_a_malformed_answer_ends_its_own_request_only(
    tmp_path: Path, name: str, kind: int, payload: bytes
) -> None:
    """The request beside it, which was open before, is answered on the same link."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        beside, _ = await peer.receive_open()
        broken, _ = await peer.receive_open()
        peer.send(kind, broken, payload)
        while (await peer.receive())[:2] != (frames.CLOSE, broken):
            continue
        peer.send(kind, broken, payload)  # sent before it saw the close
        peer.send(frames.CLOSE, broken)
        peer.send(frames.MESSAGE, beside, b'{"ok":1}')
        peer.send(frames.CLOSE, beside)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        beside = Witness()
        link.open({"op": "beside"}, beside)
        with pytest.raises(FreeholdError) as caught:
            await run_command(link, {"op": "spawn"}, None, 1000, None)
        assert caught.value.code == "link.protocol", name
        assert await beside.over is None
        assert beside.heard == [{"ok": 1}]
        assert not link.ended.done()
        link.close()


@pytest.mark.parametrize(
    "stdin", [None, b"short", b"x" * (frames.WINDOW + 1)], ids=["none", "short", "more than it takes"]
)
async def test_a_guest_that_never_ends_a_command_is_told_to_and_the_link_stays(
    tmp_path: Path, stdin: bytes | None
) -> None:
    told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def script(peer: Peer) -> None:
        await peer.greet()
        channel, _ = await peer.receive_open()
        while (await peer.receive())[0] != frames.CLOSE:
            pass
        told.set_result(channel)
        peer.send(frames.CLOSE, channel)
        channel, _ = await peer.receive_open()
        peer.send(frames.MESSAGE, channel, b'{"ok":true}')
        peer.send(frames.CLOSE, channel)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        with pytest.raises(FreeholdError) as caught:
            await run_command(link, {"op": "spawn", "argv": ["true"]}, stdin, 1000, 0.05)
        assert caught.value.code == "computer.unresponsive"
        assert await told == 1
        await send_request(link, {"op": "look"})
        link.close()


async def test_a_long_error_text_is_cut_and_fails_its_own_request_only(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        while True:
            channel, payload = await peer.receive_open()
            words = "x" * (200_000 if b"long" in payload else 1)
            peer.send(frames.MESSAGE, channel, b'{"error":["files.failed","%s"]}' % words.encode())
            peer.send(frames.CLOSE, channel)

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        for op, shown in (("long", "x" * MAX_ERROR_TEXT + "…"), ("short", "x")):
            with pytest.raises(FreeholdError) as caught:
                await send_request(link, {"op": op})
            assert (caught.value.code, caught.value.message) == ("files.failed", shown)
        link.close()


async def test_a_channel_for_a_listener_that_was_just_closed_is_refused_alone(tmp_path: Path) -> None:
    """The host closes a port while a program inside connects to it: an owner's `ssh -R` that ends."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        channel, _ = await peer.receive_open()
        peer.send(frames.OPEN, 2, b'{"listener":7}')
        while (await peer.receive())[:2] != (frames.CLOSE, 2):
            continue
        peer.send(frames.CLOSE, 2)
        peer.send(frames.OPEN, 2, b"not JSON")  # the number is free again
        while (await peer.receive())[:2] != (frames.CLOSE, 2):
            continue
        peer.send(frames.MESSAGE, channel, b'{"ok":[]}')
        peer.send(frames.CLOSE, channel)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path, Computer.connect(path) as computer:
        assert await computer.terminals() == []
        assert computer.is_connected


async def test_channel_numbers_begin_again_after_the_largest(tmp_path: Path) -> None:
    """A link may live for years. Numbers that are in use are passed over."""
    seen: list[int] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        while True:
            seen.append((await peer.receive_open())[0])
            peer.send(frames.MESSAGE, seen[-1], b"{}")

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        await send_request(link, {"op": "first"})
        link.open({"op": "stays"}, Witness())
        link._next = MAX_NUMBER - 2
        for _ in range(2):
            link.open({"op": "x"}, Witness())
        await send_request(link, {"op": "last"})
        assert seen == [1, 3, MAX_NUMBER, 5, 7]
        link.close()


async def test_garbage_instead_of_a_greeting_is_refused(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        peer.send_raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        with pytest.raises(FreeholdError) as caught:
            await Link.connect(SocketTransport(path))
    assert caught.value.code == "link.protocol"


async def test_another_version_is_refused_at_the_handshake(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet(b"freehold-link 99")
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        with pytest.raises(FreeholdError) as caught:
            await Link.connect(SocketTransport(path))
    assert caught.value.code == "link.version"


async def test_the_guest_refuses_another_version(computer: Computer, tmp_path: Path) -> None:
    """And still serves clients of its own version."""
    reader, writer = await asyncio.open_unix_connection(computer.transport.address)
    writer.write(b"freehold-link 02")
    assert await reader.read() == frames.PREAMBLE
    writer.close()
    await writer.wait_closed()
    assert (await computer.run("echo still here")).stdout == b"still here\n"


async def test_requests_that_are_given_up_too_fast_are_refused_and_the_link_stays(tmp_path: Path) -> None:
    """A guest that is busy for a moment has not ended them yet. Running turns must not pay for that."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        beside, _ = await peer.receive_open()
        closed: list[int] = []
        while len(closed) < MAX_UNSETTLED:
            kind, channel, _ = await peer.receive()
            if kind == frames.CLOSE:
                closed.append(channel)
        for channel in closed:
            peer.send(frames.CLOSE, channel)
        peer.send(frames.CLOSE, beside)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        beside = Witness()
        link.open({"op": "beside"}, beside)
        for _ in range(MAX_UNSETTLED):
            link.open({"op": "x"}, Witness()).close()
        with pytest.raises(FreeholdError) as caught:
            link.open({"op": "x"}, Witness())
        assert caught.value.code == "computer.busy"
        assert await beside.over is None
        link.open({"op": "x"}, Witness())  # it has caught up
        link.close()


async def test_a_guest_that_opens_too_many_channels_loses_its_link(tmp_path: Path) -> None:
    def take(link: Link, number: int, message: dict[str, Any]) -> None:
        link.adopt(number, Witness())

    async def script(peer: Peer) -> None:
        await peer.greet()
        for number in range(MAX_GUEST_CHANNELS + 1):
            peer.send(frames.OPEN, 2 * number + 2, b"{}")
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path), accept=take)
        assert (await link.ended).code == "link.protocol"


async def test_a_guest_that_reads_nothing_gets_no_more_requests_before_memory_is_full(tmp_path: Path) -> None:
    """What was asked before is still answered once it reads."""
    refused = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await refused.wait()
        channel, _ = await peer.receive_open()
        peer.send(frames.CLOSE, channel)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        first = Witness()
        request = {"op": "x" * 200_000}
        link.open(request, first)
        with pytest.raises(FreeholdError, match="has not read") as caught:
            await _open_without_end(link, request)
        assert caught.value.code == "computer.busy"
        refused.set()
        assert await first.over is None
        link.close()


async def _open_without_end(link: Link, request: dict[str, Any]) -> None:
    while True:
        link.open(request, Witness())
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("name", "payloads"),
    [
        ("answers without end", [b'{"ok":1}\n' * 10_000]),
        ("rows without end", [b'{"part":[' + b"1," * 90_000 + b"1]}\n"] * 40),
        ("a record without end", [b"x" * 200_000] * 40),
        ("a record that is no JSON", [b"x\n"]),
        ("a record that says nothing", [b"{}\n"]),
        ("an error of another room", [b'{"error":["keeper.gone","x"]}\n']),
        ("a row that is none", [b'{"part":[["a","file",1]]}\n{"ok":{}}\n']),
    ],
)
async def test_malformed_replies_about_files_are_refused(tmp_path: Path, name: str, payloads: list[bytes]) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        channel, _ = await peer.receive_open()
        for payload in payloads:
            peer.send(frames.SIDE, channel, payload)
            if len(payloads) > 1:
                while (await peer.receive())[0] != frames.GRANT:
                    continue
        peer.send(frames.CLOSE, channel)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path, Computer.connect(path) as computer:
        with pytest.raises(FreeholdError) as caught:
            await computer.files.list(limit=1_000_000)
        assert caught.value.code == "link.protocol", name


async def test_frames_sent_before_the_guest_saw_a_close_are_accepted(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        channel, _ = await peer.receive_open()
        kind = 0
        while kind != frames.CLOSE:
            kind, _, _ = await peer.receive()
        peer.send(frames.DATA, channel, b"late")
        peer.send(frames.MESSAGE, channel, b"{}")
        peer.send(frames.END, channel, b"\0")
        peer.send(frames.CLOSE, channel)
        channel, _ = await peer.receive_open()
        peer.send(frames.MESSAGE, channel, b'{"ok":1}')
        peer.send(frames.CLOSE, channel)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        link.open({"op": "first"}, Witness()).close()
        witness = Witness()
        link.open({"op": "second"}, witness)
        assert await witness.over is None
        assert witness.heard == [{"ok": 1}]
        link.close()


KINDS = st.integers(0, 12)
CHANNELS = st.sampled_from([0, 1, 2, 3, 4, 5, 2**32 - 1])
PAYLOADS = st.one_of(
    st.binary(max_size=64),
    st.sampled_from(
        [
            b"{}",
            b'{"pid":1}',
            b'{"exit":0}',
            b'{"error":["computer.x","y"]}',
            b'{"error":[1]}',
            b'{"listener":1}',
            b"\0",
            b"\1\0\0\0\1",
        ]
    ),
)


@settings(deadline=None)
@given(st.lists(st.tuples(KINDS, CHANNELS, PAYLOADS), max_size=30))
def test_every_sequence_of_frames_is_accepted_or_a_protocol_error(sent: list[tuple[int, int, bytes]]) -> None:
    """Random frames on a link with waiting commands and file operations."""
    from freehold.computer.library.batch import BatchCollector
    from freehold.computer.library.process import OutputCapture, Process
    from freehold.computer.library.terminal import Terminal

    class Nowhere(asyncio.Transport):
        def write(self, data: object) -> None:
            pass

        def abort(self) -> None:
            pass

        def get_write_buffer_size(self) -> int:
            return 0

        def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
            pass

    async def drive() -> None:
        link = Link()
        link.connection_made(Nowhere())
        for receiver in (OutputCapture(1000), Process(), BatchCollector(1, 100, 100), Terminal()):
            link.open({"op": "x"}, receiver)
        stream = frames.PREAMBLE + b"".join(
            frames.HEADER.pack(len(payload), kind, channel) + payload for kind, channel, payload in sent
        )
        while stream and not link.ended.done():
            room = link.get_buffer(-1)
            size = min(len(room), len(stream), 100)
            room[:size] = stream[:size]
            stream = stream[size:]
            link.buffer_updated(size)
        if link.ended.done():
            assert link.ended.result().code == "link.protocol"
        link.close()

    asyncio.run(drive())


async def test_a_broken_link_does_not_affect_another(computer: Computer, tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.receive_open()
        peer.send_raw(b"\xff" * 100_000)
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        link.open({"op": "x"}, Witness())
        assert (await link.ended).code == "link.protocol"
    assert (await computer.run("echo fine")).stdout == b"fine\n"
