"""The sandbox in which Ray runs, on the head and on each node.

Whoever has the token of a Ray cluster can run any code on every one of its nodes, and what Ray carries is pickled: one
node that is taken over takes all. Ray therefore gets a user of its own, its own processes, and no file but its own
folder and the programs of the system. It decides where there is room, and nothing else.
"""

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freehold.computer.library.removal import remove_tree
from freehold.computer.walls.bind_stage import stage_sources
from freehold.errors import FreeholdError
from freehold.fleet import ray_inside
from freehold.fleet.certificates import FleetKey

RAY_VERSION = "2.60.0"
RAY_UID = 64244
"""The user of Ray when root starts it; else it has the one of who starts it, in a user namespace of its own."""
INSIDE = "/run/ray"
PROVIDER = "ray_machines.py"
"""Read by Ray's autoscaler."""
TUNING = {
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
    "RAY_enable_worker_prestart": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ROTATION_MAX_BYTES": "10000000",
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "AUTOSCALER_UPDATE_INTERVAL_S": "2",
}
"""A node that is silent is dead after about 5 s instead of a minute."""


@dataclass(frozen=True)
class RayKeys:
    """What lets a process take part in the cluster of Ray. Of no use for the links of computers."""

    token: str
    authority: str
    own: FleetKey


def find_ray_version() -> str:
    """Raises `fleet.no-ray`."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("ray")
    raise FreeholdError(
        "fleet.no-ray",
        "A fleet needs Ray, which is not installed",
        hint=f"{sys.executable} -m pip install 'freehold[fleet]'",
        kind="unsupported",
    )


class RayProcess:
    """A running sandbox. Requests go to `stdin`, answers come from `stdout`, both in lines; `ended` tells its end."""

    def __init__(self, folder: Path, keys: RayKeys, settings: Mapping[str, Any], log: int) -> None:
        """Blocking. `log` is a file that gets what Ray says."""
        find_ray_version()
        if shutil.which("bwrap") is None:
            raise FreeholdError("fleet.no-isolation", "A fleet needs bubblewrap", hint="apt install bubblewrap")
        _write_files(folder, keys)
        started: Future[subprocess.Popen[bytes]] = Future()
        self.ended: Future[int] = Future()
        # It enters a mount namespace, and is the parent that the sandbox must not outlive: a thread of its own.
        arguments = (folder, settings, log, started)
        threading.Thread(target=self._live, args=arguments, daemon=True, name="ray").start()
        self._process = started.result()

    @property
    def pid(self) -> int:
        return self._process.pid

    def open_streams(self) -> tuple[int, int]:
        """Descriptors to write requests to and to read answers from. The caller owns them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        return os.dup(self._process.stdin.fileno()), os.dup(self._process.stdout.fileno())

    def kill(self) -> None:
        """Everything in the sandbox ends with its first process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> int:
        return await asyncio.shield(asyncio.wrap_future(self.ended))

    def _live(
        self, folder: Path, settings: Mapping[str, Any], log: int, started: "Future[subprocess.Popen[bytes]]"
    ) -> None:
        try:
            process = _start(folder, log)
        except BaseException as error:
            started.set_exception(error)
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            process.stdin.flush()
        started.set_result(process)
        try:
            code = process.wait()
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
        self.ended.set_result(code)


def _write_files(folder: Path, keys: RayKeys) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = {"token": keys.token, "authority": keys.authority, "certificate": keys.own.certificate, "key": keys.own.key}
    for name, content in files.items():
        path = folder / name
        path.unlink(missing_ok=True)
        path.touch(0o600)
        path.write_text(content)
    remove_tree(folder / "session")  # Ray does not start in what an earlier one has left
    (folder / "session").mkdir(mode=0o700)
    if os.geteuid() == 0:
        for path in (folder, folder / "session", *(folder / name for name in files)):
            os.chown(path, RAY_UID, RAY_UID, follow_symlinks=False)


def _environment() -> dict[str, str]:
    return {
        **TUNING,
        "PATH": "/usr/bin:/bin",
        "HOME": INSIDE,
        "LANG": "C.UTF-8",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": f"{INSIDE}/token",
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": f"{INSIDE}/certificate",
        "RAY_TLS_SERVER_KEY": f"{INSIDE}/key",
        "RAY_TLS_CA_CERT": f"{INSIDE}/authority",
    }


def _start(folder: Path, log: int) -> "subprocess.Popen[bytes]":
    programs = _find_programs()
    inside = Path(ray_inside.__file__)
    sources = [folder, inside, inside.with_name(PROVIDER), *programs]
    descent = ["setpriv", "--no-new-privs"]
    if os.geteuid() == 0:
        places = stage_sources(sources)
        descent += [f"--reuid={RAY_UID}", f"--regid={RAY_UID}", "--clear-groups", "--inh-caps=-all"]
    else:
        places = [str(path.absolute()) for path in sources]
    words = list(_describe_sandbox(places[0], places[1], places[2], dict(zip(programs, places[3:], strict=True))))
    return subprocess.Popen(
        [*descent, "bwrap", *words, "--", sys.executable, "-I", "-X", "utf8", "/run/ray_inside.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
    )


def _find_programs() -> list[Path]:
    """The folders of Python and of its packages that are not the system's."""
    found = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]}
    spec = importlib.util.find_spec("ray")
    if spec is not None and spec.origin is not None:
        found.add(Path(spec.origin).parents[1])
    kept = [one for one in sorted(found) if not one.is_relative_to("/usr")]
    return [one for one in kept if not any(one != other and one.is_relative_to(other) for other in kept)]


def _describe_sandbox(folder: str, program: str, provider: str, programs: Mapping[Path, str]) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent")
    yield from ("--new-session", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL")
    yield from ("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")  # noqa: S108 - in the sandbox
    for name in ("bin", "lib", "lib32", "lib64", "sbin"):
        found = Path("/", name)
        if found.is_symlink():
            yield from ("--symlink", str(found.readlink()), f"/{name}")
        elif found.is_dir():
            yield from ("--ro-bind", str(found), f"/{name}")
    for name in ("ld.so.cache", "ssl/certs", "localtime"):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for place, source in programs.items():
        yield from ("--ro-bind", source, str(place))
    yield from ("--bind", folder, INSIDE, "--ro-bind", program, "/run/ray_inside.py")
    yield from ("--ro-bind", provider, f"/run/provider/{PROVIDER}", "--clearenv")
    for name, value in _environment().items():
        yield from ("--setenv", name, value)
