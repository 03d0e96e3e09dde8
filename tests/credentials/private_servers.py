"""Servers of others that want a password: git's own `http-backend`, an npm registry and a PyPI index, with TLS."""

import base64
import hashlib
import io
import json
import ssl
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.git.git_server import GitServer, make_handler

MOVED = "/npm/moved"
NPM_PACKAGES = ("secret-sauce", "@me/notes")


class TlsServer(ThreadingHTTPServer):
    """Ends TLS as it should: a body without a length is known to be whole only then."""

    def shutdown_request(self, request: Any) -> None:
        with suppress(OSError, ValueError):
            request.settimeout(5)
            request.unwrap()
        super().shutdown_request(request)


@contextmanager
def serve_tls(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext) -> Iterator[int]:
    """Yields the port."""
    with TlsServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        with serving(server):
            yield server.server_address[1]


@contextmanager
def serve_plain(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """The same without TLS."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, serving(server):
        yield server.server_address[1]


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def run_tls_git_server(server: GitServer, context: ssl.SSLContext) -> Iterator[GitServer]:
    with serve_tls(make_handler(server), context) as port:
        server.port = port
        yield server


@dataclass
class PackageServer:
    """`/npm/` and `/api/`, which stands for GitHub's, want a bearer token, `/simple/` and `/files/` a password."""

    token: str
    host: str
    elsewhere: str = "other.test"
    """To which requests of `/npm/moved` are led away."""
    port: int = 0
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    """The method, path and `Authorization` of each request."""
    published: list[bytes] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    """The titles of the issues that were opened."""

    def is_known(self, path: str, given: str) -> bool:
        pair = base64.b64encode(f"owner:{self.token}".encode()).decode()
        return given == (f"Bearer {self.token}" if path.startswith(("/npm/", "/api/")) else f"Basic {pair}")

    def find(self, path: str) -> tuple[str, bytes] | None:
        address = f"https://{self.host}:{self.port}"
        if path == "/api/v3/user":
            return "application/json", b'{"login": "queequeg"}'
        for name in NPM_PACKAGES:
            tarball = f"/npm/{name}/-/{name.rpartition('/')[2]}-1.0.0.tgz"
            if path == f"/npm/{name.replace('/', '%2f')}":
                return "application/json", describe_npm_package(name, f"{address}{tarball}")
            if path == tarball:
                return "application/octet-stream", npm_package(name)
        if path == "/simple/secret-spice/":
            link = f"{address}/files/secret_spice-1.0-py3-none-any.whl"
            return "text/html", f'<a href="{link}">secret_spice-1.0-py3-none-any.whl</a>'.encode()
        if path == "/files/secret_spice-1.0-py3-none-any.whl":
            return "application/octet-stream", wheel()
        return None


def make_package_handler(server: PackageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle_request(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path, given = self.path.partition("?")[0], self.headers.get("authorization", "")
            server.seen.append((self.command, path, given))
            if not server.is_known(path, given):
                self.answer(401, "text/plain", b"who are you?")
            elif path.startswith(MOVED):
                address = f"https://{server.elsewhere}:{server.port}/stolen{self.path.removeprefix(MOVED)}"
                self.answer(302, "text/plain", b"", address)
            elif self.command == "PUT":
                server.published.append(body)
                self.answer(201, "application/json", b"{}")
            elif self.command == "POST":
                server.opened.append(json.loads(body)["title"])
                self.answer(201, "application/json", b'{"number": 7}')
            else:
                found = server.find(path)
                self.answer(200, *found) if found else self.answer(404, "text/plain", b"nothing")

        def answer(self, status: int, kind: str, body: bytes, location: str | None = None) -> None:
            self.send_response(status)
            if location is not None:
                self.send_header("location", location)
            if status == 401:
                self.send_header("www-authenticate", "Basic")
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = handle_request

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    return Handler


def describe_npm_package(name: str, tarball: str) -> bytes:
    digest = base64.b64encode(hashlib.sha512(npm_package(name)).digest()).decode()
    version = {"name": name, "version": "1.0.0", "dist": {"tarball": tarball, "integrity": f"sha512-{digest}"}}
    return json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode()


def npm_package(name: str) -> bytes:
    made = io.BytesIO()
    files = {
        "package/package.json": json.dumps({"name": name, "version": "1.0.0", "main": "index.js"}).encode(),
        "package/index.js": b"module.exports = 'sauce';\n",
    }
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()[:4] + b"\0\0\0\0" + made.getvalue()[8:]  # without the time, so that it is always the same


def wheel() -> bytes:
    made = io.BytesIO()
    folder = "secret_spice-1.0.dist-info"
    files = {
        "secret_spice.py": "taste = 'spice'\n",
        f"{folder}/METADATA": "Metadata-Version: 2.1\nName: secret-spice\nVersion: 1.0\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/RECORD": f"secret_spice.py,,\n{folder}/METADATA,,\n{folder}/WHEEL,,\n{folder}/RECORD,,\n",
    }
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()
