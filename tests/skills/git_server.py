"""A real git server over HTTP: git's own http-backend behind a small web server on loopback."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from tests.credentials.private_servers import serve_plain


def make_git_handler(folder: Path) -> type[BaseHTTPRequestHandler]:
    """Serves the repositories below a folder."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            if self.headers.get("transfer-encoding") == "chunked":
                self._answer(b"".join(iter(self._read_chunk, b"")))
            else:
                self._answer(self.rfile.read(int(self.headers.get("content-length") or 0)))

        def _read_chunk(self) -> bytes:
            size = int(self.rfile.readline(), 16)
            data = self.rfile.read(size)
            self.rfile.readline()
            return data

        def _answer(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
                "GIT_CONFIG_COUNT": "2",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "GIT_CONFIG_KEY_1": "uploadpack.allowAnySHA1InWant",
                "GIT_CONFIG_VALUE_1": "true",
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True, timeout=60
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
            status = next((value for name, value in fields if name == "Status"), "200 OK")
            self.send_response(int(status.split()[0]))
            for name, value in fields:
                if name != "Status":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            """Not on the terminal."""

    return Handler


@contextmanager
def serve_git(folder: Path) -> Iterator[int]:
    """Serve the repositories below a folder. Yields the port."""
    with serve_plain(make_git_handler(folder)) as port:
        yield port
