"""A virtual machine that is written to disk and read again, many times, with a server and an open terminal in it.

    python -m tests.soak.vm_sleep [TIMES]

Exits with 1 and says what was lost. FREEHOLD_VM_SYSTEM is a folder with QEMU, virtiofsd and a kernel.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.support.condition import until

from freehold.computer import Computer, launch
from freehold.computer.contract.backend import Machine
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.registry import find_backend

PORT = 4001
SERVE = f"""
import socket
server = socket.create_server(("127.0.0.1", {PORT}))
served = 0
while True:
    client, _ = server.accept()
    served += 1
    client.sendall(b"%d" % served)
    client.close()
"""


async def sleep_and_wake(machine: Machine, computer: Computer, times: int) -> list[tuple[float, float]]:
    """Seconds of each sleep, and from its end to the answer of the server. Raises if anything inside was lost."""
    found = []
    async with await computer.spawn(["/usr/bin/python3", "-c", SERVE]) as server:

        async def listens() -> bool:
            return any(one.port == PORT for one in await computer.listening_sockets())

        await until(listens)
        terminal = await computer.terminal(["/bin/sh"])
        await terminal.write(b"count=0\n")
        for number in range(1, times + 1):
            began = time.monotonic()
            report = await machine.sleep()
            slept = time.monotonic()
            assert (report.how, report.memory_after) == ("written to disk", 0), report
            assert machine.is_asleep
            await machine.wake()
            async with await computer.forward(PORT) as tunnel:
                assert await tunnel.read() == b"%d" % number
            found.append((slept - began, time.monotonic() - slept))
            await terminal.write(b'count=$((count + 1)); echo "[$count]"\n')
            await terminal.read_until(b"\n[%d]" % number)
        assert server.exit is None
        await terminal.close()
    return found


async def run(times: int) -> None:
    with tempfile.TemporaryDirectory(prefix="soak-vm-") as name:
        folder = Path(name)
        for part in ("workspace", "home"):
            (folder / part).mkdir()
        spec = ComputerSpec(folder / "workspace", folder / "home")
        machine = await launch(spec, folder / "link", find_backend("microvm"))
        try:
            async with Computer.connect(machine.transport) as computer:
                found = await sleep_and_wake(machine, computer, times)
        finally:
            await machine.stop(0)
    sleeps, wakes = ([round(pair[side], 3) for pair in found] for side in (0, 1))
    for what, seconds in (("sleep", sleeps), ("wake to the answer of the server", wakes)):
        print(f"{what}: median {statistics.median(seconds)} s, longest {max(seconds)} s, {times} times")


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
