"""The units for podman, started for real: what podman's own generator makes of them, what it seals, and what it refuses."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from tests.support.compose import OWNER
from tests.support.condition import wait_until
from tests.support.doctor import ATTEMPTS_WHERE_ATTACHED, check_attempts
from tests.support.ports import free_ports
from tests.support.quadlet import SERVICES, PodmanDeployment, podman_deployment

from freehold.deploy.cli import command

pytestmark = pytest.mark.shared_processes
MEMORY = 600 * 1024**2
MANIFEST = f"""
[owner]
did = "{OWNER}"
[gateway]
public_url = "https://agent.example.com"
[deploy]
http_port = {{http_port}}
ssh_port = {{ssh_port}}
[computer.limits]
memory = {MEMORY}
processes = 200
"""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanDeployment]:
    home, units = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("units")
    http_port, ssh_port = free_ports(2)
    (home / "freehold.toml").write_text(MANIFEST.format(http_port=http_port, ssh_port=ssh_port))
    images = ["--brain-image", "localhost/freehold-brain:1", "--computer-image", "localhost/freehold-computer:1"]
    written = CliRunner().invoke(command, ["quadlet", str(units), "--home", str(home), *images])
    assert written.exit_code == 0, written.output
    with podman_deployment(units) as deployment:
        deployment.await_ready()
        yield deployment


def test_work_is_done_in_the_other_container_and_undone_by_this_one(deployment: PodmanDeployment) -> None:
    script = "id -un; cat /sys/class/net/*/address; echo one > story"
    assert deployment.freehold("run", "--", "sh", "-c", script).stdout == "agent\n"
    story = "/var/lib/freehold/workspace/story"
    assert deployment.podman("exec", "freehold-brain", "cat", story).stdout == "one\n"
    deployment.freehold("undo")
    assert deployment.podman("exec", "freehold-brain", "test", "-e", story, check=False).returncode == 1


def test_the_walls_of_both_containers_are_what_podman_says(deployment: PodmanDeployment) -> None:
    for name in SERVICES:
        (found,) = json.loads(deployment.podman("inspect", name).stdout)
        assert found["Config"]["User"] == "64242:64242"
        assert found["HostConfig"]["ReadonlyRootfs"]
        assert not found["HostConfig"]["Privileged"]
        assert found["EffectiveCaps"] in (None, [])
        assert found["BoundingCaps"] in (None, [])
        assert "no-new-privileges" in found["HostConfig"]["SecurityOpt"]
        assert not [one for one in found["Mounts"] if one["Source"].endswith(".sock")]
    (computer,) = json.loads(deployment.podman("inspect", "freehold-computer").stdout)
    assert computer["HostConfig"]["NetworkMode"] == "none"
    assert (computer["HostConfig"]["Memory"], computer["HostConfig"]["PidsLimit"]) == (MEMORY, 200)
    shared = {one["Name"] for one in computer["Mounts"] if one["Type"] == "volume"}
    assert shared == {f"freehold-{name}" for name in ("workspace", "agent-home", "agents", "skills", "link")}


def test_the_attempts_of_the_doctor_are_refused_in_the_computer(deployment: PodmanDeployment) -> None:
    check_attempts(deployment.freehold("doctor", "--quick", "--json", check=False).stdout, ATTEMPTS_WHERE_ATTACHED)


def test_a_computer_that_was_killed_is_linked_again_when_its_unit_starts_it(deployment: PodmanDeployment) -> None:
    """`Restart=always` of its unit is systemd's part."""
    deployment.kill_service("freehold-computer")
    wait_until(lambda: not deployment.is_ready())
    deployment.start_service("freehold-computer")
    deployment.await_ready()
    wait_until(lambda: deployment.freehold("run", "--", "true", check=False).returncode == 0)


def test_a_unit_without_a_wall_gets_no_link(deployment: PodmanDeployment) -> None:
    """The same computer with a writable root. Freehold names the wall."""
    deployment.kill_service("freehold-computer")
    deployment.start_service("freehold-computer", without=("--read-only",))
    try:
        wait_until(
            lambda: "/ can be written (read_only)" in deployment.podman("logs", "freehold-computer", check=False).stderr
        )
        assert not deployment.is_ready()
    finally:
        deployment.kill_service("freehold-computer")
        deployment.start_service("freehold-computer")
        deployment.await_ready()
