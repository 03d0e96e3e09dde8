"""A git server behind HTTP with a password, on loopback: git's own `http-backend`."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

USER, PASSWORD = "owner", "the-password-that-is-never-inside"


@dataclass
class GitServer:
    port: int
    root: Path
    seen: list[str] = field(default_factory=list)
    """The `Authorization` of each request."""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, name: str) -> str:
        return f"http://{self.host}/{name}.git"

    def create(self, name: str) -> Path:
        folder = self.root / f"{name}.git"
        subprocess.run(["git", "init", "--bare", "-q", "-b", "main", folder], check=True)
        subprocess.run(["git", "-C", folder, "config", "http.receivepack", "true"], check=True)
        return folder

    def read(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", self.root / f"{name}.git", *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


def make_handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def handle_request(self) -> None:
            given = self.headers.get("authorization", "")
            server.seen.append(given)
            if given != f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}":
                self.send_response(401)
                self.send_header("www-authenticate", "Basic")
                self.end_headers()
                return
            parts = urlsplit(self.path)
            if self.headers.get("transfer-encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
            environment = {
                **os.environ,
                "GIT_PROJECT_ROOT": str(server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("content-type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
                "REMOTE_USER": USER,
            }
            answer = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True).stdout
            head, _, content = answer.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_request

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    return Handler


@contextmanager
def run_git_server(root: Path) -> Iterator[GitServer]:
    server = GitServer(0, root)
    with ThreadingHTTPServer(("127.0.0.1", 0), make_handler(server)) as listening:
        server.port = listening.server_address[1]
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
