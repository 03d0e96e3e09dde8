"""Binds the ports of Freehold, and finds the program that uses a port that is taken."""

import errno
import os
import socket
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.keeper.processes import read_command


def bind_port(host: str, port: int, setting: str) -> list[socket.socket]:
    """Listening sockets for an address. For loopback both IPv4 and IPv6: a browser uses either for the same name.

    A program that had the other one (`ssh -L` takes what is free) would be the same site as ours for a browser.
    """
    first = _bind(host, port, setting)
    other = {"127.0.0.1": "::1", "localhost": "::1", "::1": "127.0.0.1"}.get(host)
    if other is None or not _has_address(other):
        return [first]
    try:
        return [first, _bind(other, first.getsockname()[1], setting)]
    except FreeholdError:
        first.close()
        raise


def check_port(host: str, port: int, setting: str) -> None:
    """Raise `keeper.port-taken` when a program of Freehold could not listen there."""
    if port:
        for listener in bind_port(host, port, setting):
            listener.close()


def _has_address(host: str) -> bool:
    """Whether this machine has the address. Some have no IPv6."""
    try:
        _listen(host, 0).close()
    except OSError:
        return False
    return True


def find_listener(port: int) -> str | None:
    """The process that listens on a port, as `name (pid N)`; None when this user may not see it."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            fields = row.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for name in os.listdir("/proc"):  # noqa: PTH208 - bare names, a thousand of them
        if not name.isdigit():
            continue
        try:
            for descriptor in Path(f"/proc/{name}/fd").iterdir():
                if str(descriptor.readlink()) in inodes:
                    return f"{read_command(int(name))[:80] or 'a process'} (pid {name})"
        except OSError:
            continue
    return None


def _bind(host: str, port: int, setting: str) -> socket.socket:
    try:
        return _listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            who = find_listener(port)
            raise FreeholdError(
                "keeper.port-taken",
                f"Port {port} ({setting}) is taken by {who or 'another program'}",
                hint=f"Stop it, or choose another {setting} in freehold.toml",
            ) from None
        raise FreeholdError(
            "keeper.cannot-listen",
            f"Cannot listen on {host} port {port} ({setting}): {error.strerror or error}",
            hint=f"Choose another address or port for {setting.partition('.')[0]} in freehold.toml",
        ) from None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm (a delay of 40 ms) only when the protocol is given as TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(128)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
