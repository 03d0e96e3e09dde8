"""A program of the host that its first connection starts. Until then the keeper listens in its place."""

import asyncio
from dataclasses import dataclass, replace

from freehold.keeper.host_program import HostProgram, HostRun
from freehold.keeper.ports import bind_port


@dataclass(frozen=True)
class OnDemandProgram:
    """`program` gets the listening sockets with the option `--listen`. One that has ended waits for the next connection."""

    program: HostProgram
    host: str
    port: int
    starts_on_demand: bool = True

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def required(self) -> bool:
        return self.program.required

    async def start(self) -> HostRun:
        """Returns when somebody has connected and the program runs. The connection waits for it."""
        listeners = bind_port(self.host, self.port, f"{self.name}.port")
        loop = asyncio.get_running_loop()
        connected = asyncio.Event()
        try:
            for listener in listeners:
                loop.add_reader(listener, connected.set)
            try:
                await connected.wait()
            finally:
                for listener in listeners:
                    loop.remove_reader(listener)
            numbers = tuple(listener.fileno() for listener in listeners)
            argv = [*self.program.argv, "--listen", ",".join(map(str, numbers))]
            return HostRun(replace(self.program, argv=argv, descriptors=numbers))
        finally:
            for listener in listeners:
                listener.close()
