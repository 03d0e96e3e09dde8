"""A Matrix homeserver of the test's own: Synapse, with its database in memory, and accounts made by its own API."""

import contextlib
import hashlib
import hmac
import json
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from tests.support.condition import wait_until
from tests.support.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
START = 120.0
SECRET = "only-for-this-test"
CLIENT = "/_matrix/client/v3"


@dataclass
class MatrixAccount:
    """A person with a client."""

    server: "Synapse"
    user: str
    token: str

    def call(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        headers = {"authorization": f"Bearer {self.token}"}
        reply = httpx2.request(
            method, f"{self.server.url}{CLIENT}{path}", headers=headers, json=body, timeout=60, trust_env=False
        )
        assert reply.status_code == status, reply.text
        return reply.json()

    def find_invitation(self) -> str:
        """A room into which somebody has invited this account; empty when there is none."""
        invited = self.call("GET", "/sync?timeout=0").get("rooms", {}).get("invite", {})
        return next(iter(invited), "")

    def join(self, room: str, *, status: int = 200) -> None:
        self.call("POST", f"/join/{quote(room)}", {}, status=status)

    def say(self, room: str, text: str, *, reply_to: str | None = None) -> str:
        content: dict[str, Any] = {"msgtype": "m.text", "body": text}
        if reply_to is not None:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
        path = f"/rooms/{quote(room)}/send/m.room.message/{uuid.uuid4().hex}"
        return str(self.call("PUT", path, content)["event_id"])

    def upload(self, room: str, name: str, data: bytes) -> None:
        headers = {"authorization": f"Bearer {self.token}", "content-type": "text/plain"}
        url = f"{self.server.url}/_matrix/media/v3/upload?filename={quote(name)}"
        made = httpx2.post(url, headers=headers, content=data, timeout=60, trust_env=False).raise_for_status().json()
        content = {"msgtype": "m.file", "body": name, "url": made["content_uri"], "info": {"size": len(data)}}
        self.call("PUT", f"/rooms/{quote(room)}/send/m.room.message/{uuid.uuid4().hex}", content)

    def read(self, room: str) -> list[dict[str, Any]]:
        """The messages of others in a room, the oldest first."""
        found = self.call("GET", f"/rooms/{quote(room)}/messages?dir=b&limit=50")["chunk"][::-1]
        return [one for one in found if one["type"] == "m.room.message" and one["sender"] != self.user]


@dataclass
class Synapse:
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        install = subprocess.run([ROOT / "tools/install-synapse"], check=True, capture_output=True, text=True)
        python = f"{install.stdout.strip()}/bin/python"
        config = self.folder / "homeserver.yaml"
        config.write_text(json.dumps(self._configuration()))  # JSON is YAML
        logs = {"version": 1, "root": {"level": "ERROR", "handlers": []}, "disable_existing_loggers": False}
        (self.folder / "log.yaml").write_text(json.dumps(logs))
        argv = [python, "-m", "synapse.app.homeserver", "-c", str(config)]
        quiet = subprocess.DEVNULL
        subprocess.run([*argv, "--generate-keys"], check=True, stdout=quiet, stderr=quiet)
        self.process = subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet)
        wait_until(self._answers, START)

    def stop(self) -> None:
        """Idempotent."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def register(self, name: str) -> MatrixAccount:
        url = f"{self.url}/_synapse/admin/v1/register"
        with httpx2.Client(timeout=60, trust_env=False) as http:
            nonce = http.get(url).raise_for_status().json()["nonce"]
            signed = "\0".join((nonce, name, f"password of {name}", "notadmin")).encode()
            mac = hmac.new(SECRET.encode(), signed, hashlib.sha1).hexdigest()
            body = {"nonce": nonce, "username": name, "password": f"password of {name}", "admin": False, "mac": mac}
            made = http.post(url, json=body).raise_for_status().json()
        return MatrixAccount(self, made["user_id"], made["access_token"])

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "Synapse has ended"
        with contextlib.suppress(httpx2.HTTPError):
            return httpx2.get(f"{self.url}/_matrix/client/versions", timeout=10, trust_env=False).status_code == 200
        return False

    def _configuration(self) -> dict[str, Any]:
        generous = {"per_second": 10_000, "burst_count": 10_000}
        return {
            "server_name": "localhost",
            "listeners": [
                {
                    "port": self.port,
                    "bind_addresses": ["127.0.0.1"],
                    "type": "http",
                    "resources": [{"names": ["client", "media"]}],
                }
            ],
            "database": {"name": "sqlite3", "args": {"database": ":memory:"}},
            "media_store_path": f"{self.folder}/media",
            "signing_key_path": f"{self.folder}/key",
            "pid_file": f"{self.folder}/pid",
            "log_config": f"{self.folder}/log.yaml",
            "report_stats": False,
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            "registration_shared_secret": SECRET,
            "macaroon_secret_key": SECRET,
            "form_secret": SECRET,
            "presence": {"enabled": False},
            "rc_message": generous,
            "rc_login": {"address": generous, "account": generous},
            "rc_joins": {"local": generous},
            "rc_invites": {"per_room": generous, "per_user": generous, "per_issuer": generous},
        }


@contextlib.contextmanager
def running_synapse() -> Iterator[Synapse]:
    folder = Path(tempfile.mkdtemp(prefix="synapse-"))
    server = Synapse(folder, free_ports(1)[0])
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
