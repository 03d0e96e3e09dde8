"""Hands the listening socket, the standard error and the system-call filters to pid 1 of a container.

A container inherits no descriptor. Its pid 1 therefore begins as a few lines that connect to a socket which is shown
inside, receive the descriptors and the filters, apply the filters, and become the guest. The socket is removed from the
host before the guest starts anything, and nobody but that pid 1 is answered.
"""

import contextlib
import os
import select
import socket
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

from freehold.computer.contract.conventions import GUEST_PATH, GUEST_PYTHON, RESERVED_PORTS
from freehold.errors import FreeholdError

FOLDER_INSIDE = "/run/freehold"
NAME = "handover"
HANDOVER_TIMEOUT = 30.0
_CREDENTIALS = struct.Struct("3i")
_PROGRAM = f"""
import _socket, _ctypes, os, sys
class Byte(_ctypes._SimpleCData):  # importing ctypes would take longer than all the rest
    _type_ = "c"
s = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
s.connect({f"{FOLDER_INSIDE}/{NAME}"!r})
head, rights, _, _ = s.recvmsg(8, 64)
listener, errors = (int.from_bytes(rights[0][2][at:at + 4], "little") for at in (0, 4))
size, data = int.from_bytes(head, "little"), b""
while len(data) < size:
    part = s.recv(size - len(data))
    if not part:
        sys.exit("the filters did not arrive")
    data += part
s.close()
for name in set(os.environ) - set(sys.argv[1:]):
    del os.environ[name]
try:
    # Once it is set it cannot be changed: what happens inside is never recorded as done by another user.
    with open("/proc/self/loginuid", "w") as file:
        file.write(str(os.getuid()))
except OSError:
    pass
os.dup2(errors, 2)
os.close(errors)
libc = _ctypes.dlopen(None, 0)
def prctl(*words):
    if _ctypes.call_function(_ctypes.dlsym(libc, "prctl"), words):
        sys.exit("a wall could not be built")
prctl(38, 1, 0, 0, 0)
while data:
    length = int.from_bytes(data[:4], "little")
    program, data = (Byte * length).from_buffer_copy(data[4:4 + length]), data[4 + length:]
    prctl(22, 2, (length // 8).to_bytes(8, "little") + _ctypes.addressof(program).to_bytes(8, "little"), 0, 0)
sys.argv = ["guest", "--listen", str(listener), "--hold", {",".join(map(str, RESERVED_PORTS))!r}]
import zipimport
exec(zipimport.zipimporter({GUEST_PATH!r}).get_code("__main__"))
"""
COMMAND = (GUEST_PYTHON, "-I", "-S", "-E", "-c", _PROGRAM)
"""What a container starts, with the names of the variables that stay as arguments; the engine adds some of its own.

It ends with an error if a filter cannot be applied.
"""


class Handover:
    """The host's side. `folder` is shown in the container at FOLDER_INSIDE; close it when the machine has ended."""

    def __init__(self, uid: int) -> None:
        self._uid = uid
        self.folder = Path(tempfile.mkdtemp(prefix="freehold-handover-"))
        self.folder.chmod(0o711)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.folder / NAME))
        (self.folder / NAME).chmod(0o666)  # the folder has a name that nobody can guess, and its peer is checked
        self._listener.listen(1)
        self._listener.settimeout(HANDOVER_TIMEOUT)

    def give(self, pid: int, descriptors: Sequence[int], filters: Sequence[bytes]) -> None:
        """Hand over to the process with this pid and nobody else. Raises `computer.no-isolation`."""
        with self._await_peer(pid) as peer:
            peer.settimeout(HANDOVER_TIMEOUT)
            found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(found)[:2] != (pid, self._uid):
                raise FreeholdError(
                    "computer.no-isolation",
                    "Another process than the guest asked for the link",
                    hint="Run Freehold and the engine in the same pid namespace of one machine",
                )
            programs = b"".join(struct.pack("<I", len(program)) + program for program in filters)
            socket.send_fds(peer, [struct.pack("<Q", len(programs))], list(descriptors))
            peer.sendall(programs)
        self.withdraw()

    def _await_peer(self, pid: int) -> socket.socket:
        """Whoever connects first. Not waited for longer than the process lives."""
        try:
            ended = os.pidfd_open(pid)
        except ProcessLookupError:
            raise _not_started("The guest ended before it took its link") from None
        try:
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            poll.register(self._listener, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll(HANDOVER_TIMEOUT * 1000)}
        finally:
            os.close(ended)
        if self._listener.fileno() in ready:
            return self._listener.accept()[0]
        if ready:
            raise _not_started("The guest ended before it took its link")
        raise _not_started(f"The guest did not start within {HANDOVER_TIMEOUT:.0f} s")

    def withdraw(self) -> None:
        """Nothing inside finds the socket any more. Idempotent."""
        self._listener.close()
        (self.folder / NAME).unlink(missing_ok=True)

    def close(self) -> None:
        self.withdraw()
        with contextlib.suppress(OSError):
            for left in self.folder.iterdir():
                left.unlink()
            self.folder.rmdir()


def _not_started(message: str) -> FreeholdError:
    return FreeholdError(
        "computer.no-isolation",
        message,
        hint="The image must have a working /usr/bin/python3; freehold doctor tries it",
    )
