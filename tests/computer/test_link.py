"""A hostile guest can only lose its link; it cannot harm the host."""

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
from freehold.computer.library.link import MAX_GUEST_CHANNELS, MAX_UNSETTLED, Link
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
        ("a message that is not JSON", frames.MESSAGE, 1, b"{"),
        ("a message that is a list", frames.MESSAGE, 1, b"[]"),
        ("a deep message", frames.MESSAGE, 1, b"[" * 100_000),
        ("an end of stream 9", frames.END, 1, b"\x09"),
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


async def test_a_guest_that_does_not_close_channels_loses_its_link(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.until_cut()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        for _ in range(MAX_UNSETTLED + 1):
            link.open({"op": "x"}, Witness()).close()
        assert (await link.ended).code == "link.protocol"


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


async def test_a_guest_that_reads_nothing_loses_its_link_before_memory_is_full(tmp_path: Path) -> None:
    done = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await done.wait()

    async with hostile_guest(tmp_path / "link", script) as path:
        link = await Link.connect(SocketTransport(path))
        request = {"op": "x" * 200_000}
        with pytest.raises(FreeholdError, match="has not read"):
            await _open_without_end(link, request)
        done.set()


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
