"""Facts about this machine, gathered once for the checks, which look at nothing else."""

import datetime
import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from freehold.manifest.sections.computer import Backend
from freehold.system_packages import list_missing_packages, write_install_command


@dataclass(frozen=True)
class MachineFacts:
    """The machine as the checks see it."""

    home: Path
    """The folder of this Freehold."""
    user_home: Path
    memory: int
    cpus: int
    disk: int
    """Size of the disk where this Freehold lives."""
    free_disk: int
    """Bytes that can still be written where this Freehold lives."""
    backends: Mapping[Backend, str]
    """Why each backend cannot run here; an empty text when it can."""
    environ: Mapping[str, str] = field(repr=False)
    is_root: bool
    today: datetime.date
    real: Callable[[str], Path] = field(repr=False)
    """A path of the host with `~` and links followed; never raises."""
    exists: Callable[[Path], bool] = field(repr=False)
    is_socket: Callable[[Path], bool] = field(repr=False)
    """Whether a unix socket is there; follows no link, never raises."""
    history_size: Callable[[], int] = field(repr=False)
    """Bytes that history holds already; walks the folder, so it is asked only when it matters."""

    @classmethod
    def gather(cls, home: Path, environ: Mapping[str, str] | None = None) -> "MachineFacts":
        """Reads settings and starts nothing. `freehold doctor` tries whether the computer is really sealed."""
        environ = os.environ if environ is None else environ
        disk = shutil.disk_usage(_nearest_folder(home.absolute()))
        return cls(
            home=_real(str(home)),
            user_home=_real("~"),
            memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            cpus=len(os.sched_getaffinity(0)),
            disk=disk.total,
            free_disk=disk.free,
            backends={backend: _why_not(backend, environ) for backend in get_args(Backend)},
            environ=environ,
            is_root=os.geteuid() == 0,
            today=datetime.datetime.now(tz=datetime.UTC).date(),
            real=_real,
            exists=_exists,
            is_socket=_is_socket,
            history_size=lambda: _size_of(home / "history"),
        )


def _real(path: str) -> Path:
    try:
        return Path(os.path.realpath(Path(path).expanduser()))
    except (OSError, RuntimeError, ValueError):
        return Path(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _nearest_folder(place: Path) -> Path:
    while not _exists(place) and place != place.parent:
        place = place.parent
    return place


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue  # gone since it was listed
    return total


def _why_not(backend: Backend, environ: Mapping[str, str]) -> str:
    search = environ.get("PATH", os.defpath)
    match backend:
        case "bubblewrap":
            return _why_no_bubblewrap(search)
        case "docker":
            return _why_no_engine("dockerd", ("/run/docker.sock", "/var/run/docker.sock"), environ)
        case "podman":
            return _why_no_engine("podman", ("/run/podman/podman.sock",), environ)
        case "microvm":
            # Programs of another system are looked for when the computer starts.
            found = environ.get("FREEHOLD_VM_SYSTEM") or shutil.which("qemu-system-x86_64", path=search)
            return "" if found else "QEMU is not installed (apt install qemu-system-x86)"
        case "attached":
            return ""  # whether a computer attaches is seen when it does


def _why_no_engine(program: str, sockets: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """An engine with an address of its own is looked for when the computer starts."""
    if environ.get("SANDBOX_HOST") or any(_exists(Path(socket)) for socket in sockets):
        return ""
    if shutil.which(program, path=f"{environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"):
        return ""
    return f"there is no socket {sockets[0]}, and {program} is not installed"


def _why_no_bubblewrap(search: str) -> str:
    missing = list_missing_packages(search)
    if missing:
        return f"not installed: {', '.join(missing)} ({write_install_command(missing)})"
    if _kernel_setting("user/max_user_namespaces") == "0":
        return "user namespaces are switched off (sysctl user.max_user_namespaces)"
    if os.geteuid() != 0 and _kernel_setting("kernel/unprivileged_userns_clone") == "0":
        return "unprivileged user namespaces are switched off (sysctl kernel.unprivileged_userns_clone)"
    return ""


def _kernel_setting(name: str) -> str | None:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return None
