import asyncio
import os

import pytest
from tests.support.condition import until

from freehold.computer import Computer, Tunnel
from freehold.errors import FreeholdError

SERVER = """
import socket, sys, threading
kind, where = sys.argv[1:]
family = socket.AF_INET if kind == "port" else socket.AF_UNIX
server = socket.socket(family)
server.bind(("127.0.0.1", int(where)) if kind == "port" else where)
server.listen(200)
print("up", flush=True)
def serve(connection):
    while data := connection.recv(65536):
        connection.sendall(data.upper())
    connection.sendall(b"<end>")
    connection.close()
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""

CLIENT = """
import socket, sys
kind, where, size = sys.argv[1:]
client = socket.socket(socket.AF_INET if kind == "port" else socket.AF_UNIX)
client.connect(("127.0.0.1", int(where)) if kind == "port" else where)
import threading
threading.Thread(target=lambda: (client.sendall(b"x" * int(size)), client.shutdown(socket.SHUT_WR))).start()
got = b""
while data := client.recv(65536):
    got += data
sys.stdout.buffer.write(got)
"""


async def echo(tunnel: Tunnel) -> None:
    while data := await tunnel.read():
        await tunnel.write(data.upper())
    await tunnel.write(b"<end>")
    await tunnel.write_eof()


@pytest.mark.parametrize("where", [8123, "/tmp/server.sock"])
async def test_a_stream_to_a_port_or_socket_inside(computer: Computer, where: int | str) -> None:
    kind = "port" if isinstance(where, int) else "path"
    async with await computer.spawn(["python3", "-c", SERVER, kind, str(where)]) as server:
        assert await server.stdout.read() == b"up\n"
        async with await computer.forward(where) as tunnel:
            await tunnel.write(b"hello")
            assert await tunnel.read_exactly(5) == b"HELLO"
            await tunnel.write_eof()
            assert await tunnel.read() == b"<end>"
            assert await tunnel.read() == b""


async def test_large_data_passes_in_both_directions_at_once(computer: Computer) -> None:
    content = os.urandom(2_000_000).hex().encode()
    async with await computer.spawn(["python3", "-c", SERVER, "port", "8123"]) as server:
        await server.stdout.read()

        async def once() -> bytes:
            async with await computer.forward(8123) as tunnel, asyncio.TaskGroup() as group:

                async def send() -> None:
                    await tunnel.write(content)
                    await tunnel.write_eof()

                group.create_task(send())
                parts = []
                while part := await tunnel.read():
                    parts.append(part)
                return b"".join(parts)

        for got in await asyncio.gather(*(once() for _ in range(5))):
            assert got == content.upper() + b"<end>"


async def test_a_port_without_a_listener_is_an_error(computer: Computer) -> None:
    for where in (4, "/tmp/none.sock"):
        with pytest.raises(FreeholdError) as caught:
            await computer.forward(where)
        assert caught.value.code == "computer.no-listener"
    with pytest.raises(FreeholdError):
        await computer.forward(70_000)


@pytest.mark.parametrize("where", [3128, "/tmp/relay.sock"])
async def test_a_connection_from_inside_reaches_the_handler(computer: Computer, where: int | str) -> None:
    kind = "port" if isinstance(where, int) else "path"
    async with await computer.listen(where, echo):
        result = await computer.run(["python3", "-c", CLIENT, kind, str(where), "1000000"])
        assert result.stdout == b"X" * 1_000_000 + b"<end>"
    result = await computer.run(["python3", "-c", CLIENT, kind, str(where), "1"])
    assert b"X" not in result.stdout, "nobody answers any more"


async def test_many_connections_at_once(computer: Computer) -> None:
    listening = await computer.listen(0, echo)
    client = f"import socket\nall = [socket.create_connection(('127.0.0.1', {listening.port})) for _ in range(200)]\n"
    client += "for n, one in enumerate(all): one.sendall(b'%d' % n); one.shutdown(1)\n"
    client += "assert [one.makefile('rb').read() for one in all] == [b'%d<end>' % n for n in range(200)]; print('good')"
    result = await computer.run(["python3", "-c", client])
    assert result.stdout == b"good\n", result.stderr


async def test_connections_beyond_the_limit_wait(computer: Computer) -> None:
    """A hostile program opens thousands. The link survives, and connections beyond the limit wait in the kernel's queue."""
    listening = await computer.listen(0, echo)
    client = f"import socket\nall = []\nfor _ in range(1500):\n s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', {listening.port})); all.append(s)\n"
    client += "print('open', flush=True)\nimport time; time.sleep(1000)"
    async with await computer.spawn(["python3", "-c", client]) as process:
        assert await process.stdout.read() == b"open\n"
        assert (await computer.run("echo fine")).stdout == b"fine\n"
    assert computer.is_connected

    async def served() -> bool:
        result = await computer.run(["python3", "-c", CLIENT, "port", str(listening.port), "3"])
        return result.stdout == b"XXX<end>"

    await until(served)


async def test_a_taken_port_is_an_error(computer: Computer) -> None:
    async with await computer.listen(3128, echo):
        with pytest.raises(FreeholdError) as caught:
            await computer.listen(3128, echo)
        assert caught.value.code == "computer.cannot-listen"


async def test_a_closed_or_failed_listener_is_forgotten(computer: Computer) -> None:
    known = len(computer._connection.accepts)
    for _ in range(5):
        async with await computer.listen(3128, echo):
            with pytest.raises(FreeholdError):
                await computer.listen(3128, echo)
    assert len(computer._listening) == 1, "the last one, until the next"
    assert len(computer._connection.accepts) == known


async def test_a_handler_that_fails_ends_only_its_own_connection(
    computer: Computer, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(tunnel: Tunnel) -> None:
        raise RuntimeError("a bug in the handler")

    async with await computer.listen(0, broken) as bad, await computer.listen(0, echo) as good:
        assert (await computer.run(["python3", "-c", CLIENT, "port", str(bad.port), "3"])).stdout == b""
        assert (await computer.run(["python3", "-c", CLIENT, "port", str(good.port), "3"])).stdout == b"XXX<end>"
    assert "a bug in the handler" in caplog.text


async def test_a_slow_handler_slows_down_only_its_own_sender(computer: Computer) -> None:
    release = asyncio.Event()

    async def slow(tunnel: Tunnel) -> None:
        await release.wait()
        while await tunnel.read():
            pass

    async with await computer.listen(0, slow) as listening:
        flood = f"import socket; s = socket.create_connection(('127.0.0.1', {listening.port})); s.sendall(b'x' * 50_000_000); print('sent')"
        async with await computer.spawn(["python3", "-c", flood]) as process:
            for _ in range(5):
                assert (await computer.run("echo fine")).stdout == b"fine\n"
            release.set()
            assert await process.stdout.read() == b"sent\n"
