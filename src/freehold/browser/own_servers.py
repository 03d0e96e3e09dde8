"""What `localhost` means in a browser: the servers of its own conversation, and the owner's services."""

from collections.abc import Callable, Collection

from freehold.computer import Computer
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError


class OwnServers:
    """The browser has a computer of its own, in which nothing listens. Each connection is looked up anew.

    Who holds a port is asked of the guest, which looks from the Landlock domain of the session. Without Landlock in the
    kernel sessions are not kept apart in the computer, and here neither.
    """

    def __init__(self, session: str, computer_of: Callable[[str], Computer], service_ports: Collection[int]) -> None:
        self._session = session
        self._computer_of = computer_of
        self._service_ports = frozenset(service_ports)

    async def connect(self, port: int) -> Tunnel:
        """Raises `egress.denied` for every other port."""
        try:
            computer = self._computer_of(self._session)
            if port in self._service_ports or await self._is_own(computer, port):
                return await computer.forward(port)
        except FreeholdError as error:
            raise FreeholdError("egress.unreachable", f"Port {port} cannot be reached: {error.message}") from error
        raise FreeholdError(
            "egress.denied",
            f"No server of this conversation listens on port {port}",
            hint="A browser reaches the servers that its own conversation has started",
        )

    async def _is_own(self, computer: Computer, port: int) -> bool:
        inodes = {one.inode for one in await computer.listening_sockets() if one.port == port}
        holders = await computer.socket_holders(inodes, apart=self._session) if inodes else {}
        # All of them: a second socket on the same port may be another session's.
        return bool(inodes) and inodes <= holders.keys()
