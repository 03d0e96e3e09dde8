"""The configuration of nginx in the guide, with the real nginx in front of a Freehold that runs."""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from tests.e2e.atproto.certificates import Certificates, make_certificates
from tests.support.condition import DEADLINE, wait_until
from tests.support.ports import free_ports
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, prepare_harness, run_harness
from websockets.sync.client import connect

from freehold.doctor.public_site import PublicSite, examine_site
from freehold.identity.tokens import ApiTokens

NGINX = "/usr/sbin/nginx"
pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(shutil.which(NGINX) is None, reason="nginx is not installed"),
]
HOST, OWNER = "agent.example.com", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
GUIDE = Path(__file__).parents[2] / "docs/guides/deploy.md"
AROUND = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    uwsgi_temp_path {folder}/uwsgi;
{servers}
}}
"""


@dataclass(frozen=True)
class Site:
    freehold: RunningFreehold
    certificates: Certificates
    https_port: int
    http_port: int


def read_blocks(language: str) -> list[str]:
    """The blocks of the section on nginx."""
    section = GUIDE.read_text().split("\n### nginx\n")[1].split("\n### ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("nginx")
    http_port, https_port = free_ports(2)
    certificates = make_certificates(folder, [HOST, f"5173.{HOST}"])
    (manifest,) = read_blocks("toml")
    owner = f'[owner]\ndid = "{OWNER}"\n'
    harness = prepare_harness(folder / "freehold", FreeholdOptions(manifest=owner + manifest))
    (servers,) = read_blocks("nginx")
    for written, here in (
        ("listen 80;", f"listen 127.0.0.1:{http_port};"),
        ("listen 443 ", f"listen 127.0.0.1:{https_port} "),
        ("127.0.0.1:3000", f"127.0.0.1:{harness.gateway_port}"),
        ("/etc/letsencrypt/live/freehold/fullchain.pem", str(certificates.certificate)),
        ("/etc/letsencrypt/live/freehold/privkey.pem", str(certificates.key)),
    ):
        assert servers.count(written) == 1, written
        servers = servers.replace(written, here)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder, servers=servers, user=user))
    command = [NGINX, "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    with run_harness(harness) as freehold, subprocess.Popen(command) as nginx:
        try:
            wait_until(lambda: _answers(https_port) or nginx.poll() is not None)
            assert nginx.poll() is None, (folder / "error.log").read_text()
            yield Site(freehold, certificates, https_port, http_port)
        finally:
            nginx.terminate()
            nginx.wait(60)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_look_from_outside_finds_nothing_wrong(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """But the age of the certificate, which is of a test."""
    monkeypatch.setenv("SSL_CERT_FILE", str(site.certificates.authority))
    seen = PublicSite(HOST, site.https_port, site.http_port, "127.0.0.1", closed_ports={})
    found = {finding.name: finding for finding in examine_site(seen)}
    assert [finding.name for finding in found.values() if not finding.is_right] == ["certificate"], found
    assert found["certificate"].found.startswith("valid for 0 days"), found
    assert found["plain http"].found == f"301 https://{HOST}/"


def test_large_files_and_the_socket_pass(site: Site) -> None:
    context = ssl.create_default_context(cafile=str(site.certificates.authority))
    with ApiTokens(site.freehold.home.identity, owner=OWNER) as tokens:
        secret = tokens.create("test", ("read", "files"), None)[1]
    headers = {"Authorization": f"Bearer {secret}", "Host": HOST}
    with httpx2.Client(base_url=f"https://127.0.0.1:{site.https_port}", headers=headers, verify=context) as client:
        sent = client.put(
            "/v1/files/content",
            params={"path": "large"},
            content=(bytes(1 << 20) for _ in range(20)),
            extensions={"sni_hostname": HOST},
            timeout=DEADLINE,
        )
    assert sent.status_code == 200, sent.text
    assert (site.freehold.home.workspace / "large").stat().st_size == 20 << 20
    with connect(
        f"wss://{HOST}/v1/socket",
        ssl=context,
        additional_headers={"Authorization": f"Bearer {secret}", "Origin": f"https://{HOST}"},
        sock=socket.create_connection(("127.0.0.1", site.https_port)),
        open_timeout=DEADLINE,
        proxy=None,
    ) as opened:
        opened.send(json.dumps({"type": "subscribe", "topic": "health"}))
        assert json.loads(opened.recv(DEADLINE))
