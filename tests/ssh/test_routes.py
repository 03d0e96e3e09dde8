"""SSH keys over the API: who may request them, what they get, and that no secret is stored."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway

from freehold.ssh.authority import make_key_pair
from freehold.ssh.keys import fingerprint, host_key_path, read_public

PUBLIC = make_key_pair().public_key


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, "[ssh]\nport = 2299\n") as running:
        yield running


async def test_a_browser_gets_a_certificate_bound_to_its_sign_in(gateway: RunningGateway) -> None:
    headers = gateway.browser()
    answer = await gateway.http.post("/v1/ssh/certificates", headers=headers, json={"public_key": PUBLIC, "label": "x"})
    assert answer.status_code == 201
    made = answer.json()
    assert made["certificate"].startswith("ssh-ed25519-cert-v01@openssh.com ")
    (session,) = gateway.services.sign_ins.list()
    assert made["key_id"] == f"owner session:{session.id}"
    assert "Port 2299" in made["config"]
    assert read_public(host_key_path(gateway.services.home)) in made["known_hosts"]
    (row,) = (await gateway.http.get("/v1/ssh/certificates", headers=headers)).json()
    assert (row["id"], row["label"], row["used"], row["revoked"]) == (made["id"], "x", None, False)


async def test_only_browsers_and_admin_tokens_get_keys(gateway: RunningGateway) -> None:
    body = {"public_key": PUBLIC}
    assert (await gateway.http.post("/v1/ssh/certificates", json=body)).status_code == 401
    everything_else = gateway.token("read", "prompt", "files", "terminal", "history")
    assert (await gateway.http.post("/v1/ssh/certificates", headers=everything_else, json=body)).status_code == 403
    assert (await gateway.http.post("/v1/ssh/keys", headers=everything_else, json={})).status_code == 403
    admin = gateway.token("admin", name="admin")
    assert (await gateway.http.post("/v1/ssh/certificates", headers=admin, json=body)).status_code == 201


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"public_key": "nonsense nonsense nonsense"}, 400),
        ({"public_key": PUBLIC, "hours": 25}, 422),
        ({"public_key": PUBLIC, "hours": 0}, 422),
        ({"public_key": PUBLIC, "principal": "root"}, 422),
        ({}, 422),
    ],
)
async def test_an_invalid_request_is_refused(gateway: RunningGateway, body: dict[str, object], status: int) -> None:
    answer = await gateway.http.post("/v1/ssh/certificates", headers=gateway.browser(), json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["code"]


async def test_a_key_pair_for_an_old_client_is_shown_once_and_not_stored(gateway: RunningGateway) -> None:
    headers = gateway.browser()
    made = (await gateway.http.post("/v1/ssh/keys", headers=headers, json={"kind": "ed25519"})).json()
    secret = made["private_key"].splitlines()[3]
    assert "PRIVATE KEY" in made["private_key"]
    listed = (await gateway.http.get("/v1/ssh/certificates", headers=headers)).text
    assert secret not in listed
    for path in gateway.services.home.root.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()


async def test_a_revoked_key_is_listed_and_cannot_be_revoked_twice(gateway: RunningGateway) -> None:
    headers = gateway.browser()
    made = (await gateway.http.post("/v1/ssh/certificates", headers=headers, json={"public_key": PUBLIC})).json()
    path = f"/v1/ssh/certificates/{made['id']}"
    assert (await gateway.http.delete(path, headers=headers)).status_code == 200
    (row,) = (await gateway.http.get("/v1/ssh/certificates", headers=headers)).json()
    assert row["revoked"]
    assert (await gateway.http.delete(path, headers=headers)).status_code == 404


async def test_the_fingerprint_is_shown(gateway: RunningGateway) -> None:
    shown = (await gateway.http.get("/v1/ssh", headers=gateway.token("read"))).json()
    assert shown["fingerprint"] == fingerprint(read_public(host_key_path(gateway.services.home)))
    assert (shown["enabled"], shown["port"], shown["connected"]) == (True, 2299, None)


async def test_no_keys_are_issued_while_ssh_is_disabled(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, "[ssh]\nenabled = false\n") as gateway:
        answer = await gateway.http.post("/v1/ssh/certificates", headers=gateway.browser(), json={"public_key": PUBLIC})
        assert answer.status_code == 503
        assert "ssh.enabled" in answer.json()["error"]["hint"]


def test_the_gateway_does_not_import_the_ssh_server() -> None:
    """Neither asyncssh nor, before a key is requested, cryptography."""
    script = (
        "import sys, freehold.gateway.app\n"
        "print([name for name in ('asyncssh', 'freehold.ssh.server', 'freehold.ssh.authority') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
