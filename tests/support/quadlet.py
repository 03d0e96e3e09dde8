"""The deployment for podman, really started: the units that Freehold writes, read by podman's own generator.

The commands that the generator makes of them are run here, without systemd. Three words of podman 5 are left out: the
podman of Debian 12 does not know one, and two are about control groups and checks that systemd keeps.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.compose import READY_SECONDS, describe_override, pack_image
from tests.support.condition import wait_until

from freehold.images.kinds import BRAIN, COMPUTER

ROOT = Path(__file__).parents[2]
PROGRAMS = (Path("/usr/libexec/podman/quadlet"), ROOT / ".cache/quadlet/quadlet")
LEFT_OUT = frozenset({"--ignore", "--cgroups=split"})
SERVICES = {"freehold-brain": BRAIN, "freehold-computer": COMPUTER}
LIMITS = '[containers]\ndefault_ulimits = ["nofile=1024:16384", "nproc=4096:4096"]\n'
"""Podman's own defaults may be above what this machine lets anybody set."""


def find_quadlet() -> Path:
    found = next((one for one in PROGRAMS if one.exists()), None)
    if found is None:
        pytest.skip("podman's quadlet is not installed (tools/install-quadlet): no unit was read by it")
    return found


def read_units(folder: Path) -> dict[str, str]:
    """What the generator makes of the units in a folder: the text of each service by its name."""
    done = subprocess.run(
        [find_quadlet(), "--dryrun"],
        env={"PATH": "/usr/bin:/bin", "QUADLET_UNIT_DIRS": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    parts = re.split(r"^---(\S+)\.service---$", done.stdout, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def find_command(service: str, key: str = "ExecStart") -> list[str]:
    (line,) = [one for one in service.splitlines() if one.startswith(f"{key}=")]
    return shlex.split(line.removeprefix(f"{key}=").removeprefix("-"))


class PodmanDeployment:
    """Containers of a podman with folders of its own."""

    def __init__(self, folder: Path, services: dict[str, str]) -> None:
        self.folder = folder
        self._services = services
        (folder / "containers.conf").write_text(LIMITS)
        self._environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf")}

    def podman(self, *words: str, given: bytes | None = None, check: bool = True) -> "subprocess.CompletedProcess[str]":
        folders = [f"--root={self.folder}/data", f"--runroot={self.folder}/run", f"--tmpdir={self.folder}/tmp"]
        options = ["--cgroup-manager=cgroupfs", "--runtime=runc", "--events-backend=file", "--log-level=fatal"]
        done = subprocess.run(
            ["podman", *folders, *options, *words],
            env=self._environment, input=given or b"", capture_output=True, timeout=200, check=False,
        )  # fmt: skip
        read = subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())
        assert not check or read.returncode == 0, read.stdout + read.stderr
        return read

    def freehold(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        return self.podman("exec", "freehold-brain", "freehold", *words, check=check)

    def start(self) -> None:
        for name, kind in SERVICES.items():
            self.podman("import", "-", f"localhost/{name}:1", given=pack_image(kind))
        for name, service in self._services.items():
            if name not in SERVICES:
                self.podman(*(word for word in find_command(service)[1:] if word not in LEFT_OUT))
        for name in SERVICES:
            self.start_service(name)

    def start_service(self, name: str, without: tuple[str, ...] = ()) -> None:
        """By the command of its unit, with the programs of this machine in the place of those of the real image."""
        described = describe_override()["services"][name.removeprefix("freehold-")]
        given = [f"--volume={one}" for one in described["volumes"]]
        if name == "freehold-brain":
            given += [f"--env={key}={value}" for key, value in described["environment"].items()]
            given += ["--workdir", described["working_dir"], "--entrypoint", json.dumps(described["entrypoint"])]
        image = f"localhost/{name}:1"
        command = self._find_command(name, "ExecStart")
        at = command.index(image)
        words = [word for word in command[1:at] if word not in (*LEFT_OUT, *without)]
        self.podman(*words, *given, image, *command[at + 1 :], *described.get("command", []))

    def kill_service(self, name: str) -> None:
        """As the kernel does when memory is short, and what its unit does then."""
        (pid,) = self.podman("inspect", "--format={{.State.Pid}}", name).stdout.split()
        os.kill(int(pid), signal.SIGKILL)
        self.podman(*self._find_command(name, "ExecStopPost")[1:])
        (self.folder / f"{name}.cid").unlink(missing_ok=True)  # as a podman that has quadlet does

    def _find_command(self, name: str, key: str) -> list[str]:
        words = find_command(self._services[name], key)
        return [word.replace("%t", str(self.folder)).replace("%N", name) for word in words]

    def is_ready(self) -> bool:
        with contextlib.suppress(ValueError):
            return bool(json.loads(self.freehold("status", "--json", check=False).stdout)["ready"])
        return False

    def await_ready(self) -> None:
        try:
            wait_until(self.is_ready, READY_SECONDS)
        except TimeoutError:
            pytest.fail("".join(self.podman("logs", name, check=False).stderr for name in SERVICES))


@contextlib.contextmanager
def podman_deployment(units: Path) -> Iterator[PodmanDeployment]:
    services = read_units(units)
    for program in ("podman", "runc"):
        if os.geteuid() != 0 or shutil.which(program, path="/usr/sbin:/usr/bin") is None:
            pytest.skip(f"only root starts containers, with {program}: the units were not started")
    folder = Path(tempfile.mkdtemp(prefix="fh-podman-", dir="/var/tmp"))  # outlives the folders of a test
    folder.chmod(0o755)
    made = PodmanDeployment(folder, services)
    try:
        made.start()
        yield made
    finally:
        made.podman("rm", "--force", "--all", "--time=2", check=False)
        subprocess.run(["umount", "--recursive", folder / "data/overlay"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
