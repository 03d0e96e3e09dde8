"""A client for the part of the engine's API that is needed. One connection for each request."""

import contextlib
import http.client
import json
import re
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from freehold.errors import FreeholdError

DEFAULT_SOCKETS = {
    "docker": ("/run/docker.sock", "/var/run/docker.sock"),
    "podman": ("/run/podman/podman.sock",),
}
PROBE_TIMEOUT = 10.0
REMOVE_TIMEOUT = 20.0
REQUEST_TIMEOUT = 60.0
LOAD_TIMEOUT = 600.0
MAX_ANSWER = 4 * 1024 * 1024


class EngineRefused(FreeholdError):
    """The engine answered with an error. `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__("computer.no-isolation", message, hint="Look at the log of the engine")
        self.status = status


@dataclass(frozen=True)
class ContainerState:
    """`pid` is that of its first process on the host; 0 when it does not run."""

    pid: int
    running: bool
    exit_code: int


@dataclass(frozen=True)
class ListedContainer:
    name: str
    labels: Mapping[str, Any]


@dataclass(frozen=True)
class _Answer:
    """`server` is what the engine calls itself: "Docker/20.10.24 (linux)", "Libpod/4.3.1 (linux)"."""

    server: str
    data: bytes


@dataclass(frozen=True)
class EngineApi:
    """The engine at a unix socket. All calls block, each for a bounded time. An answer of another shape is an error."""

    name: str
    path: Path

    def version(self) -> str:
        """As its answers say it. Asked for its version, it would start other programs to ask for theirs."""
        found = re.match(r"\S+/(\S+)", self._exchange("GET", "/_ping", timeout=PROBE_TIMEOUT).server)
        return found[1][:100] if found is not None else "unknown"

    def find_image_id(self, reference: str) -> str | None:
        """The id of an image; None when the engine does not have it, or the reference is not one."""
        found = self.read_image(reference)
        return None if found is None else str(found.get("Id"))

    def read_image(self, reference: str) -> Mapping[str, Any] | None:
        """What the engine says about an image; None as above."""
        try:
            return self._ask_object("GET", f"/images/{quote(reference, safe=':/@')}/json", timeout=PROBE_TIMEOUT)
        except EngineRefused as error:
            if error.status not in (400, 404):
                raise
            return None

    def import_image(self, tar: bytes, repository: str, tag: str) -> None:
        """Make an image of a tar of its root."""
        query = urlencode({"fromSrc": "-", "repo": repository, "tag": tag})
        answer = self.ask("POST", f"/images/create?{query}", raw=[tar], length=len(tar), kind="application/x-tar")
        found = re.search(r"[0-9a-f]{64}", json.dumps(answer))
        # Podman before 4.4 imports the image without the name that it was asked for.
        if found is not None and self.find_image_id(f"{repository}:{tag}") is None:
            self.ask("POST", f"/images/{found.group()}/tag?{urlencode({'repo': repository, 'tag': tag})}")

    def load_image(self, archive: Path) -> None:
        with archive.open("rb") as file:
            chunks = iter(lambda: file.read(1 << 20), b"")
            size = archive.stat().st_size
            self.ask(
                "POST", "/images/load?quiet=1", raw=chunks, length=size, kind="application/x-tar", timeout=LOAD_TIMEOUT
            )

    def create(self, name: str, body: dict[str, Any]) -> None:
        self.ask("POST", f"/containers/create?{urlencode({'name': name})}", body)

    def start(self, name: str) -> None:
        self.ask("POST", f"/containers/{name}/start")

    def read_state(self, name: str) -> ContainerState:
        state: Any = self._ask_object("GET", f"/containers/{name}/json", timeout=PROBE_TIMEOUT).get("State")
        try:
            return ContainerState(int(state["Pid"]), state["Running"] is True, int(state["ExitCode"]))
        except (KeyError, TypeError, ValueError) as error:
            raise self._bad_answer(f"the state of a container is {str(state)[:200]}") from error

    def list_containers(self, label: str) -> list[ListedContainer]:
        """The containers with this label ("name=value"), those that do not run too."""
        query = urlencode({"all": 1, "filters": json.dumps({"label": [label]})})
        answer = self.ask("GET", f"/containers/json?{query}", timeout=PROBE_TIMEOUT)
        if not isinstance(answer, list):
            raise self._bad_answer("its list of containers is not a list")
        found = []
        for one in answer:
            if isinstance(one, dict) and isinstance(one.get("Names"), list) and isinstance(one.get("Labels"), dict):
                names = [str(name).removeprefix("/") for name in one["Names"]]
                found += [ListedContainer(name, one["Labels"]) for name in names[:1]]
        return found

    def kill(self, name: str, signal_name: str) -> None:
        self.ask("POST", f"/containers/{name}/kill?signal={signal_name}")

    def remove(self, name: str) -> None:
        """Kill and remove a container. Idempotent."""
        try:
            self.ask("DELETE", f"/containers/{name}?force=1&v=1", timeout=REMOVE_TIMEOUT)
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
        return _decode(self._exchange(method, path, body, raw=raw, length=length, kind=kind, timeout=timeout).data)

    def _exchange(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: Iterable[bytes] | None = None,
        length: int = 0,
        kind: str = "application/json",
        timeout: float = REQUEST_TIMEOUT,
    ) -> "_Answer":
        """`timeout` is for the whole of it: an engine that sends a byte now and then is given up too."""
        connection = http.client.HTTPConnection("engine", timeout=timeout)
        connection.sock = client = self._connect(timeout)
        alarm = threading.Timer(timeout, _shut_down, [client])
        alarm.daemon = True
        alarm.start()
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
                f"The {self.name} engine at {self.path} did not answer: {str(error) or type(error).__name__}",
                hint="Look at the log of the engine, and start it again",
            ) from error
        finally:
            alarm.cancel()
            connection.close()
        if answer.status >= 400:
            raise EngineRefused(
                answer.status, f"{self.name} refused {method} {path.partition('?')[0]}: {_read_message(data)}"
            )
        return _Answer(answer.headers.get("Server", ""), data)

    def _ask_object(self, method: str, path: str, *, timeout: float = REQUEST_TIMEOUT) -> Mapping[str, Any]:
        answer = self.ask(method, path, timeout=timeout)
        if not isinstance(answer, dict):
            raise self._bad_answer(f"{method} {path} gave {str(answer)[:200]}")
        return answer

    def _bad_answer(self, what: str) -> FreeholdError:
        return FreeholdError(
            "computer.no-isolation",
            f"The {self.name} engine at {self.path} gave an answer that cannot be understood: {what}",
            hint=f"Is {self.path} the socket of {self.name}? Look at the log of the engine",
        )

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


def _shut_down(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def _decode(data: bytes) -> Any:
    """JSON, or the last line of a stream of JSON texts; None if there is nothing to decode."""
    lines = data.strip().splitlines()
    for text in (data, lines[-1] if lines else b""):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    return None


def _read_message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])[:500]
    except (ValueError, KeyError, TypeError, RecursionError):
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
