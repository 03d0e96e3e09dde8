"""A real S3 server (SeaweedFS) on loopback, and a proxy in front of it that fails as told."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.condition import wait_until
from tests.support.ports import free_ports

from freehold.backup.stores.aws_signature import AwsKey
from freehold.backup.stores.s3 import S3Place, S3Store

KEY = AwsKey("AKIAFREEHOLDTEST", "a-secret-of-forty-characters-for-testing", "us-east-1")
BUCKET = "backups"
START_TRIES = 4
START_DEADLINE = 120.0


@dataclass
class S3Server:
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def place(self, prefix: str, port: int | None = None) -> S3Place:
        return S3Place(f"http://127.0.0.1:{port or self.port}", BUCKET, prefix, KEY)


@contextlib.contextmanager
def run_s3_server(folder: Path) -> Iterator[S3Server]:
    """With a bucket. A start that comes to nothing, because another program took a port, is tried again."""
    for attempt in range(START_TRIES):
        place = folder / f"try-{attempt}"
        place.mkdir()
        server, process = _start(place)
        try:
            wait_until(partial(_has_bucket_or_ended, server, process), START_DEADLINE)
            if process.poll() is not None:
                if attempt == START_TRIES - 1:
                    raise AssertionError((place / "log").read_text(errors="replace")[-3000:])
                continue
            yield server
            return
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its own end takes ten seconds
            process.wait()


def _start(folder: Path) -> tuple[S3Server, "subprocess.Popen[bytes]"]:
    names = ("master", "volume", "filer", "s3")
    ports = free_ports(8)
    chosen = [f"-{name}.port={port}" for name, port in zip(names, ports[:4], strict=True)]
    chosen += [f"-{name}.port.grpc={port}" for name, port in zip(names, ports[4:], strict=True)]
    identity = {
        "name": "owner",
        "credentials": [{"accessKey": KEY.access_key, "secretKey": KEY.secret}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    weed = Path(sys.executable).with_name("weed")
    # It leaves sockets in /tmp for ever, so it gets a /tmp of its own.
    own_tmp = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/tmp", "--ro-bind", str(weed), str(weed)]
    own_tmp += ["--bind", str(folder), str(folder), "--die-with-parent", "--"]
    command = [*own_tmp, str(weed), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
    command += [
        f"-s3.config={folder}/s3.json",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.volumeSizeLimitMB=1024",
    ]
    command += ["-volume.max=8", "-master.telemetry=false", *chosen]
    quiet = subprocess.DEVNULL
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=quiet, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    return S3Server(ports[3]), process


def _has_bucket_or_ended(server: S3Server, process: "subprocess.Popen[bytes]") -> bool:
    return process.poll() is not None or _make_bucket(server)


def _make_bucket(server: S3Server) -> bool:
    """Whether it is there and can be written."""
    store = S3Store(server.place("probe"), timeout=5, pause=0.05)
    try:
        store._send("PUT", "")
        store.put("ready", b"1")
        return store.get("ready") == b"1"
    except Exception:
        return False
    finally:
        store.close()


Fault = int | str
"""An HTTP status, `cut` (the request arrives, the answer does not), `hang` (nothing happens), `slow` (the answer comes in
small pieces), or `none`."""
SLOW_PIECES, SLOW_PAUSE = 8, 0.01


@dataclass
class FaultyS3:
    """Passes requests on to a server. `decide` says what goes wrong with each: its method, its path, and its number."""

    target: int
    decide: Callable[[str, str, int], Fault] = lambda method, path, number: "none"
    seen: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0
    date: str | None = None
    conditions: tuple[int, str] | None = None
    """The status and the code that a request with `If-None-Match` gets, as from a store that does not support it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def run(self) -> Iterator["FaultyS3"]:
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                return

            def handle_one_request(self) -> None:
                with contextlib.suppress(ConnectionError):
                    super().handle_one_request()

            def do_GET(self) -> None:
                faulty.answer(self)

            do_PUT = do_DELETE = do_GET

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        with self._lock:
            number = len(self.seen)
            self.seen.append((request.command, request.path))
        if self.conditions is not None and "if-none-match" in request.headers:
            status, code = self.conditions
            self._reply(request, status, {}, f"<Error><Code>{code}</Code></Error>".encode())
            return
        fault = self.decide(request.command, request.path, number)
        if fault == "hang":
            time.sleep(3)
            request.close_connection = True
            return
        if isinstance(fault, int):
            self._reply(request, fault, {}, b"<Error><Code>Injected</Code></Error>")
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            connection.request(request.command, request.path, body, dict(request.headers.items()))
            response = connection.getresponse()
            content = response.read()
            if fault == "cut":
                request.close_connection = True
                return
            pieces = SLOW_PIECES if fault == "slow" else 1
            self._reply(request, response.status, dict(response.headers.items()), content, pieces)
        finally:
            connection.close()

    def _reply(
        self,
        request: BaseHTTPRequestHandler,
        status: int,
        headers: dict[str, str],
        content: bytes,
        pieces: int = 1,
    ) -> None:
        request.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date"):
                request.send_header(name, value)
        request.send_header("Date", self.date or request.date_time_string())
        if status not in (204, 304):
            request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if status not in (204, 304):
            step = -(-len(content) // pieces) or 1
            for at in range(0, len(content), step):
                request.wfile.write(content[at : at + step])
                if pieces > 1:
                    time.sleep(SLOW_PAUSE)
