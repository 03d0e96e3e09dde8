"""Folders of the machine that are nobody's to give away or to lock: the operating system's, and everybody's."""

from pathlib import Path

# Nothing in these is a person's either, but for what /dev/shm holds.
WHOLE = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr")
ALONE = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var")  # noqa: S108 - refused, not used
BELOW = (
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
SHARED = "/dev/shm"  # noqa: S108


def find_system_folder(path: Path) -> Path | None:
    """The system's folder that this one is, or lies in; links are followed first."""
    place = path.resolve()
    if place.is_relative_to(SHARED) and place != Path(SHARED):
        return None
    for name in WHOLE:
        if place.is_relative_to(name):
            return Path(name)
    return place if str(place) in ALONE or str(place) in BELOW else None


def holds_a_home(path: Path) -> bool:
    """Whether this is the caller's whole home folder, or has it somewhere inside."""
    try:
        home = Path.home().resolve()
    except RuntimeError:  # nobody's uid has none
        return False
    return home.is_relative_to(path.resolve())
