"""Keeps one remote folder mounted: starts its helper, watches it, and mounts again when it has ended."""

import asyncio
import contextlib
import json
import logging
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from freehold.computer.mounts.endpoint_relay import EndpointRelay, HelperServers
from freehold.computer.mounts.fuse_relay import FuseRelay
from freehold.computer.mounts.helper_process import HelperOrder, HelperProcess, find_rclone
from freehold.computer.mounts.mount_point import MountPoint, hold_mounts
from freehold.computer.mounts.rclone_remote import RcloneRemote, RemoteFolder, describe_remote
from freehold.computer.mounts.remote_state import RemoteMountState, RemoteState
from freehold.errors import FreeholdError

_logger = logging.getLogger(__name__)
Started = TypeVar("Started")
FIRST_RETRY, MAX_RETRY = 0.5, 30.0
STABLE_AFTER = 30.0
CACHE_POLL = 1.0
ERROR_SHOWN = 60.0
"""Seconds that the last error of a mount that works is shown."""
MAX_LINE = 500
_TIME = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d ")
_REFUSED = re.compile(
    r"\b40[13]\b|Unauthorized|Forbidden|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class RemoteMountSettings:
    """`timeout` is the most seconds that a program inside waits for one answer; `cache` the bytes of unsent changes."""

    point: Path
    lock: Path
    cache: Path
    uid: int
    writable: bool
    timeout: float = 60.0
    cache_size: int = 2 * 1024**3
    recheck: float = 6.0
    """Seconds until a failure is looked at again. Longer than rclone keeps a listing."""


ServerFinder = Callable[[RemoteFolder, RcloneRemote], HelperServers]
"""What the helper of this folder finds in its network."""


def relay_to_servers(folder: RemoteFolder, remote: RcloneRemote) -> HelperServers:
    return EndpointRelay(remote.endpoints)


class RemoteMount:
    """`read_folder` gives what the owner configured, with the secret; it is asked before each start."""

    def __init__(
        self,
        settings: RemoteMountSettings,
        read_folder: Callable[[], RemoteFolder],
        *,
        find_servers: ServerFinder = relay_to_servers,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._settings = settings
        self._read_folder = read_folder
        self._find_servers = find_servers
        self._point = MountPoint(settings.point)
        self._log = log
        self._trouble = asyncio.Event()
        self._last_error = ""
        self._loop: asyncio.AbstractEventLoop
        self.state: RemoteMountState = RemoteMountState("starting", "", None)

    async def run(self) -> None:
        """Until cancelled. Then nothing is mounted and no helper runs."""
        self._loop = asyncio.get_running_loop()
        wait = FIRST_RETRY
        try:
            while True:
                began = time.monotonic()
                try:
                    await self._run_once()
                    words = "The helper ended"
                except FreeholdError as error:
                    words = f"{error.message}. {error.hint}" if error.hint else error.message
                except OSError as error:
                    words = f"The mount failed: {error.strerror or type(error).__name__}"
                except Exception as error:  # the other mounts go on
                    _logger.exception("The mount at %s failed", self._settings.point)
                    words = f"The mount failed: {type(error).__name__}"
                if self._last_error:
                    words = f"{words}: {self._last_error}"
                if time.monotonic() - began > STABLE_AFTER:
                    wait = FIRST_RETRY
                self._set("down", words, None)
                await asyncio.sleep(wait)
                wait = min(MAX_RETRY, wait * 2)
        finally:
            await asyncio.to_thread(self._point.unmount)

    async def _run_once(self) -> None:
        settings = self._settings
        self._last_error = ""
        rclone = find_rclone()
        folder = await asyncio.to_thread(self._read_folder)
        remote = await asyncio.to_thread(describe_remote, folder, str(rclone))
        order = HelperOrder(remote, rclone, settings.cache, settings.uid, settings.writable, settings.timeout / 3)
        helper = await _finish(lambda: HelperProcess(order, self._read_line), undo=_end)
        try:
            listeners = await asyncio.to_thread(helper.receive_listeners)
            servers = self._find_servers(folder, remote)
            async with servers.serve(listeners):
                await asyncio.to_thread(helper.await_mount_request)
                device = await _finish(self._mount, undo=os.close)
                relay = FuseRelay(device, helper.fuse, timeout=settings.timeout)
                async with asyncio.TaskGroup() as group:
                    watches = [
                        group.create_task(self._check_again_and_again(helper.pid, servers)),
                        group.create_task(self._watch_cache(relay)),
                    ]
                    try:
                        await relay.run()
                    finally:
                        for watch in watches:
                            watch.cancel()
        finally:
            _end(helper)
            await asyncio.shield(asyncio.wrap_future(helper.ended))  # its thread still sets it

    def _mount(self) -> int:
        with hold_mounts(self._settings.lock):
            return self._point.mount(uid=self._settings.uid, writable=self._settings.writable)

    async def _check_again_and_again(self, pid: int, servers: HelperServers) -> None:
        """List the folder once, and again after each error that the helper reports. A listing that works makes it ready;
        the error is shown until none came for a while."""
        while True:
            self._trouble.clear()
            words = await asyncio.to_thread(self._check)
            if words:
                self._set("failing", servers.last_failure or self._last_error or words, pid)
            else:
                self._set("ready", self._last_error, pid)
                try:
                    async with asyncio.timeout(ERROR_SHOWN):
                        await self._trouble.wait()
                except TimeoutError:
                    self._last_error = ""
                    self._set("ready", "", pid)
                    await self._trouble.wait()
            await asyncio.sleep(self._settings.recheck)

    def _check(self) -> str:
        """Why the folder cannot be listed. By another process: this one holds the device, and if it were killed while it
        waits for itself, nobody would ever answer."""
        done = subprocess.run(
            ["/usr/bin/find", self._settings.point, "-mindepth", "1", "-maxdepth", "1", "-quit"],
            capture_output=True,
            env={"LC_ALL": "C"},
            check=False,
        )
        return done.stderr.decode(errors="replace").strip().rpartition(": ")[2] if done.returncode else ""

    async def _watch_cache(self, relay: FuseRelay) -> None:
        """What is not sent yet is on the disk of the host. Beyond its limit, nothing more is taken."""
        while self._settings.writable:
            used = await asyncio.to_thread(_measure, self._settings.cache)
            relay.full = used > self._settings.cache_size
            await asyncio.sleep(CACHE_POLL)

    def _read_line(self, line: bytes) -> None:
        """What rclone reports. A server may have written parts of it."""
        text = _clean_line(line)
        if text:
            self._last_error = text
            self._log(text)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._trouble.set)

    def _set(self, state: RemoteState, words: str, pid: int | None) -> None:
        self.state = RemoteMountState(state, words, pid)


async def _finish(start: Callable[[], Started], undo: Callable[[Started], None]) -> Started:
    """The result of a blocking call that makes something. Who is cancelled meanwhile still undoes it."""
    starting = asyncio.ensure_future(asyncio.to_thread(start))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(FreeholdError, OSError):
            undo(await starting)
        raise


def _end(helper: HelperProcess) -> None:
    helper.end()
    helper.close()


def _clean_line(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    with contextlib.suppress(ValueError, AttributeError, RecursionError):
        text = str(json.loads(text).get("msg", text))
    text = _TIME.sub("", "".join(one if one.isprintable() else " " for one in text))[:MAX_LINE].strip()
    return f"The server refuses the key: {text}" if _REFUSED.search(text) else text


def _measure(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118 - no Path for each file
    return total
