"""A client for the part of the engine's API that is needed. One connection for each request."""

import http.client
import json
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from freehold.errors import FreeholdError

DEFAULT_SOCKETS = {
    "docker": ("/run/docker.sock", "/var/run/docker.sock"),
    "podman": ("/run/podman/podman.sock",),
}
REQUEST_TIMEOUT = 60.0
LOAD_TIMEOUT = 600.0
MAX_ANSWER = 4 * 1024 * 1024


class EngineRefused(Exception):
    """The engine answered with an error. `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class EngineApi:
    """The engine at a unix socket. All calls block."""

    name: str
    path: Path

    def version(self) -> str:
        return str(self.ask("GET", "/version").get("Version", "unknown"))

    def has_image(self, reference: str) -> str | None:
        """The id of an image; None when the engine does not have it, or the reference is not one."""
        try:
            return str(self.ask("GET", f"/images/{quote(reference, safe=':/@')}/json")["Id"])
        except EngineRefused:
            return None

    def import_image(self, tar: bytes, repository: str, tag: str) -> None:
        """Make an image of a tar of its root."""
        query = urlencode({"fromSrc": "-", "repo": repository, "tag": tag})
        answer = self.ask("POST", f"/images/create?{query}", raw=[tar], length=len(tar), kind="application/x-tar")
        found = re.search(r"[0-9a-f]{64}", json.dumps(answer))
        # Podman before 4.4 imports the image without the name that it was asked for.
        if found is not None and self.has_image(f"{repository}:{tag}") is None:
            self.ask("POST", f"/images/{found.group()}/tag?{urlencode({'repo': repository, 'tag': tag})}")

    def load_image(self, archive: Path) -> None:
        with archive.open("rb") as file:
            chunks = iter(lambda: file.read(1 << 20), b"")
            size = archive.stat().st_size
            self.ask(
                "POST", "/images/load?quiet=1", raw=chunks, length=size, kind="application/x-tar", timeout=LOAD_TIMEOUT
            )

    def create(self, name: str, body: dict[str, Any]) -> None:
        self.ask("POST", f"/containers/create?name={name}", body)

    def start(self, name: str) -> None:
        self.ask("POST", f"/containers/{name}/start")

    def read_state(self, name: str) -> dict[str, Any]:
        state: dict[str, Any] = self.ask("GET", f"/containers/{name}/json")["State"]
        return state

    def kill(self, name: str, signal_name: str) -> None:
        self.ask("POST", f"/containers/{name}/kill?signal={signal_name}")

    def remove(self, name: str) -> None:
        """Kill and remove a container. Idempotent."""
        try:
            self.ask("DELETE", f"/containers/{name}?force=1&v=1")
        except EngineRefused as error:
            if error.status not in (404, 409):
                raise

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: Iterable[bytes] | None = None,
        length: int = 0,
        kind: str = "application/json",
        timeout: float = REQUEST_TIMEOUT,
    ) -> Any:
        """The decoded answer, None for an empty one. Raises EngineRefused, or `computer.no-isolation` without an engine."""
        connection = http.client.HTTPConnection("engine", timeout=timeout)
        connection.sock = self._connect(timeout)
        headers = {"Content-Type": kind}
        content: Any = raw
        if raw is not None:
            headers["Content-Length"] = str(length)
        elif body is not None:
            content = json.dumps(body)
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            data = answer.read(MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise FreeholdError(
                "computer.no-isolation",
                f"The {self.name} engine at {self.path} did not answer: {error}",
                hint="Look at the log of the engine, and start it again",
            ) from error
        finally:
            connection.close()
        if answer.status >= 400:
            raise EngineRefused(answer.status, _read_message(data))
        return _decode(data)

    def _connect(self, timeout: float) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(timeout)
        try:
            client.connect(str(self.path))
        except OSError as error:
            client.close()
            start = "systemctl start docker" if self.name == "docker" else "systemctl start podman.socket"
            raise FreeholdError(
                "computer.no-isolation",
                f"No {self.name} engine answers at {self.path}: {error.strerror}",
                hint=f"{start}, or set SANDBOX_HOST to its address (unix:///…)",
            ) from error
        return client


def _decode(data: bytes) -> Any:
    """JSON, or the last line of a stream of JSON texts; None if there is nothing to decode."""
    lines = data.strip().splitlines()
    for text in (data, lines[-1] if lines else b""):
        try:
            return json.loads(text)
        except ValueError:
            continue
    return None


def _read_message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return data.decode(errors="replace").strip()[:500]


def find_engine(name: str, host: str | None) -> EngineApi:
    """The engine at `host`, or where it usually listens. Raises `computer.bad-address` for an address of another kind."""
    if host:
        scheme, separator, path = host.partition("://")
        if not separator:
            scheme, path = "unix", host
        if scheme != "unix" or not path.startswith("/"):
            raise FreeholdError(
                "computer.bad-address",
                f"computer.host is {host!r}, and an engine is reached at a unix socket of this machine only",
                hint='host = "unix:///run/docker.sock"',
            )
        return EngineApi(name, Path(path))
    places = [Path(path) for path in DEFAULT_SOCKETS[name]]
    return EngineApi(name, next((path for path in places if path.exists()), places[0]))
