"""Nobody inside can listen where sessions show their tokens, and not even while the gateway is away."""

import pytest

from freehold.computer import Computer
from freehold.computer.contract.conventions import RESERVED_PORTS
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError

pytestmark = pytest.mark.asyncio(loop_scope="module")

SQUAT = """
import errno, socket, sys
for address in ("127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:127.0.0.2"):
    for only in (0, 1) if ":" in address and "." not in address else (0,):
        for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
            taken = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            if ":" in address:
                taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
            for option in options:
                taken.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                taken.bind((address, int(sys.argv[1])))
                taken.listen()
            except OSError as error:
                print(errno.errorcode[error.errno])
            else:
                print("listens at", address, only, options)
            taken.close()
"""
READ = """
import socket, sys
try:
    with socket.create_connection((sys.argv[2], int(sys.argv[1]))) as client:
        print(client.recv(100))
except ConnectionResetError:
    print("turned away")
"""
ADDRESSES = ("127.0.0.1", "::1", "localhost")


async def refused(computer: Computer, port: int) -> None:
    tried = await computer.run(["/usr/bin/python3", "-c", SQUAT, str(port)], apart="hostile")
    assert set(tried.text.split()) == {"EADDRINUSE"}, tried


async def read(computer: Computer, port: int) -> set[str]:
    """What a client gets at every address."""
    ran = [await computer.run(["/usr/bin/python3", "-c", READ, str(port), one], timeout=30) for one in ADDRESSES]
    return {one.text.strip() for one in ran}


@pytest.mark.parametrize("port", RESERVED_PORTS)
async def test_a_port_of_the_hosts_is_nobody_elses(port: int, computer: Computer) -> None:
    """Before the host listens, while it does, after its link is lost, and when it does again."""

    async def answer(stream: Tunnel) -> None:
        await stream.write(b"the host")

    await refused(computer, port)
    assert await read(computer, port) == {"turned away"}
    for _ in range(2):
        async with Computer.connect(computer.transport) as gateway:
            await gateway.listen(port, answer)
            await refused(computer, port)
            assert await read(computer, port) == {"b'the host'"}
            with pytest.raises(FreeholdError, match="listen"):
                await computer.listen(port, answer)
        await refused(computer, port)
