"""The client's certificate is renewed whenever the server would not accept it."""

from pathlib import Path

import pytest

from freehold.ssh.client_config import SshEndpoint
from freehold.ssh.client_key_store import ClientCertificate, ClientKeyStore

NOW = 1_800_000_000.0
DAY = 86_400.0
HOST_KEY = f"ssh-ed25519 AAAA{'A' * 64}"


class CountingIssuer:
    name = "test"

    def __init__(self) -> None:
        self.now = NOW
        self.issued = 0

    def certify(self, public_key: str, seconds: int | None) -> ClientCertificate:
        self.issued += 1
        return ClientCertificate(
            str(self.issued), "certificate", self.now + DAY, SshEndpoint("localhost", 22, HOST_KEY)
        )

    def is_still_valid(self, credential: str) -> bool:
        return True


def test_a_certificate_from_the_future_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock has gone back since it was made."""
    issuer = CountingIssuer()
    monkeypatch.setattr("freehold.ssh.client_key_store.time.time", lambda: issuer.now)
    store = ClientKeyStore(issuer, "freehold", tmp_path)
    assert store.renew()
    issuer.now = NOW + 60
    assert not store.renew()
    issuer.now = NOW - 40 * DAY
    assert store.renew()
    assert not store.renew()
