"""The SSH server as a program: `python -m freehold.ssh --home FOLDER`, started by the keeper."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.manifest import require_manifest
from freehold.observe.logs import configure_logging
from freehold.ssh.section import SshSection

if TYPE_CHECKING:
    from freehold.computer import Computer

FIRST_RETRY = 0.05
MAX_RETRY = 2.0
SWITCH_INTERVAL = 0.001
"""How often, in seconds, Python switches threads. Short, so that a thread that writes events delays no command."""


async def run(home: Home, listeners: tuple[socket.socket, ...] = ()) -> None:
    from freehold.ssh.server import SshSettings, serve

    manifest = require_manifest(home.manifest, os.environ).manifest
    settings = SshSettings(
        host=manifest.section(SshSection).host,
        port=manifest.section(SshSection).port,
        forwarding=manifest.section(SshSection).forwarding,
        owner=manifest.owner.did,
        sign_in_idle=manifest.gateway.sign_in_idle,
        sign_in_absolute=manifest.gateway.sign_in_absolute,
        listeners=listeners,
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
    """Wait for the first link to the computer. After that, `Computer` reconnects by itself."""
    from freehold.computer import Computer

    wait = FIRST_RETRY
    while not stop.is_set():
        try:
            return await Computer.connect(home.computer_socket())
        except (FreeholdError, OSError):
            await asyncio.sleep(wait)
            wait = min(MAX_RETRY, wait * 2)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.ssh")
    parser.add_argument("--home", required=True)
    parser.add_argument("--listen", default="", help="numbers of inherited sockets that listen already")
    options = parser.parse_args()
    home = find_home(options.home)
    listeners = tuple(socket.socket(fileno=int(word)) for word in options.listen.split(",") if word)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keeper handles Ctrl-C
    sys.setswitchinterval(SWITCH_INTERVAL)
    configure_logging("info", "json", "ssh")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it logs each packet
    try:
        asyncio.run(run(home, listeners))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
