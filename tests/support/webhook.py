"""A receiver of webhooks, on a free loopback port. It checks each signature with a library of others."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="


@dataclass
class WebhookReceiver:
    """What it got, in order, and what it answers. `answer` may be a function of the event."""

    received: list[dict[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    forged: int = 0
    status: int = 204
    refused_types: frozenset[str] = frozenset()
    port: int = 0
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def take(self, body: bytes, headers: dict[str, str]) -> int:
        try:
            Webhook(SECRET).verify(body, headers)
        except WebhookVerificationError:
            self.forged += 1
            return 401
        event = json.loads(body)
        if event["type"] in self.refused_types:
            return 422
        if 200 <= self.status < 300:
            self.received.append(event)
            self.ids.append(headers["webhook-id"])
        return self.status

    def start(self) -> None:
        """On the same port as before, when it has been started once."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if receiver.server is None or len(body) < length:
                    self.close_connection = True  # it is stopped and this connection is from before, or it was cut
                    return
                status = receiver.take(body, {name.lower(): value for name, value in self.headers.items()})
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Nothing listens any more. Idempotent."""
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()


@contextlib.contextmanager
def running_webhook() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()
