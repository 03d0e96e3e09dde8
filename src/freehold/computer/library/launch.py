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
    """A listening socket that only our own uid may connect to. The path must not exist."""
    if len(os.fsencode(path)) > 100:
        raise FreeholdError(
            "computer.bad-socket", f"{path} is too long for a socket", hint="Choose a shorter --home or run folder"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # nobody could connect before: it does not listen yet
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise FreeholdError("computer.bad-socket", f"Cannot listen at {path}: {error.strerror}") from error
    return listener


async def launch(spec: ComputerSpec, socket_path: Path, backend: Backend | None = None) -> Machine:
    """Start a computer whose links are made at `socket_path`. It is up when this returns; connections made at once wait for it.

    The caller owns the machine: `await machine.stop()`.
    """
    if backend is None:
        backend = default_backend()
    # The path appears, in the place of a stale one, when every wall stands and every limit is set: a client that keeps
    # trying must not get in before that.
    draft = socket_path.with_name(f"{socket_path.name}.{os.urandom(3).hex()}")
    listener = listen_at(draft)
    try:
        machine = await backend.start(spec, listener, guest_zipapp())
        try:
            draft.replace(socket_path)
        except BaseException:
            await machine.stop(0)
            raise
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        listener.close()
    return machine


def default_backend() -> Backend:
    from freehold.computer.bubblewrap import Bubblewrap  # starting one needs it, connecting to one does not

    return Bubblewrap()
