"""A gateway that reaches a local PDS. `freehold.identity` accepts such a network only from tests, by this module."""

import functools
import json
import os
from pathlib import Path
from typing import Any

from freehold.identity.atproto.fetcher import NetworkOverrides

VARIABLE = "TEST_NETWORK_OVERRIDES"


def network_environment(network: NetworkOverrides) -> dict[str, str]:
    """The environment variable that carries the network to the gateway."""
    fields = {
        "routes": dict(network.routes),
        "plain": sorted(network.plain),
        "nameserver": network.nameserver,
        "authority": None if network.authority is None else str(network.authority),
    }
    return {VARIABLE: json.dumps(fields)}


def read_network() -> NetworkOverrides:
    fields: dict[str, Any] = json.loads(os.environ[VARIABLE])
    return NetworkOverrides(
        routes={name: (host, port) for name, (host, port) in fields["routes"].items()},
        plain=frozenset(fields["plain"]),
        nameserver=tuple(fields["nameserver"]),
        authority=fields["authority"] and Path(fields["authority"]),
    )


def main() -> None:
    from freehold.gateway import __main__, services

    services.open_services = functools.partial(services.open_services, network=read_network())
    __main__.main()


if __name__ == "__main__":
    main()
