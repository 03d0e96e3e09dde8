"""A Solid server of the test's own (the community server), with an account, a pod and client credentials."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests.support.condition import wait_until
from tests.support.cut_proxy import CutProxy, running_proxy
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
START = 120.0
"""Seconds: it starts slowly, and more so beside other tests."""


@dataclass
class SolidPod:
    """A server that can be stopped, hung and started again. It keeps its port and its files."""

    folder: Path
    port: int
    proxy: CutProxy
    """Clients reach it through this, so that the network between them can fail."""
    pod: str = ""
    client_id: str = ""
    client_secret: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def base(self) -> str:
        return f"http://localhost:{self.proxy.port}/"

    def settings(self, folder: str) -> dict[str, str]:
        return {"url": f"{self.pod}{folder}/", "client_id": self.client_id, "client_secret": "env:SOLID_SECRET"}

    def start(self) -> None:
        install = Path(
            subprocess.run([ROOT / "tools/install-solid"], check=True, capture_output=True, text=True).stdout.strip()
        )
        node = subprocess.run([ROOT / "tools/node-path"], check=True, capture_output=True, text=True).stdout.strip()
        server = install / "node_modules/@solid/community-server"
        command = [f"{node}/node", "--max-old-space-size=256", f"{server}/bin/server.js", "-p", str(self.port), "-b"]
        command += [self.base, "-c", f"{server}/config/file.json", "-f", f"{self.folder}/data", "-l", "error"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        wait_until(self._answers, START)

    def kill(self) -> None:
        """As a crash. Idempotent."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def hang(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "the Solid server has ended"
        with contextlib.suppress(httpx2.HTTPError):
            return httpx2.get(f"{self.base}.account/", timeout=10, trust_env=False).status_code == 200
        return False

    def make_account(self) -> None:
        """An account, a pod and client credentials, by the server's own API."""
        with httpx2.Client(timeout=60, trust_env=False) as http:

            def controls(headers: dict[str, str]) -> Any:
                return http.get(f"{self.base}.account/", headers=headers).raise_for_status().json()["controls"]

            token = http.post(controls({})["account"]["create"]).raise_for_status().json()["authorization"]
            headers = {"authorization": f"CSS-Account-Token {token}"}
            found = controls(headers)
            sign_in = {"email": "alice@example.test", "password": "correct horse"}
            http.post(found["password"]["create"], headers=headers, json=sign_in).raise_for_status()
            made = http.post(found["account"]["pod"], headers=headers, json={"name": "alice"}).raise_for_status().json()
            wanted = {"name": "freehold", "webId": made["webId"]}
            given = http.post(found["account"]["clientCredentials"], headers=headers, json=wanted).raise_for_status()
            self.pod, self.client_id, self.client_secret = made["pod"], given.json()["id"], given.json()["secret"]


@contextlib.contextmanager
def running_solid() -> Iterator[SolidPod]:
    folder = Path(tempfile.mkdtemp(prefix="solid-"))
    port = free_ports(1)[0]
    try:
        with running_proxy(("127.0.0.1", port)) as proxy:
            pod = SolidPod(folder, port, proxy)
            try:
                pod.start()
                pod.make_account()
                yield pod
            finally:
                pod.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
