"""For a container without a way to this machine: what connects to its port arrives at a Unix socket that it shares.

`python -m tests.support.passage SOCKET PORT NAMES`. On the UDP port NAMES it answers that no name exists.
"""

import asyncio
import sys

import dns.message
import dns.rcode


class NoNames(asyncio.DatagramProtocol):
    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, client: tuple[str, int]) -> None:
        answer = dns.message.make_response(dns.message.from_wire(data))
        answer.set_rcode(dns.rcode.NXDOMAIN)
        self._transport.sendto(answer.to_wire(), client)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve(socket: str, port: int, names: int) -> None:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, back = await asyncio.open_unix_connection(socket)
        await asyncio.gather(copy(reader, back), copy(onward, writer), return_exceptions=True)

    await asyncio.get_running_loop().create_datagram_endpoint(NoNames, ("127.0.0.1", names))
    server = await asyncio.start_server(pass_on, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
