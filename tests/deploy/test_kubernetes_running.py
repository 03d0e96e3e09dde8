"""The pod that Freehold writes, started for real by runc in a user namespace: what it seals, survives and refuses.

There is no cluster here: no kubelet, no scheduler and no network of pods. What runs is what a kubelet asks of a runtime.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.condition import wait_until
from tests.support.pod import BRAIN_IMAGE, COMPUTER_IMAGE, FIRST_UID, RUNC, PodNode

from freehold.computer.engine.filter_profile import make_outer_profile
from freehold.deploy.deployment import ImageNames, read_deployment
from freehold.deploy.pod import make_pod
from freehold.home import find_home
from freehold.images.kinds import BRAIN_UID

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which(RUNC) is None, reason="only root starts pods, and with runc: none was started"
    ),
]
PROFILE = "profiles/freehold.json"
MANIFEST = f"""
[owner]
did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
[gateway]
public_url = "https://agent.example.com"
[deploy.kubernetes]
seccomp_profile = "{PROFILE}"
"""
UNFILTERED = MANIFEST.partition("[deploy")[0]
PodChange = Callable[[dict[str, Any]], None]


@contextmanager
def pod_node(folder: Path, manifest: str, change: PodChange = lambda pod: None) -> Iterator[PodNode]:
    (folder / "freehold.toml").write_text(manifest)
    pod = json.loads(
        json.dumps(make_pod(read_deployment(find_home(folder), ImageNames(BRAIN_IMAGE, COMPUTER_IMAGE), "pod")))
    )
    change(pod)
    node = PodNode(pod, manifest, {PROFILE: make_outer_profile()})
    try:
        node.prepare()
        yield node
    finally:
        node.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodNode]:
    """Freehold in its pod, with the filter of system calls that it writes for the nodes."""
    with pod_node(tmp_path_factory.mktemp("home"), MANIFEST) as node:
        node.start()
        node.await_ready()
        yield node


def read_status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_the_pod_has_no_privilege_on_its_node(node: PodNode) -> None:
    pid = node.find_pid()
    status = read_status(pid)
    assert {status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert set(status["Uid"].split()) == {str(FIRST_UID + BRAIN_UID)}, "a user that the node does not have"
    assert node.execute("touch", "/usr/x", check=False).returncode != 0
    assert (node.volume / "home").stat().st_mode & 0o7777 == 0o700


def test_the_image_of_the_computer_is_copied_without_what_only_root_reads(node: PodNode) -> None:
    """Its programs can be run there, which they cannot in a volume of kind `image`."""
    system = node.folder / "computer"
    assert os.access(system / "usr/bin/python3", os.X_OK)
    assert (system / "bin").readlink() == Path("usr/bin")
    assert not (system / "usr/bin/of-root").exists()


def test_the_probes_get_their_answers(node: PodNode) -> None:
    for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert node.probe(kind) == 200


def test_work_is_done_in_a_sealed_computer_inside_of_the_pod_and_undone(node: PodNode) -> None:
    script = "id -un; grep CapBnd /proc/self/status; ls /sys/class/net 2>/dev/null; echo one > story"
    ran = node.freehold("run", "--", "sh", "-c", script).stdout
    assert ran.split() == ["agent", "CapBnd:", "0" * 16]
    story = node.volume / "home/workspace/story"
    assert story.read_text() == "one\n"
    node.freehold("undo")
    assert not story.exists()


def test_the_attempts_of_the_doctor_are_refused_in_the_pod(node: PodNode) -> None:
    done = node.freehold("doctor", "--quick", check=False)
    assert done.returncode == 0, done.stdout


def test_a_second_freehold_does_not_start_on_the_same_home(node: PodNode) -> None:
    """If a cluster ever gave the volume to two pods."""
    node.start("second")
    wait_until(lambda: not node.is_running("second"))
    assert "already" in node.read_log("second")
    assert node.probe("readinessProbe") == 200


def test_a_pod_that_was_lost_comes_back_with_its_files(node: PodNode) -> None:
    """Killed with its node, and started elsewhere with the same volume."""
    node.freehold("run", "--", "sh", "-c", "echo kept > /workspace/tale")
    node.kill()
    node.start()
    node.await_ready()
    assert node.freehold("run", "--", "cat", "/workspace/tale").stdout == "kept\n"


def test_without_a_filter_of_the_node_it_seals_the_computer_all_the_same(tmp_path: Path) -> None:
    with pod_node(tmp_path, UNFILTERED) as node:
        done = node.run_once("doctor", "--quick")
        assert done.returncode == 0, done.stdout + done.stderr


def refuse_calls(pod: dict[str, Any]) -> None:
    pod["spec"]["containers"][0]["securityContext"]["seccompProfile"] = {"type": "RuntimeDefault"}


def mask_proc(pod: dict[str, Any]) -> None:
    del pod["spec"]["containers"][0]["securityContext"]["procMount"]


def share_users(pod: dict[str, Any]) -> None:
    """Kubernetes takes no unmasked /proc then."""
    mask_proc(pod)
    pod["spec"]["hostUsers"] = True


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (refuse_calls, ["seccompProfile: Unconfined"]),
        (mask_proc, ["procMount: Unmasked"]),
        (share_users, ["procMount: Unmasked", "hostUsers: false"]),
    ],
)
def test_a_setting_that_the_pod_lacks_is_named_and_no_computer_starts(
    tmp_path: Path, change: PodChange, named: list[str]
) -> None:
    with pod_node(tmp_path, UNFILTERED, change) as node:
        report = json.loads(node.run_once("doctor", "--quick", "--json").stdout)
    (missing,) = report["missing_walls"]
    assert [
        words
        for words in ("seccompProfile: Unconfined", "procMount: Unmasked", "hostUsers: false")
        if words in missing["message"]
    ] == named
    assert "freehold deploy compose" in missing["hint"]
    assert report["isolation"] is None
