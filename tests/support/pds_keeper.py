"""A keeper whose gateway knows where a local PDS is: what `freehold.identity` takes only from tests, in programs as shipped.

`python -m tests.e2e.beside_pds keeper …` and `… gateway …`; the network is told by the environment.
"""

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

from freehold.identity.atproto.fetch import Network

TOLD = "BESIDE_PDS"


def tell(network: Network) -> dict[str, str]:
    """For the environment of the keeper."""
    assert network.authority is None
    told = {"routes": dict(network.routes), "plain": sorted(network.plain), "nameserver": network.nameserver}
    return {TOLD: json.dumps(told)}


def told() -> Network:
    said: dict[str, Any] = json.loads(os.environ[TOLD])
    return Network(
        routes={name: (host, port) for name, (host, port) in said["routes"].items()},
        plain=frozenset(said["plain"]),
        nameserver=tuple(said["nameserver"]),
    )


def keep() -> None:
    from tests.keeper import driver

    from freehold.keeper.keeper import Keeper

    started = Keeper._gateway

    @functools.wraps(started)
    def beside(*given: Any) -> Any:
        program = started(*given)
        place = program.argv.index("freehold.gateway")
        program.argv[place : place + 1] = ["tests.e2e.beside_pds", "gateway"]
        return program

    Keeper._gateway = beside  # type: ignore[method-assign, assignment]
    driver.main()


def serve() -> None:
    from freehold.gateway import __main__, house

    house.open_house = functools.partial(house.open_house, network=told())
    __main__.main()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    {"keeper": keep, "gateway": serve}[sys.argv.pop(1)]()
