"""What an escape would find on the host: things that only the walls protect, not their permissions."""

import contextlib
import ctypes
import os
import secrets
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IPC_CREAT, IPC_RMID = 0o1000, 0
ENVIRONMENT_NAME = "FREEHOLD_BAIT"


@dataclass(frozen=True)
class Bait:
    """A secret that every user of the host may read: in a file, at a socket, at a port, in shared memory, in the environment."""

    token: str
    folder: Path
    port: int
    memory_key: int

    def shown(self) -> dict[str, str | int]:
        """What the attempt is told, so that it need not guess. The token itself is left out."""
        return {
            "secret": str(self.folder / "secret"),
            "folder": str(self.folder),
            "socket": str(self.folder / "socket"),
            "abstract": self.abstract,
            "port": self.port,
            "memory_key": self.memory_key,
            "pid": os.getpid(),
        }

    @property
    def abstract(self) -> str:
        return f"freehold-bait-{self.folder.name}"


@contextlib.contextmanager
def placed_bait() -> Iterator[Bait]:
    """Create the bait, and remove all of it at the end."""
    token = secrets.token_hex(16)
    folder = Path(tempfile.mkdtemp(prefix="freehold-bait-"))
    key = secrets.randbelow(2**30) + 1
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        folder.chmod(0o755)
        (folder / "secret").write_text(token)
        (folder / "secret").chmod(0o644)
        port = socket.create_server(("127.0.0.1", 0))
        named = _listen(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        bait = Bait(token, folder, port.getsockname()[1], key)
        listeners = [port, named, _listen("\0" + bait.abstract)]
        for listener in listeners:
            stack.enter_context(listener)
        stack.enter_context(_answering(listeners, token.encode()))
        stack.enter_context(_shared_memory(key, token.encode()))
        os.environ[ENVIRONMENT_NAME] = token
        stack.callback(os.environ.pop, ENVIRONMENT_NAME, None)
        yield bait


def _listen(name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(name)
    listener.listen()
    return listener


@contextlib.contextmanager
def _answering(listeners: list[socket.socket], answer: bytes) -> Iterator[None]:
    """Send the secret to every client that connects."""
    wake, woken = socket.socketpair()

    def serve() -> None:
        while True:
            ready, _, _ = select.select([woken, *listeners], [], [])
            if woken in ready:
                return
            for listener in ready:
                with contextlib.suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(answer)

    thread = threading.Thread(target=serve, name="bait")
    thread.start()
    try:
        yield
    finally:
        wake.close()
        thread.join()
        woken.close()


@contextlib.contextmanager
def _shared_memory(key: int, content: bytes) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    identifier = libc.shmget(key, 4096, IPC_CREAT | 0o666)
    if identifier < 0:
        # A host without System V memory has none to protect.
        yield
        return
    try:
        address = libc.shmat(identifier, None, 0)
        ctypes.memmove(address, content, len(content))
        libc.shmdt(ctypes.c_void_p(address))
        yield
    finally:
        libc.shmctl(identifier, IPC_RMID, None)
