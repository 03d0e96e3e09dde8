"""Reserved ports and relays, inside one process."""

import _socket
import socket

import pytest
from tests.guest.link_bench import ChannelBench

from freehold.guest import wire
from freehold.guest.relay import GuestForward, GuestListener, ReservedPorts
from freehold.guest.spawn import OperationError


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
        return found


def test_a_reserved_port_resets_connections_until_it_is_served(bench: ChannelBench, port: int) -> None:
    reserved = ReservedPorts(bench.loop, [port])
    with socket.create_connection(("127.0.0.1", port)) as client:
        bench.turn()
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", port))
    listener = GuestListener(bench.loop, bench.channel, {"port": port}, reserved)
    with socket.create_connection(("127.0.0.1", port)):
        opened = [payload for kind, payload in bench.sent() if kind == wire.OPEN]
    assert opened == [b'{"listener":1}']
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
            frames = bench.sent()
            assert (wire.DATA, b"reply") in frames
            bench.channel.operation.end(0)
            assert connection.recv(1) == b""
    assert (wire.CLOSE, b"") in bench.sent()


def test_a_refused_connection_is_an_error(bench: ChannelBench, port: int) -> None:
    GuestForward(bench.loop, bench.channel, {"port": port})
    assert any(kind == wire.MESSAGE and b"computer.no-listener" in payload for kind, payload in bench.sent())


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
