"""A network that fails: a proxy in front of a real server that cuts, hangs, slows down or garbles what passes."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Fault = Literal["none", "refused", "hung", "slow", "wrong", "cut", "torn"]
"""`cut`: what is sent arrives, and the connection is cut before an answer comes back. `torn`: half of it arrives."""
Address = tuple[str, int] | str
PIECE = 65536


class CutProxy:
    """Listens on a free loopback port, or on the Unix socket `path`, and passes everything on to `target`."""

    def __init__(self, target: Address, path: Path | None = None, *, names_target: bool = False) -> None:
        self._target = target
        self._path = path
        self._names_target = names_target
        self._fault: Fault = "none"
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.port = 0
        self._server = self._listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, fault: Fault) -> None:
        """From now on. Connections that are open meet it too."""
        with self._lock:
            self._fault = fault
            if fault in ("refused", "none"):
                for pair in self._pairs:
                    _cut(*pair)

    def close(self) -> None:
        self._over.set()
        self._server.close()
        with self._lock:
            for pair in self._pairs:
                _cut(*pair)

    def _name_target(self, data: bytes) -> bytes:
        """The head of an HTTP request then names the server behind, which may refuse every other name."""
        if not self._names_target or isinstance(self._target, str):
            return data
        return data.replace(b":%d\r\n" % self.port, b":%d\r\n" % self._target[1])

    def _listen(self) -> socket.socket:
        if self._path is not None:
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(self._path))
            self._path.chmod(0o777)
        else:
            server = socket.create_server(("127.0.0.1", self.port))
            self.port = server.getsockname()[1]
        server.listen(64)
        return server

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET)
        pair = (client, server)
        try:
            if self._fault == "refused":
                return
            server.connect(self._target)
            with self._lock:
                self._pairs.add(pair)
            answers = threading.Thread(target=self._pass, args=(server, client, "answer"), daemon=True)
            answers.start()
            self._pass(client, server, "request")
            answers.join()
        except OSError:
            pass
        finally:
            with self._lock:
                self._pairs.discard(pair)
            _cut(*pair)
            client.close()
            server.close()

    def _pass(self, source: socket.socket, sink: socket.socket, way: Literal["request", "answer"]) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE):
                fault = self._fault
                if way == "request":
                    data = self._name_target(data)
                elif fault == "cut":
                    break
                elif fault == "wrong":
                    data = b"\x00\xff{[<nonsense>]}\r\n" * 8
                if fault == "hung":
                    continue
                if fault == "torn" and way == "request":
                    sink.sendall(data[: len(data) // 2])
                    break
                if fault == "slow" and way == "answer":
                    for byte in data:
                        sink.sendall(bytes([byte]))
                        if self._over.wait(0.2) or self._fault != "slow":
                            break
                    continue
                sink.sendall(data)
        _cut(source, sink)


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def running_proxy(target: Address, path: Path | None = None, *, names_target: bool = False) -> Iterator[CutProxy]:
    proxy = CutProxy(target, path, names_target=names_target)
    try:
        yield proxy
    finally:
        proxy.close()
