"""A link of the guest without a host: bytes are fed by hand, operations record what they receive."""

import _socket
import socket
from typing import Any

from freehold.guest import wire
from freehold.guest.link import GuestChannel, GuestLink, Operation
from freehold.guest.loop import Loop


class Recorder(Operation):
    def __init__(self) -> None:
        self.heard: list[object] = []

    def data(self, stream: int, payload: bytes) -> None:
        self.heard.append((stream, payload))
        if payload == b"fault":
            raise RuntimeError("a fault of the operation's own")

    def end(self, stream: int) -> None:
        self.heard.append(("end", stream))

    def message(self, message: dict[str, Any]) -> None:
        self.heard.append(message)

    def closed(self) -> None:
        self.heard.append("closed")


class LinkBench:
    """A link with nobody at its other end, fed by hand."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.opened: list[Recorder] = []
        self.gone = False
        self.link = GuestLink(Loop(), _socket.socket(fileno=ours.detach()), self._begin, self._end)

    def _begin(self, channel: GuestChannel, request: dict[str, Any]) -> Operation:
        recorder = Recorder()
        self.opened.append(recorder)
        return recorder

    def _end(self, link: GuestLink) -> None:
        self.gone = True

    def __enter__(self) -> "LinkBench":
        return self

    def __exit__(self, *error: object) -> None:
        self.link.cut()
        self.theirs.close()


class ChannelBench:
    """A channel of a link, and the frames that were sent on it."""

    def __init__(self, bench: LinkBench) -> None:
        self.bench = bench
        bench.link._feed(wire.PREAMBLE + wire.encode_frame(wire.OPEN, 1, b"{}"))
        self.channel: GuestChannel = bench.link.channels[1]
        self.loop: Loop = bench.link._loop
        self.ended = 0

    def end(self) -> None:
        self.ended += 1

    def turn(self, rounds: int = 5) -> None:
        """Run the loop for some rounds, without waiting."""
        for _ in range(rounds):
            self.loop.call_later(0, lambda: setattr(self.loop, "running", False))
            self.loop.running = True
            self.loop.run()

    def sent(self) -> list[tuple[int, bytes]]:
        self.turn()
        self.bench.theirs.setblocking(False)
        data = b""
        try:
            while part := self.bench.theirs.recv(1 << 20):
                data += part
        except BlockingIOError:
            pass
        frames, at = [], len(wire.PREAMBLE) if data.startswith(wire.PREAMBLE) else 0
        while at < len(data):
            size, kind, _ = wire.HEADER.unpack_from(data, at)
            at += wire.HEADER.size
            frames.append((kind, data[at : at + size]))
            at += size
        return frames
