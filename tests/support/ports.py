"""Free TCP ports on the loopback address."""

import socket


def free_ports(count: int) -> list[int]:
    """This many different ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
