"""A push service of the test's own, on a loopback port. It checks what RFC 8030 and RFC 8292 want of a sender."""

import base64
import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwt
from joserfc.jwk import ECKey


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class PushService:
    """`pushes` are the bodies as they came, by path. `status` is what it answers; `once`, by path, the next time."""

    pushes: list[tuple[str, bytes, dict[str, str]]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    mistakes: list[str] = field(default_factory=list)
    status: int = 201
    once: dict[str, int] = field(default_factory=dict)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        try:
            self._check(headers, body)
        except Exception as error:
            self.mistakes.append(repr(error))
            return 400
        status = self.once.pop(path, self.status)
        if 200 <= status < 300:
            self.pushes.append((path, body, headers))
        return status

    def _check(self, headers: dict[str, str], body: bytes) -> None:
        assert headers["content-encoding"] == "aes128gcm"
        assert headers["ttl"].isdecimal()
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,32}", headers["topic"])
        assert len(body) <= 4096
        found = re.fullmatch(r"vapid t=([^,]+), k=([A-Za-z0-9_-]+)", headers["authorization"])
        assert found is not None
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(found[2]))
        token = jwt.decode(found[1], ECKey.import_key(_as_jwk(point)), algorithms=["ES256"])
        assert token.claims["aud"] == self.url
        assert time.time() < token.claims["exp"] <= time.time() + 86_400
        assert token.claims["sub"].startswith(("mailto:", "https:", "http:"))
        self.keys.add(found[2])


def _as_jwk(key: ec.EllipticCurvePublicKey) -> Any:
    numbers = key.public_numbers()
    coordinates = {
        name: base64.urlsafe_b64encode(value.to_bytes(32, "big")).rstrip(b"=").decode()
        for name, value in (("x", numbers.x), ("y", numbers.y))
    }
    return json.loads(json.dumps({"kty": "EC", "crv": "P-256", **coordinates}))


@contextlib.contextmanager
def running_push_service() -> Iterator[PushService]:
    service = PushService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(service.take(self.path, headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        assert service.mistakes == []
