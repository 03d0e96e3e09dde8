"""The keys of a fleet's head and the nodes that have joined, below the home."""

import json
import secrets
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.fleet.certificates import (
    FleetKey,
    make_authority,
    make_key,
    make_own_pair,
    make_request,
    sign_request,
    write_key,
)
from freehold.fleet.ray_sandbox import RayKeys
from freehold.home import ensure_private_folder
from freehold.private_file import make_private_file, read_private_file, replace_private_file
from freehold.strict_json import WrongShape, decode

_REMEDY = "chmod 600 the file; if others could read it, remove it: all nodes must join again"


@dataclass(frozen=True)
class KnownNode:
    """A node that has joined. Its certificate is the only one that it is believed with."""

    name: str
    address: str
    port: int
    certificate: str
    ray_fingerprint: str
    labels: dict[str, str] = field(default_factory=dict)
    is_draining: bool = False
    kind: str = ""
    """Of a machine that the autoscaler has started: its kind in the manifest."""


class FleetFolder:
    """Blocking. What is missing is made when it is first read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._changing = threading.Lock()
        ensure_private_folder(root)

    def read_head(self) -> FleetKey:
        """The key that the links use."""
        return self._read_pair("head", lambda: make_own_pair("freehold fleet head"))

    def read_authority(self) -> FleetKey:
        """Vouches for the certificates of Ray."""
        return self._read_pair("ray-authority", lambda: make_authority("freehold fleet"))

    def read_token(self) -> str:
        path = self.root / "ray-token"
        make_private_file(path, secrets.token_hex(32).encode())
        return read_private_file(path, code="fleet.key", remedy=_REMEDY).decode()

    def make_head_ray_keys(self, address: str) -> RayKeys:
        """New at each start: nobody needs the old ones."""
        authority = self.read_authority()
        key = make_key()
        certificate = sign_request(authority, make_request(key), "freehold fleet head", (address,))
        return RayKeys(self.read_token(), authority.certificate, FleetKey(certificate, write_key(key)))

    def read_nodes(self) -> dict[str, KnownNode]:
        path = self.root / "nodes.json"
        if not path.exists():
            return {}
        try:
            nodes = decode(tuple[KnownNode, ...], json.loads(path.read_bytes()))
        except (ValueError, WrongShape) as error:
            raise FreeholdError(
                "fleet.damaged", f"{path} cannot be read: {error}", hint="Remove it, and let all nodes join again"
            ) from error
        return {node.name: node for node in nodes}

    def change_nodes(self, change: Callable[[dict[str, KnownNode]], dict[str, KnownNode]]) -> None:
        """One change after the other: machines join in threads."""
        with self._changing:
            self._write_nodes(change(self.read_nodes()))

    def _write_nodes(self, nodes: dict[str, KnownNode]) -> None:
        body = json.dumps([asdict(node) for node in nodes.values()], indent=1)
        replace_private_file(self.root / "nodes.json", body.encode())

    def _read_pair(self, name: str, make: Callable[[], FleetKey]) -> FleetKey:
        path = self.root / f"{name}.json"
        if not path.exists():
            pair = make()
            make_private_file(path, json.dumps(asdict(pair)).encode())
        return decode(FleetKey, json.loads(read_private_file(path, code="fleet.key", remedy=_REMEDY)))
