"""The Debian package: the same bytes each time, installed by dpkg, run by systemd, and removed with the data kept."""

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import wait_until
from tests.support.systemd_machine import SystemdMachine, systemd_machine
from tests.test_dist import build
from tools.deb import HOME, PLACE, build_deb

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="this system has no dpkg"),
]
PORTS = {"GATEWAY": 4000, "KEEPER": 4001, "OBSERVE_METRICS": 4002, "SSH": 4003}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return build_deb(wheel, tmp_path_factory.mktemp("deb"), requirements=None, level=1)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, package: Path) -> Iterator[SystemdMachine]:
    """A machine on which Freehold was never. What it needs of PyPI is that of this environment."""
    if f"python{sys.version_info.major}.{sys.version_info.minor}" != Path("/usr/bin/python3").resolve().name:
        pytest.skip("the packages of this environment are for another Python than that of the system")
    given = tmp_path_factory.mktemp("given")
    shutil.copyfile(package, given / package.name)
    packages = sysconfig.get_path("purelib")
    prepare = f"rm -rf .{HOME} etc/systemd/system/freehold.service; mkdir -p opt/packages; mount --bind {packages} opt/packages"
    with systemd_machine(tmp_path_factory.mktemp("machine"), given, prepare) as machine:
        machine.run("dpkg", "--force-confnew", "--no-triggers", "--install", f"/opt/given/{package.name}")
        place = f"{PLACE}/lib/{Path('/usr/bin/python3').resolve().name}/site-packages/needed.pth"
        machine.run("sh", "-c", f"echo /opt/packages > {place}")
        yield machine


def is_ready(machine: SystemdMachine) -> bool:
    found = machine.run("freehold", "status", "--json", check=False).stdout
    return found.startswith("{") and bool(json.loads(found)["ready"])


def test_the_same_wheel_gives_the_same_package(wheel: Path, package: Path, tmp_path: Path) -> None:
    assert build_deb(wheel, tmp_path, requirements=None, level=1).read_bytes() == package.read_bytes()
    files = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    assert " ./usr/share/man/man1/freehold.1\n" in files
    assert " ./usr/share/bash-completion/completions/freehold\n" in files
    needs = subprocess.run(["dpkg-deb", "--field", package, "Depends"], capture_output=True, text=True, check=True)
    assert "bubblewrap, libseccomp2" in needs.stdout
    assert "python3-venv" in needs.stdout, "freehold upgrade makes an environment with pip"


def test_the_service_runs_sealed_under_systemd_and_comes_back(machine: SystemdMachine) -> None:
    """As its own user. `freehold` of root is this one."""
    assert machine.run("systemctl", "is-active", "freehold", check=False).stdout == "inactive\n", "you start it"
    machine.run("systemctl", "enable", "--now", "freehold")
    wait_until(lambda: is_ready(machine))
    assert machine.run("freehold", "run", "--", "id", "-un").stdout == "agent\n"
    assert machine.run("stat", "-c", "%U %a", HOME).stdout == "freehold 700\n"
    pid = machine.run("systemctl", "show", "--value", "-p", "MainPID", "freehold").stdout.strip()
    assert machine.run("ps", "-o", "user=", "-p", pid).stdout == "freehold\n"
    machine.run("kill", "-9", pid)
    wait_until(
        lambda: (
            machine.run("systemctl", "show", "--value", "-p", "MainPID", "freehold").stdout.strip() not in ("0", pid)
        )
    )
    wait_until(lambda: is_ready(machine))


def test_a_service_backs_up_to_a_folder_that_the_manifest_names(machine: SystemdMachine) -> None:
    """The unit of the package may write to its home alone, and says how that is changed."""
    machine.run("install", "-d", "-m", "700", "-o", "freehold", "/srv/backups")
    (own, manifest), kept = ("/etc/systemd/system/freehold.service", f"{HOME}/freehold.toml"), "/opt/kept.toml"
    machine.run("sh", "-c", f"touch {manifest}; cp -a {manifest} {kept}")
    machine.run("sh", "-c", f"printf '[backup]\\nto = \"/srv/backups/freehold\"\\n' >> {manifest}")
    machine.run("freehold", "backup", "key")

    def restart() -> None:
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "restart", "freehold")

    def read_status() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(machine.run("freehold", "backup", "status", "--json", check=False).stdout)
        return found

    try:
        restart()
        wait_until(lambda: read_status()["failure"] is not None)
        assert "freehold deploy systemd" in read_status()["failure"]["hint"]
        assert read_status()["last"] is None
        machine.run("sh", "-c", f"freehold deploy systemd --user freehold > {own}")
        restart()
        wait_until(lambda: read_status()["last"] is not None)
        assert machine.run("test", "-e", "/srv/backups/freehold/meta/snapshots/000000000001").returncode == 0
    finally:
        machine.run("sh", "-c", f"rm -f {own}; mv {kept} {manifest}")
        restart()
    wait_until(lambda: is_ready(machine))


