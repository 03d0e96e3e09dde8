"""What an image is for: the system of the computer, or Freehold itself as a program in a container."""

from collections.abc import Mapping
from dataclasses import dataclass

from freehold.computer.contract.conventions import AGENT_HOME, AGENTS_PATH, WORKSPACE

BRAIN_HOME = "/var/lib/freehold"
BRAIN_UID = 1000


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


COMPUTER = ImageKind(
    name="freehold",
    title="Freehold computer",
    config={"User": "1000:1000", "WorkingDir": WORKSPACE},
    folders=(
        *(ImageFolderEntry(place) for place in (WORKSPACE, AGENT_HOME, AGENTS_PATH, "/opt/freehold")),
        ImageFolderEntry("/run", 0o1777),  # an engine gives the tmpfs there this mode
    ),
    is_system=True,
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
    folders=(ImageFolderEntry(BRAIN_HOME, 0o700, BRAIN_UID),),
    is_system=False,
)
