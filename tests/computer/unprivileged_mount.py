"""What an owner without root does with a remote mount: mounts it, uses it in a computer, loses its helper, and ends it.

A program, `python -m tests.computer.unprivileged_mount HOME URL USER KEY`. It prints what the computer saw, as JSON.
"""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

from tests.support.condition import until

from freehold.computer import Computer, Mount, launch
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.mounts.mount_point import MountPoints
from freehold.computer.mounts.rclone_remote import RemoteFolder
from freehold.computer.mounts.remote_mount import RemoteMount, RemoteMountSettings
from freehold.computer.registry import find_backend

COMMAND = "cat /mnt/remote/given"


async def run(home: Path, folder: RemoteFolder) -> dict[str, str]:
    seen = {}
    async with contextlib.AsyncExitStack() as stack:
        points = MountPoints(home / "points")
        stack.callback(points.remove)
        points.prepare([0])
        for part in ("workspace", "home"):
            (home / part).mkdir()
        bind = Mount(points.folder(0), "/mnt/remote", follows=True)
        spec = ComputerSpec(home / "workspace", home / "home", mounts=(bind,))
        machine = await launch(spec, home / "link", find_backend("bubblewrap"))
        stack.push_async_callback(machine.stop, 0)
        computer = await stack.enter_async_context(Computer.connect(machine.transport))

        async def look() -> str:
            result = await computer.run(COMMAND)
            return (result.stdout + result.stderr).decode().strip()

        settings = RemoteMountSettings(points.folder(0), points.lock, home / "cache", os.geteuid(), writable=True)
        mount = RemoteMount(settings, lambda: folder)
        seen["before"] = await look()
        running = asyncio.ensure_future(mount.run())
        try:
            await until(lambda: mount.state.state == "ready")
            seen["mounted"] = await look()
            old = mount.state.pid
            assert old is not None
            os.kill(old, 9)
            await until(lambda: mount.state.state == "ready" and mount.state.pid != old)
            seen["mounted again"] = await look()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        seen["after"] = await look()
    seen["left"] = " ".join(path.name for path in home.iterdir() if path.name == "points")
    return seen


if __name__ == "__main__":
    place, url, user, key = sys.argv[1:]
    print(json.dumps(asyncio.run(run(Path(place), RemoteFolder("webdav", "bucket", url, user=user, key=key)))))
