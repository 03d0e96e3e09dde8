"""What bytes cost that pass two programs which do nothing else, and what encryption costs: the most that a fleet could do.

python -m bench.bare_programs relay DESCRIPTOR TARGET    joins one connection to a port of this machine or to a socket
python -m bench.bare_programs send PORT PIECES           sends over TLS, as a node does
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from freehold.fleet.certificates import FleetKey, make_own_pair, pinned_context
from freehold.fleet.wire import PIECE


@contextlib.contextmanager
def bare_relays(path: str) -> Iterator[Path]:
    """A socket that leads to the one at `path` by two programs and TCP, in the open."""
    with tempfile.TemporaryDirectory(prefix="fh-") as folder, contextlib.ExitStack() as stack:
        near = Path(folder) / "near"
        middle = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        entrance = stack.enter_context(socket.socket(socket.AF_UNIX))
        entrance.bind(str(near))
        entrance.listen()
        stack.enter_context(_started("relay", str(middle.fileno()), path, handed=middle))
        stack.enter_context(_started("relay", str(entrance.fileno()), str(middle.getsockname()[1]), handed=entrance))
        yield near


def time_tls(size: int) -> float:
    """Seconds of `size` bytes from one program to another over TLS, with both certificates known: nothing else is done."""
    own, peer = make_own_pair("own"), make_own_pair("peer")
    pieces, view = -(-size // PIECE), memoryview(bytearray(PIECE))
    with (
        tempfile.TemporaryDirectory(prefix="fh-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        keys = Path(folder) / "keys"
        keys.touch(0o600)
        keys.write_text("\0".join((peer.certificate, peer.key, own.certificate)))
        with _started("send", str(listener.getsockname()[1]), str(pieces), str(keys)):
            connection, _ = listener.accept()
            context = pinned_context(own, peer.certificate, server=True)
            with context.wrap_socket(connection, server_side=True) as stream:
                began, left = time.perf_counter(), pieces * PIECE
                stream.sendall(b"\0")  # it waits for that
                while left:
                    received = stream.recv_into(view)
                    if not received:
                        raise RuntimeError("the sender has ended")
                    left -= received
                return time.perf_counter() - began


@contextlib.contextmanager
def _started(*words: str, handed: socket.socket | None = None) -> Iterator[None]:
    descriptors = () if handed is None else (handed.fileno(),)
    process = subprocess.Popen([sys.executable, "-m", "bench.bare_programs", *words], pass_fds=descriptors)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _relay(descriptor: int, target: str) -> None:
    with socket.socket(fileno=descriptor) as listener:
        source, _ = listener.accept()
    if target.isdecimal():
        sink = socket.create_connection(("127.0.0.1", int(target)))
    else:
        sink = socket.socket(socket.AF_UNIX)
        sink.connect(target)
    threading.Thread(target=_pump, args=(sink, source), daemon=True).start()
    _pump(source, sink)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    view = memoryview(bytearray(PIECE))
    with contextlib.suppress(OSError):
        while received := source.recv_into(view):
            sink.sendall(view[:received])
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _send(port: int, pieces: int, keys: Path) -> None:
    certificate, key, peer = keys.read_text().split("\0")
    context = pinned_context(FleetKey(certificate, key), peer, server=False)
    data = os.urandom(PIECE)
    with socket.create_connection(("127.0.0.1", port)) as connection, context.wrap_socket(connection) as stream:
        stream.recv(1)
        for _ in range(pieces):
            stream.sendall(data)
        with contextlib.suppress(OSError):
            stream.recv(1)  # until the other side ends


if __name__ == "__main__":
    if sys.argv[1] == "relay":
        _relay(int(sys.argv[2]), sys.argv[3])
    else:
        _send(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
