"""What a machine keeps that has joined a fleet: its own keys, and the certificate of its head."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.fleet.certificates import FleetKey
from freehold.home import ensure_private_folder
from freehold.private_file import read_private_file, replace_private_file
from freehold.strict_json import WrongShape, decode

_FILE = "node.json"


@dataclass(frozen=True)
class NodeSettings:
    """Nothing here opens the owner's Freehold: the keys are those of this node."""

    name: str
    address: str
    port: int
    ports: int
    """The first of Ray's ports; 0 lets Ray choose."""
    own: FleetKey
    head_certificate: str
    ray_head: str
    ray_token: str
    ray_authority: str
    ray_own: FleetKey
    cpus: float
    memory: int
    cache: int
    labels: dict[str, str] = field(default_factory=dict)
    cards: tuple[int, ...] = ()
    """The numbers of the GPUs that computers here may use: 0 is /dev/nvidia0."""
    kind: str = ""
    """Of a machine that the autoscaler has started: its kind, by which Ray knows it."""


def find_node_folder(chosen: str | None) -> Path:
    if chosen is not None:
        return Path(chosen).expanduser().absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/freehold-node")
    return Path.home() / ".local" / "share" / "freehold-node"


def read_settings(folder: Path) -> NodeSettings:
    """Raises `fleet.not-found` on a machine that has not joined."""
    path = folder / _FILE
    if not path.exists():
        raise FreeholdError(
            "fleet.not-found",
            f"This machine has not joined a fleet: {path} is missing",
            hint="freehold fleet join CODE",
        )
    try:
        return decode(NodeSettings, json.loads(read_private_file(path, code="fleet.key", remedy=f"chmod 600 {path}")))
    except (ValueError, WrongShape) as error:
        raise FreeholdError("fleet.damaged", f"{path} cannot be read: {error}", hint="Join again") from error


def write_settings(folder: Path, settings: NodeSettings) -> None:
    ensure_private_folder(folder)
    replace_private_file(folder / _FILE, json.dumps(asdict(settings)).encode())
