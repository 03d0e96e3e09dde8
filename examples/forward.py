"""Talk to a server that runs inside."""

import asyncio

from freehold import Computer, FreeholdError


async def main() -> None:
    async with Computer.start() as computer, await computer.spawn("python3 -m http.server 8000 --bind 127.0.0.1"):
        while True:
            try:
                tunnel = await computer.forward(8000)
                break
            except FreeholdError:
                await asyncio.sleep(0.05)
        await tunnel.write(b"GET / HTTP/1.0\r\n\r\n")
        print((await tunnel.read()).split(b"\r\n")[0].decode())


asyncio.run(main())
