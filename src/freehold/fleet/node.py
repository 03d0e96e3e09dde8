"""A node: the program on a machine that has joined. It has the computers; Ray beside it counts what is free.

When Ray ends it is started again, and computers do not notice. When this program ends, they end.
"""

import asyncio
import logging
import os
import signal
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.fleet.certificates import pinned_context
from freehold.fleet.content_cache import ContentCache
from freehold.fleet.host import NodeHost
from freehold.fleet.node_cards import NodeCards
from freehold.fleet.node_folder import NodeSettings
from freehold.fleet.ray_sandbox import INSIDE, RayKeys, RayProcess
from freehold.fleet.versions import read_versions
from freehold.fleet.wire import PIECE

RESTART_PAUSE = 1.0
_log = logging.getLogger("freehold.fleet")


async def run_node(folder: Path, settings: NodeSettings) -> None:
    """Until SIGTERM or SIGINT, or until the head lets this machine go."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with ContentCache(folder / "cache", settings.cache) as cache:
        ray = NodeRay(folder, settings)
        host = NodeHost(folder, cache, read_versions(), ray.follow, NodeCards(settings.cards), stop.set)
        context = pinned_context(settings.own, settings.head_certificate, server=True)
        try:
            server = await asyncio.start_server(
                host.accept, settings.address, settings.port, ssl=context, limit=PIECE, ssl_handshake_timeout=10
            )
        except OSError as error:
            raise FreeholdError(
                "fleet.port-in-use",
                f"Cannot listen at {settings.address} port {settings.port}: {error.strerror}",
                hint="freehold fleet join --address ADDRESS --port PORT",
            ) from error
        async with server, asyncio.TaskGroup() as group:
            tasks = [group.create_task(host.run()), group.create_task(ray.run())]
            await stop.wait()
            server.close()
            for task in tasks:
                task.cancel()


class NodeRay:
    """Ray on this node. It is started again when it ends, and when the head has another Ray: it would wait for the old one."""

    def __init__(self, folder: Path, settings: NodeSettings) -> None:
        self._folder = folder
        self._keys = RayKeys(settings.ray_token, settings.ray_authority, settings.ray_own)
        self._words = {
            "head": settings.ray_head,
            "address": settings.address,
            "ports": settings.ports,
            "folder": f"{INSIDE}/session",
            "cpus": settings.cpus if settings.cpus % 1 else int(settings.cpus),
            "memory": settings.memory,
            "gpus": len(settings.cards),
            "labels": {**settings.labels, "freehold-node": settings.name},
            "instance": [settings.name, settings.kind] if settings.kind else [],
        }
        self._process: RayProcess | None = None
        self._session: str | None = None

    def follow(self, session: str) -> None:
        """`session` names the Ray that the head has now. The first one that is named is the one that it joined."""
        if self._session not in (None, session) and self._process is not None:
            self._process.kill()
        self._session = session

    async def run(self) -> None:
        """Until cancelled. Raises what keeps it from being started at all: later the computers go on without it."""
        process = await asyncio.to_thread(self._start)
        while True:
            self._process = process
            try:
                code = await process.wait()
                _log.warning("Ray ended with %s and is started again", code)
            finally:
                self._process = None
                process.kill()
                await process.wait()
            process = await self._start_again()

    async def _start_again(self) -> RayProcess:
        while True:
            await asyncio.sleep(RESTART_PAUSE)
            try:
                return await asyncio.to_thread(self._start)
            except (OSError, FreeholdError) as error:  # the disk is full
                _log.warning("Ray cannot be started: %s", error)

    def _start(self) -> RayProcess:
        path = self._folder / "ray.log"
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            return RayProcess(self._folder / "ray", self._keys, self._words, log)
        finally:
            os.close(log)
