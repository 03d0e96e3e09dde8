"""The program of the fleet: `python -m freehold.fleet --home FOLDER`, started by the keeper."""

import argparse
import asyncio
import logging
import os
import signal
import sys

from freehold.errors import FreeholdError
from freehold.fleet.autoscaler import Autoscaler
from freehold.fleet.client_door import ClientDoor
from freehold.fleet.fleet_folder import FleetFolder, KnownNode
from freehold.fleet.head import FleetHead
from freehold.fleet.head_commands import HeadCommands
from freehold.fleet.join_door import JoinDoor
from freehold.fleet.key_variables import list_key_variables
from freehold.fleet.place import SOCKET
from freehold.fleet.placer import RayPlacer
from freehold.fleet.section import FleetSection
from freehold.home import Home, find_home
from freehold.manifest import require_manifest
from freehold.observe.logs import configure_logging

_log = logging.getLogger("freehold.fleet")


async def run(home: Home) -> None:
    """Until SIGTERM."""
    manifest = require_manifest(home.manifest, os.environ).manifest
    section = manifest.section(FleetSection)
    folder = FleetFolder(home.root / "fleet")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    head = FleetHead(
        folder.read_head(), folder.read_nodes(), quota=section.max_per_session, save_every=section.save_every
    )

    def add_node(node: KnownNode) -> None:
        loop.call_soon_threadsafe(head.add_node, node)

    door = JoinDoor(folder, section.address, section.port, section.port + 1, add_node)
    hidden = list_key_variables(manifest)
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    autoscaler = (
        Autoscaler(folder, section.autoscaler, head, door, environment) if section.autoscaler.machines else None
    )
    keys = folder.make_head_ray_keys(section.address)
    ports = section.port + 2 if section.fixed_ports else 0
    placer = RayPlacer(
        folder.root / "ray",
        keys,
        section.address,
        section.port + 1,
        ports,
        head.take_placed,
        head.reserve_again,
        head.list_reservations,
        head.tell_ray,
        autoscaler,
    )
    commands = HeadCommands(head, folder, door, autoscaler)
    clients = ClientDoor(head, "PACK" if section.strategy == "pack" else "SPREAD", commands.by_name())
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(head.run(placer))]
        if autoscaler is not None:
            running.append(group.create_task(autoscaler.run()))
        async with door.serve(), clients.serve(home.run / SOCKET):
            _log.info("The fleet listens for nodes at %s port %s", section.address, section.port)
            await stop.wait()
        for task in running:
            task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.fleet")
    parser.add_argument("--home", required=True)
    home = find_home(parser.parse_args().home)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keeper handles Ctrl-C
    configure_logging("info", "json", "fleet")
    try:
        asyncio.run(run(home))
    except* FreeholdError as errors:
        print(errors.exceptions[0], file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
