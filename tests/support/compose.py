"""A deployment of docker compose that really runs: the files that Freehold writes, with images that take no time to make.

The images have the folders and users of the real ones, and no programs: containers see the /usr of this machine and
this checkout, read-only. tests/images/test_build.py builds and starts the real ones.
"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.computer.engines import engine_process
from tests.support.condition import wait_until

from freehold.computer.engine.api import EngineApi
from freehold.computer.engine.layout import EMPTY_FOLDERS
from freehold.computer.walls.inside import SHARED_ETC, TOP_LEVEL
from freehold.deploy.section import DeploySection
from freehold.images.kinds import BRAIN, BRAIN_HOME, COMPUTER, ImageFolderEntry, ImageKind
from freehold.images.layer import LayerWriter

ROOT = Path(__file__).parents[2]
OWNER = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
READY_SECONDS = 90.0
CADDY = ImageKind(
    "caddy", "Caddy", {}, tuple(map(ImageFolderEntry, ("/data", "/config", "/etc/caddy"))), is_system=False
)


def pack_image(kind: ImageKind) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        writer = LayerWriter(tar, 0)
        # The Python of this checkout may be in the home of root.
        root = ImageFolderEntry("/root", 0o700 if kind.is_system else 0o755)
        for one in (*kind.folders, root, ImageFolderEntry("/tmp", 0o1777)):
            writer.add_folder(one.place, one.mode, one.owner)
        for name in EMPTY_FOLDERS:
            writer.add_folder(f"/{name}", 0o755)
        for name in (*TOP_LEVEL, *(f"etc/{each}" for each in SHARED_ETC)):
            with contextlib.suppress(OSError):
                writer.add_link(f"/{name}", str(Path("/", name).readlink()))
        for place, text in kind.files.items():
            writer.add_file(place, text.encode())
    return packed.getvalue()


def list_system_volumes() -> list[str]:
    places = (*TOP_LEVEL, *(f"etc/{each}" for each in SHARED_ETC))
    shown = [name for name in places if not Path("/", name).is_symlink() and os.access(f"/{name}", os.R_OK)]
    return [f"/{name}:/{name}:ro" for name in ("usr", *shown)]


def describe_override() -> dict[str, Any]:
    """What stands in the place of the programs of the real images."""
    prefixes = dict.fromkeys(str(Path(one).resolve()) for one in (ROOT, sys.prefix, sys.base_prefix))
    programs = [f"{one}:{one}:ro" for one in prefixes if one != "/usr"]
    environment = {"HOME": BRAIN_HOME, "FREEHOLD_HOME": BRAIN_HOME, "USER": "freehold", "LANG": "C.UTF-8"}
    search = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    brain = {
        "entrypoint": [sys.executable, "-m", "freehold.cli.main"],
        "command": ["up"],
        "working_dir": BRAIN_HOME,
        "environment": {**environment, "PATH": search},
        "volumes": [*list_system_volumes(), *programs],
    }
    caddy = {
        "entrypoint": ["/usr/bin/caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"],
        "environment": {"XDG_DATA_HOME": "/data", "XDG_CONFIG_HOME": "/config", "HOME": "/data"},
        "volumes": list_system_volumes(),
    }
    return {"services": {"brain": brain, "computer": {"volumes": list_system_volumes()}, "caddy": caddy}}


class ComposeProject:
    """The containers of one folder. The engine names them `NAME_SERVICE_1`."""

    def __init__(self, folder: Path, api: EngineApi, host: str, name: str = "deployed") -> None:
        self.folder = folder
        self.api = api
        self.host = host
        self.name = name
        self._environment = {
            **os.environ,
            "DOCKER_HOST": host,
            "COMPOSE_PROJECT_NAME": name,
            "SCRIPTED_KEY": "a-scripted-key-0123456789",
        }

    def run(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            ["docker-compose", *words],
            cwd=self.folder, env=self._environment, capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def execute(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """A program beside Freehold, in its container."""
        return self.run("exec", "-T", "brain", *words, check=check)

    def freehold(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return self.execute("freehold", *words, check=check)

    def inspect(self, service: str) -> dict[str, Any]:
        found: dict[str, Any] = self.api.ask("GET", f"/containers/{self.name}_{service}_1/json")
        return found

    def kill(self, service: str) -> int:
        """As the kernel does when memory is short: the engine starts it again. Returns the pid that it had."""
        pid = self.api.read_state(f"{self.name}_{service}_1").pid
        os.kill(pid, signal.SIGKILL)
        return pid

    def is_ready(self) -> bool:
        with contextlib.suppress(ValueError):
            status = json.loads(self.freehold("status", "--json", check=False).stdout)
            return bool(status["ready"])
        return False

    def await_ready(self) -> None:
        try:
            wait_until(self.is_ready, READY_SECONDS)
        except TimeoutError:
            pytest.fail(self.run("logs", "--tail", "100", check=False).stdout)


@contextlib.contextmanager
def compose_engine() -> Iterator[tuple[EngineApi, str]]:
    """An engine that has the two images as `brain:1` and `computer:1`, and one for Caddy."""
    for program in ("docker-compose", "caddy"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: the deployment was not started")
    with engine_process("docker") as engine:
        api = EngineApi("docker", engine.folder / "sock")
        for name, kind in (("brain", BRAIN), ("computer", COMPUTER)):
            api.import_image(pack_image(kind), name, "1")
        api.import_image(pack_image(CADDY), *DeploySection().caddy_image.split(":"))
        yield api, engine.host
