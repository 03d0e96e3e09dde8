"""The program of remote mounts: `python -m freehold.mounts --home FOLDER`, started by the keeper."""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

from freehold.computer.mounts.endpoint_relay import HelperServers
from freehold.computer.mounts.mount_point import MountPoints
from freehold.computer.mounts.rclone_remote import REMOTE_KINDS, RcloneRemote, RemoteFolder
from freehold.computer.mounts.remote_mount import RemoteMount, RemoteMountSettings, ServerFinder, relay_to_servers
from freehold.computer.mounts.remote_state import RemoteMountState
from freehold.computer.mounts.remote_status import serve_states
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.manifest import Manifest, require_manifest
from freehold.manifest.secret_text import parse_reference
from freehold.manifest.sections.computer import MountSection
from freehold.mounts.section import MountsSection
from freehold.observe.logs import configure_logging
from freehold.observe.secrets import Secret

_log = logging.getLogger("freehold.mounts")


async def run(home: Home) -> None:
    manifest = require_manifest(home.manifest, os.environ).manifest
    mounts = dict(_make_mounts(home, manifest))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # Each mount may wait for its server and its disk at the same time.
    loop.set_default_executor(ThreadPoolExecutor(max_workers=4 + 4 * len(mounts)))

    def read_all() -> dict[str, RemoteMountState]:
        return {target: mount.state for target, mount in mounts.items()}

    async with serve_states(home.run / "mounts.sock", read_all), asyncio.TaskGroup() as group:
        tasks = [group.create_task(mount.run()) for mount in mounts.values()]
        await stop.wait()
        for task in tasks:
            task.cancel()


def _make_mounts(home: Home, manifest: Manifest) -> Iterator[tuple[str, RemoteMount]]:
    from freehold.computer.bubblewrap.backend import DEFAULT_UID

    points = MountPoints(home.mount_points)
    section = manifest.section(MountsSection)
    vault = Vault(home.vault)
    for number, mount in enumerate(manifest.computer.mounts):
        if mount.kind not in REMOTE_KINDS:
            continue
        settings = RemoteMountSettings(
            point=points.folder(number),
            lock=points.lock,
            cache=home.mount_cache(identify_mount(mount)),
            uid=DEFAULT_UID if os.geteuid() == 0 else os.geteuid(),
            writable=mount.writable,
            timeout=section.timeout,
            cache_size=section.cache,
        )

        def read_folder(mount: MountSection = mount) -> RemoteFolder:
            return _read_folder(mount, vault)

        def log(line: str, target: str = mount.target) -> None:
            _log.warning("%s: %s", target, line)

        find_servers = make_bridge_finder(settings) if mount.kind == "solid" else relay_to_servers
        yield mount.target, RemoteMount(settings, read_folder, find_servers=find_servers, log=log)


def make_bridge_finder(settings: RemoteMountSettings) -> ServerFinder:
    """For a pod: rclone finds a WebDAV server, which is this program."""
    from freehold.mounts.solid_bridge import SolidBridge
    from freehold.mounts.solid_folder import PodAccount, SolidFolder

    def find_servers(folder: RemoteFolder, remote: RcloneRemote) -> HelperServers:
        url = "/".join([folder.endpoint.rstrip("/"), *map(quote, filter(None, folder.source.split("/"))), ""])
        account = PodAccount(url, folder.issuer, folder.user, Secret(folder.key))
        return SolidBridge(SolidFolder(account, settings.timeout / 3), writable=settings.writable)

    return find_servers


def identify_mount(mount: MountSection) -> tuple[str, ...]:
    """Changes that were not sent to a server are never sent to another one, or as another user."""
    where = (mount.target, mount.kind, mount.endpoint, mount.source, mount.user, mount.key)
    who = (mount.issuer,) if mount.issuer else ()  # the caches of mounts without one keep their names
    return tuple(part or "" for part in (*where, *who))


def _read_folder(mount: MountSection, vault: Vault) -> RemoteFolder:
    """The settings with the key from the vault, as it is now. Raises `secret.not-found`."""
    assert mount.kind in REMOTE_KINDS
    reference = parse_reference(mount.key or "")
    return RemoteFolder(
        kind=mount.kind,
        source=mount.source,
        endpoint=mount.endpoint or "",
        user=mount.user or "",
        issuer=mount.issuer or "",
        region=mount.region or "",
        hosts=tuple(mount.hosts),
        key="" if reference is None else vault.get(reference[1]).reveal(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m freehold.mounts")
    parser.add_argument("--home", required=True)
    home = find_home(parser.parse_args().home)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keeper handles Ctrl-C
    configure_logging("info", "json", "mounts")
    with contextlib.suppress(FileNotFoundError):
        (home.run / "mounts.sock").unlink()
    try:
        asyncio.run(run(home))
    except FreeholdError as error:
        print(error, file=sys.stderr)  # noqa: T201 - captured by the keeper
        sys.exit(1)


if __name__ == "__main__":
    main()
