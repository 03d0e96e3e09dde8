"""What an image is for: the system of the computer, or Freehold itself as a program in a container."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from freehold.computer.contract.conventions import AGENT_HOME, AGENTS_PATH, SKILLS_PATH, WORKSPACE
from freehold.computer.walls.inside import describe_etc

BRAIN_HOME = "/var/lib/freehold"
BRAIN_UID = 64242
"""Also the user of a computer in another container, whose files the brain must be able to restore. No user of the host has it."""
LINK_FOLDER = "/var/lib/freehold-link"
"""What the brain shares with a computer in another container."""


@dataclass(frozen=True)
class ImageFolderEntry:
    """A folder that the image has even if no package brings it."""

    place: str
    mode: int = 0o755
    owner: int = 0


@dataclass(frozen=True)
class ImageKind:
    """`config` is the configuration of containers that are made from it.

    `is_system` says that computers start from it: Node is on PATH, and a root folder and a disk are made too.
    """

    name: str
    title: str
    config: Mapping[str, object]
    folders: tuple[ImageFolderEntry, ...]
    is_system: bool
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts that the image has in the place of those of its packages."""


COMPUTER = ImageKind(
    name="freehold",
    title="Freehold computer",
    config={"User": "1000:1000", "WorkingDir": WORKSPACE},
    folders=(
        *(ImageFolderEntry(place) for place in (WORKSPACE, AGENT_HOME, AGENTS_PATH, SKILLS_PATH, "/opt/freehold")),
        ImageFolderEntry("/run", 0o1777),  # an engine gives the tmpfs there this mode
    ),
    is_system=True,
    # Where no backend of ours makes these: a computer in a container that somebody else starts.
    files={
        path: describe_etc("freehold", BRAIN_UID)[path] for path in ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
    },
)

BRAIN = ImageKind(
    name="freehold-brain",
    title="Freehold",
    config={
        "User": f"{BRAIN_UID}:{BRAIN_UID}",
        "WorkingDir": BRAIN_HOME,
        "Entrypoint": ["/usr/bin/tini", "--", "/usr/local/bin/freehold"],
        "Cmd": ["up"],
        "Env": [
            "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            f"HOME={BRAIN_HOME}",
            f"FREEHOLD_HOME={BRAIN_HOME}",
            "USER=freehold",
            "LANG=C.UTF-8",
        ],
        "Volumes": {BRAIN_HOME: {}},
        "ExposedPorts": {"3000/tcp": {}, "2222/tcp": {}},
        "StopSignal": "SIGTERM",
        "Healthcheck": {
            "Test": ["CMD-SHELL", 'curl -fsS "http://127.0.0.1:${FREEHOLD_GATEWAY_PORT:-3000}/ready"'],
            "Interval": 30 * 10**9,
            "Timeout": 10 * 10**9,
            "StartPeriod": 60 * 10**9,
            "Retries": 3,
        },
    },
    # The engine gives an empty volume the owner and mode of the folder that it covers.
    folders=(
        ImageFolderEntry(BRAIN_HOME, 0o700, BRAIN_UID),
        *(ImageFolderEntry(f"{BRAIN_HOME}/{name}", 0o700, BRAIN_UID) for name in ("workspace", "home")),
        *(
            ImageFolderEntry(place, 0o755, BRAIN_UID)
            for place in (f"{BRAIN_HOME}/agents", f"{BRAIN_HOME}/skills", LINK_FOLDER)
        ),
    ),
    is_system=False,
)
