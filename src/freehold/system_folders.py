"""Folders of the operating system, which must not become a home and must not be mounted or locked."""

from pathlib import Path

# Everything below these belongs to the system, except below /dev/shm.
SYSTEM_TREES = (
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
)
TOP_LEVEL_FOLDERS = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var")  # noqa: S108 - refused, not used
SYSTEM_SUBFOLDERS = (
    "/run/lock",
    "/run/user",
    "/usr/local",
    "/var/cache",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/spool",
    "/var/tmp",  # noqa: S108
)
SHARED_MEMORY = "/dev/shm"  # noqa: S108


def find_system_folder(path: Path) -> Path | None:
    """The system folder that `path` is, or is inside of; None when there is none. Follows links."""
    place = path.resolve()
    if place.is_relative_to(SHARED_MEMORY) and place != Path(SHARED_MEMORY):
        return None
    for name in SYSTEM_TREES:
        if place.is_relative_to(name):
            return Path(name)
    return place if str(place) in TOP_LEVEL_FOLDERS or str(place) in SYSTEM_SUBFOLDERS else None


def contains_user_home(path: Path) -> bool:
    """Whether `path` is the user's home folder, or contains it."""
    try:
        home = Path.home().resolve()
    except RuntimeError:  # this uid has no home folder
        return False
    return home.is_relative_to(path.resolve())
