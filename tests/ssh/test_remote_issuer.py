"""A remote Freehold that attacks the client that connects to it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from freehold.errors import FreeholdError
from freehold.ssh.client_config import SshEndpoint
from freehold.ssh.client_key_store import ClientKeyStore
from freehold.ssh.issuers import RemoteIssuer

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGQ0QtuN9vyEBHfsyjIFI7ARQrmGAhrWZcXEAfRPbnYe"
GOOD = {"host": "127.0.0.1", "port": 2222, "known_hosts": f"freehold-127.0.0.1-2222 {KEY}"}


@contextmanager
def run_fake_freehold(reply: dict[str, object]) -> Iterator[str]:
    """A fake Freehold that replies with `reply` when it is asked for its SSH server."""

    class FakeApi(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"enabled": True, "fingerprint": "", "connected": 0, **reply}).encode()
            self.answer(200, body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            made = {"id": "1", "certificate": "x", "key_id": "x", "expires": "2999-01-01T00:00:00Z"}
            self.answer(201, json.dumps({**made, "known_hosts": "", "config": ""}).encode())

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), FakeApi) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FREEHOLD_TOKEN", "fh_test")
    return tmp_path / "keys"


def test_an_honest_freehold_is_accepted(folder: Path) -> None:
    with run_fake_freehold(GOOD) as url:
        wallet = ClientKeyStore(RemoteIssuer(url), "freehold", folder)
        assert wallet.renew()
    assert "HostName 127.0.0.1\n" in wallet.config.read_text()


@pytest.mark.parametrize(
    "change",
    [
        {"host": "127.0.0.1\n    ProxyCommand touch /tmp/taken"},
        {"host": "127.0.0.1\r    ProxyCommand touch /tmp/taken"},
        {"host": "-oProxyCommand=touch"},
        {"host": "two words"},
        {"host": "%h"},
        {"host": ""},
        {"port": 70_000},
        {"port": -1},
        {"known_hosts": ""},
        {"known_hosts": "freehold *,10.0.0.1 ssh-ed25519 AAAA"},
        {"known_hosts": f"freehold ssh-rsa {KEY.split()[1]}"},
    ],
)
def test_a_hostile_freehold_cannot_write_into_the_configuration(folder: Path, change: dict[str, object]) -> None:
    with run_fake_freehold({**GOOD, **change}) as url:
        wallet = ClientKeyStore(RemoteIssuer(url), "freehold", folder)
        with pytest.raises(FreeholdError) as refused:
            wallet.renew()
    assert refused.value.code == "ssh.bad-endpoint"
    assert not wallet.config.exists()
    assert not wallet.known_hosts.exists()


@pytest.mark.parametrize("host", ["::1", "fd00::12", "agent.example.com", "my_host-2", "192.0.2.7"])
def test_each_valid_address_is_accepted(host: str) -> None:
    assert SshEndpoint(host, 22, KEY).host == host
