"""Two servers of others that a run on a node uses: one that is allowed, and one that wants a password of the owner."""

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.credentials.private_servers import serve_plain, serve_tls
from tests.egress.proxy_harness import Authority

USER, PASSWORD = "owner", "the-password-that-is-on-no-node"
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
MANIFEST = """
[egress]
mode = "deny"
allow = ["127.0.0.1:{plain}", "127.0.0.1:{secured}"]
[security.exceptions.private-egress]
reason = "the servers of this test"
[credentials.code]
host = "127.0.0.1:{secured}"
secret = "secret:code"
auth = "basic"
user = "owner"
paths = ["/api"]
env = ["CODE_TOKEN"]
"""
PROMPT = """RUN env > /workspace/env.txt
RUN NO_PROXY= no_proxy= curl -sS -x http://127.0.0.1:3128 http://127.0.0.1:{plain}/allowed > /workspace/allowed.txt
RUN NO_PROXY= no_proxy= curl -sS -x http://127.0.0.1:3128 http://127.0.0.1:1/other > /workspace/refused.txt
RUN freehold history-log --limit 1 > /workspace/log.txt
RUN curl -sS "$FREEHOLD_CREDENTIAL_CODE_URL/api/hold" > /workspace/held.txt
SAY Done."""


@dataclass
class OutsideServers:
    """`seen` are the paths and what was said for authorization. `/api/hold` is answered after `release`."""

    seen: list[tuple[str, str]] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    plain: int = 0
    secured: int = 0

    @property
    def manifest(self) -> str:
        return MANIFEST.format(plain=self.plain, secured=self.secured)

    @property
    def prompt(self) -> str:
        return PROMPT.format(plain=self.plain, secured=self.secured)


@contextmanager
def outside_servers(authority: Authority) -> Iterator[OutsideServers]:
    servers = OutsideServers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            servers.seen.append((self.path, self.headers.get("authorization", "")))
            if self.path == "/api/hold":
                servers.held.set()
                servers.release.wait(300)
            body = f"answer to {self.path}".encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with serve_plain(Handler) as servers.plain, serve_tls(Handler, authority.server) as servers.secured:
        try:
            yield servers
        finally:
            servers.release.set()
