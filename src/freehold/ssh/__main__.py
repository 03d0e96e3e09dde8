"""The side door as a program: `python -m freehold.ssh --home FOLDER`, started by the keeper."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.manifest import require_manifest
from freehold.observe.logs import configure_logging

if TYPE_CHECKING:
    from freehold.computer import Computer

FIRST_RETRY = 0.05
LONGEST_RETRY = 2.0


async def run(home: Home) -> None:
    from freehold.ssh.server import SshSettings, serve

    manifest = require_manifest(home.manifest, os.environ).manifest
    settings = SshSettings(
        host=manifest.ssh.host,
        port=manifest.ssh.port,
        forwarding=manifest.ssh.forwarding,
        owner=manifest.owner.did,
        session_idle=manifest.gateway.session_idle,
        session_absolute=manifest.gateway.session_absolute,
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    computer = await _connect(home, stop)
    if computer is None:
        return
    async with computer, serve(home, settings, computer):
        await stop.wait()


async def _connect(home: Home, stop: asyncio.Event) -> "Computer | None":
    """The first link; from then on the computer's own connection makes it again."""
    from freehold.computer import Computer

    wait = FIRST_RETRY
    while not stop.is_set():
        try:
            return await Computer.connect(home.computer_socket)
        except (FreeholdError, OSError):
            await asyncio.sleep(wait)
            wait = min(LONGEST_RETRY, wait * 2)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.ssh")
    parser.add_argument("--home", required=True)
    home = find_home(parser.parse_args().home)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the keeper's to handle
    configure_logging("info", "json", "ssh")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it tells of every packet; the timeline has what matters
    try:
        asyncio.run(run(home))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
