"""Reserved ports and relays, inside one process."""

import _socket
import socket
from collections.abc import Callable

import pytest
from tests.guest.link_bench import ChannelBench
from tests.support.condition import wait_until

from freehold.guest import wire
from freehold.guest.relay import GuestForward, GuestListener, ReservedPorts
from freehold.guest.spawn import OperationError


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
        return found


def until_sent(bench: ChannelBench, wanted: Callable[[int, bytes], bool]) -> list[tuple[int, bytes]]:
    """The frames until one is as wanted: on a busy machine the kernel delivers also to this machine only later."""
    frames: list[tuple[int, bytes]] = []

    def is_sent() -> bool:
        frames.extend(bench.sent())
        return any(wanted(*frame) for frame in frames)

    wait_until(is_sent)
    return frames


def test_a_reserved_port_resets_connections_until_it_is_served(bench: ChannelBench, port: int) -> None:
    reserved = ReservedPorts(bench.loop, [port])
    with socket.create_connection(("127.0.0.1", port)) as client:

        def is_reset() -> bool:
            bench.turn()
            try:
                client.recv(1, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True
            raise AssertionError("it was answered or closed in order")

        wait_until(is_reset)
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", port))
    listener = GuestListener(bench.loop, bench.channel, {"port": port}, reserved)
    with socket.create_connection(("127.0.0.1", port)):
        frames = until_sent(bench, lambda kind, _: kind == wire.OPEN)
    assert [payload for kind, payload in frames if kind == wire.OPEN] == [b'{"listener":1}']
    assert reserved.claim(port) is None
    listener.closed()
    held = reserved.claim(port)
    assert held is not None
    held.close()


def test_only_reserved_ports_can_be_claimed(bench: ChannelBench) -> None:
    reserved = ReservedPorts(bench.loop, [])
    for port in (1, 3128, None, "3128", 1.5, [3128]):
        assert reserved.claim(port) is None


@pytest.mark.parametrize("port", [-1, 65536, "80", None, 1.5, [80]])
def test_what_is_not_a_port_is_refused(bench: ChannelBench, port: object) -> None:
    with pytest.raises(OperationError, match="not a port"):
        GuestForward(bench.loop, bench.channel, {"port": port})


def test_bytes_pass_in_both_directions(bench: ChannelBench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        forward = GuestForward(bench.loop, bench.channel, {"port": server.getsockname()[1]})
        bench.channel.operation = forward
        forward.data(0, b"early")
        connection, _ = server.accept()
        bench.turn()
        with connection:
            assert connection.recv(100) == b"early"
            bench.channel.operation.data(0, b"later")
            assert connection.recv(100) == b"later"
            connection.sendall(b"reply")
            connection.shutdown(socket.SHUT_WR)
            until_sent(bench, lambda kind, payload: (kind, payload) == (wire.DATA, b"reply"))
            bench.channel.operation.end(0)
            assert connection.recv(1) == b""
    until_sent(bench, lambda kind, _: kind == wire.CLOSE)


def test_a_refused_connection_is_an_error(bench: ChannelBench, port: int) -> None:
    GuestForward(bench.loop, bench.channel, {"port": port})
    until_sent(bench, lambda kind, payload: kind == wire.MESSAGE and b"computer.no-listener" in payload)


def test_a_stale_socket_is_replaced_and_a_file_is_not(bench: ChannelBench, tmp_path: object) -> None:
    path = f"{tmp_path}/socket"
    stale = _socket.socket(_socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    reserved = ReservedPorts(bench.loop, [])
    GuestListener(bench.loop, bench.channel, {"path": path}, reserved).closed()
    with open(path, "w") as file:  # noqa: PTH123
        file.write("mine")
    with pytest.raises(OperationError, match="Cannot listen"):
        GuestListener(bench.loop, bench.channel, {"path": path}, reserved)
    with open(path) as file:  # noqa: PTH123
        assert file.read() == "mine"
