"""Free TCP ports on the loopback address.

They are below those that the kernel gives to connections and to servers that name none: such a port could be taken
before the server of a test is started. They are above those that Ray gives to its workers, and the port after each stays
free, because Ray takes it as well. Each worker of a test run has ports of its own, and takes them in turn.
"""

import itertools
import os
import random
import socket

FIRST_PORT = 20_000
PORTS_OF_WORKER = 750
WORKERS = 8

_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
_turn = itertools.count(random.randrange(PORTS_OF_WORKER))  # two runs at once begin at different places


def free_ports(count: int) -> list[int]:
    """This many different ports that are free now."""
    found: list[int] = []
    for place in itertools.islice(_turn, PORTS_OF_WORKER):
        port = FIRST_PORT + 2 * (_worker * PORTS_OF_WORKER + place % PORTS_OF_WORKER)
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"{count} ports were wanted, and {len(found)} of this worker are free")


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
