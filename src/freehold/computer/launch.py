"""Starting a computer's machine: the socket it will be reached at, the guest it runs, the walls around it."""

import os
import socket
from pathlib import Path

from freehold.computer.backend import Backend, Machine
from freehold.computer.spec import ComputerSpec
from freehold.computer.zipapp import guest_zipapp
from freehold.errors import FreeholdError

_BACKLOG = 128


def listen_at(path: Path) -> socket.socket:
    """A listening socket that only our own uid may connect to, taking the place of a stale one."""
    if len(os.fsencode(path)) > 100:
        raise FreeholdError(
            "computer.bad-socket", f"{path} is too long for a socket", hint="Choose a shorter --home or run folder"
        )
    draft = path.with_name(f".{os.getpid()}-{os.urandom(3).hex()}")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Bound aside and renamed into place: the path never exists with a wider mode or without a listener behind it.
        listener.bind(str(draft))
        draft.chmod(0o600)
        listener.listen(_BACKLOG)
        draft.replace(path)
    except OSError as error:
        listener.close()
        draft.unlink(missing_ok=True)
        raise FreeholdError("computer.bad-socket", f"Cannot listen at {path}: {error.strerror}") from error
    return listener


async def launch(spec: ComputerSpec, socket_path: Path, backend: Backend | None = None) -> Machine:
    """Start a computer whose links are made at `socket_path`. It is up when this returns; connections made at once wait for it.

    The caller owns the machine: `await machine.stop()`.
    """
    if backend is None:
        backend = default_backend()
    listener = listen_at(socket_path)
    try:
        return await backend.start(spec, listener, guest_zipapp())
    except BaseException:
        socket_path.unlink(missing_ok=True)
        raise
    finally:
        listener.close()


def default_backend() -> Backend:
    from freehold.computer.bubblewrap import Bubblewrap  # starting one needs it, connecting to one does not

    return Bubblewrap()
