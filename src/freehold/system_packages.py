"""The system packages that isolate the computer, and the one command that brings those that are missing."""

import ctypes
import shutil

SYSTEM_FOLDERS = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
_PACKAGES: dict[str, dict[str, str]] = {
    "bubblewrap": {},
    "setpriv": {"apt-get": "util-linux", "dnf": "util-linux", "pacman": "util-linux"},
    "libseccomp": {"apt-get": "libseccomp2"},
}
"""What brings each of them, where its name is another."""
_MANAGERS = {"apt-get": "apt-get install", "dnf": "dnf install", "pacman": "pacman -S"}


def list_missing_packages(search: str = SYSTEM_FOLDERS) -> list[str]:
    found = {
        "bubblewrap": shutil.which("bwrap", path=search) is not None,
        "setpriv": shutil.which("setpriv", path=search) is not None,
        "libseccomp": _has_library(),
    }
    return [name for name, there in found.items() if not there]


def write_install_command(missing: list[str]) -> str:
    """For the package manager of this machine."""
    for manager, command in _MANAGERS.items():
        if shutil.which(manager):
            return f"{command} {' '.join(_PACKAGES[name].get(manager, name) for name in missing)}"
    return f"install the packages {' '.join(missing)}"


def _has_library() -> bool:
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    return True