def test_a_user_runs_it_as_a_service_of_their_own(machine: SystemdMachine) -> None:
    """By the service manager of that user, which sign-in starts where there is one."""
    machine.run("useradd", "--create-home", "somebody")
    uid = machine.run("id", "-u", "somebody").stdout.strip()
    machine.run("install", "-d", "-m", "700", "-o", "somebody", f"/run/user/{uid}")
    variables = [f"XDG_RUNTIME_DIR=/run/user/{uid}", "HOME=/home/somebody"]
    words = ["--uid=somebody", "--property=Delegate=yes", *(f"--setenv={one}" for one in variables)]
    machine.run("systemd-run", "--unit=manager", *words, "/lib/systemd/systemd", "--user")

    def run(command: str, *, check: bool = True) -> "subprocess.CompletedProcess[str]":
        ports = [f"FREEHOLD_{name}_PORT={number}" for name, number in PORTS.items()]
        as_user = ["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "env", *variables, *ports]
        return machine.run(*as_user, "sh", "-c", command, check=check)

    wait_until(lambda: run("systemctl --user is-system-running", check=False).stdout.strip() in ("running", "degraded"))
    run("systemctl --user import-environment $(env | cut -d= -f1 | grep ^FREEHOLD_)")
    run(
        "mkdir -p ~/.config/systemd/user && cd ~/.config/systemd/user && "
        f"{PLACE}/bin/freehold deploy systemd --as-user --home ~/freehold > freehold.service"
    )
    run("systemctl --user daemon-reload && systemctl --user enable --now freehold")
    status = f"{PLACE}/bin/freehold status --json --home ~/freehold"
    wait_until(lambda: run(status, check=False).returncode == 0)
    assert run(f"{PLACE}/bin/freehold run --home ~/freehold -- id -un").stdout == "agent\n"
    run("systemctl --user stop freehold")
    assert run(status, check=False).returncode != 0
    machine.run("systemctl", "stop", "manager")


def test_a_start_without_system_packages_names_the_one_command_that_brings_them(machine: SystemdMachine) -> None:
    """As after `pipx install`, which brings none of them."""
    machine.run("mv", "/usr/bin/bwrap", "/opt/bwrap")
    try:
        ports = [f"FREEHOLD_{name}_PORT={number}" for name, number in PORTS.items()]
        started = machine.run("env", *ports, "freehold", "up", "-d", "--home", "/opt/other", check=False)
        machine.run("freehold", "down", "--now", "--home", "/opt/other", check=False)
    finally:
        machine.run("mv", "/opt/bwrap", "/usr/bin/bwrap")
    assert started.returncode != 0
    assert "not installed: bubblewrap (apt-get install bubblewrap)" in started.stdout + started.stderr


def test_uninstall_leaves_a_running_service_alone(machine: SystemdMachine) -> None:
    """Systemd would start it again while its files are removed."""
    machine.run("systemctl", "start", "freehold")
    wait_until(lambda: is_ready(machine))
    refused = machine.run("freehold", "uninstall", "--data", "--yes", check=False)
    assert refused.returncode == 1
    assert "systemctl disable --now freehold" in refused.stderr
    assert is_ready(machine)


def test_a_new_package_restarts_the_service(machine: SystemdMachine, package: Path) -> None:
    machine.run("systemctl", "start", "freehold")
    before = machine.run("systemctl", "show", "--value", "-p", "MainPID", "freehold").stdout
    machine.run("dpkg", "--no-triggers", "--install", f"/opt/given/{package.name}")
    assert machine.run("systemctl", "show", "--value", "-p", "MainPID", "freehold").stdout != before
    wait_until(lambda: is_ready(machine))


def test_when_it_is_removed_the_data_is_kept(machine: SystemdMachine) -> None:
    machine.run("systemctl", "start", "freehold")
    wait_until(lambda: is_ready(machine))
    told = machine.run("dpkg", "--no-triggers", "--purge", "freehold").stdout
    assert f"Your data is kept in {HOME}" in told
    assert machine.run("test", "-e", f"{HOME}/timeline.db").returncode == 0
    assert machine.run("pgrep", "-u", "freehold", check=False).returncode == 1, "nothing of it runs any more"
    assert machine.run("systemctl", "cat", "freehold", check=False).returncode != 0
    assert machine.run("test", "-e", f"{PLACE}/bin/python", check=False).returncode == 1
