"""A boot goes through its stages, and can be ended or refused in each of them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.keeper.running import Stead

from freehold.keeper.stages import STAGES
from freehold.timeline import Timeline


def test_a_first_boot_needs_no_manifest_and_notes_every_stage_with_its_duration(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    with stead.keeper() as keeper:
        ready = keeper.next("ready")
        assert ready["sign_in"].startswith(f"http://localhost:{stead.gateway_port}/sign-in#")
        assert keeper.stop() == 0
    with Timeline(stead.home.timeline, readonly=True) as timeline:
        stages = timeline.read(kinds=["boot.stage_finished"])
        assert [event.data["stage"] for event in stages] == list(STAGES)
        assert all(isinstance(event.data["seconds"], float) and event.data["seconds"] >= 0 for event in stages)
        kinds = [event.kind for event in timeline.read()]
        assert kinds.index("seal.written") < kinds.index("boot.finished") < kinds.index("seal.withdrawn")
        assert kinds[-1] == "keeper.stopped"


@pytest.mark.parametrize("stage", STAGES)
def test_sigterm_during_a_stage_ends_the_boot_in_good_order(tmp_path: Path, stage: str) -> None:
    stead = Stead(tmp_path)
    with stead.keeper("--term-at", stage) as keeper:
        keeper.next("stopped")
        assert keeper.process.wait() == 0, keeper.words()
        assert keeper.words() == ""
    assert not stead.home.seal.exists()
    if stage not in ("manifest", "paths"):
        with Timeline(stead.home.timeline, readonly=True) as timeline:
            assert timeline.verify() == []
            assert [event.data for event in timeline.read(kinds=["boot.stopped"])] == [{"stage": stage}]


def test_a_home_whose_boot_was_stopped_boots_the_next_time(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    with stead.keeper("--term-at", "computer") as keeper:
        keeper.next("stopped")
        keeper.process.wait()
    with stead.keeper() as keeper:
        keeper.next("ready")
        assert keeper.stop() == 0


@pytest.mark.parametrize(("which", "setting"), [("keeper_port", "keeper.port"), ("gateway_port", "gateway.port")])
def test_a_taken_port_is_explained_with_who_has_it_and_which_setting(tmp_path: Path, which: str, setting: str) -> None:
    stead = Stead(tmp_path)
    with socket.create_server(("127.0.0.1", getattr(stead, which))), stead.keeper() as keeper:
        failed = keeper.next("failed")
        assert keeper.process.wait() == 1
    assert failed["code"] == "keeper.port-taken"
    assert f"pid {os.getpid()}" in failed["message"]
    assert setting in failed["hint"]


def test_a_broken_manifest_ends_the_boot_with_every_error(tmp_path: Path) -> None:
    stead = Stead(tmp_path)
    stead.home.root.mkdir(mode=0o700)
    stead.home.manifest.write_text('[gateway]\nhots = "127.0.0.1"\n[history]\nquiet = "long"\n')
    with stead.keeper() as keeper:
        failed = keeper.next("failed")
        assert keeper.process.wait() == 1
    assert failed["code"] == "manifest.invalid"
    assert "hots" in failed["message"]
    assert "quiet" in failed["message"]
    with Timeline(stead.home.timeline, readonly=True) as timeline:
        assert timeline.read(kinds=["boot.failed"])[0].data["stage"] == "manifest"


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace of its own needs root")
def test_a_boot_succeeds_with_no_network_at_all(tmp_path: Path) -> None:
    """In a network namespace that has loopback and nothing else: no route, no name server."""
    stead = Stead(tmp_path)
    script = (
        "ip link set lo up 2>/dev/null; "
        f"{sys.executable} -m freehold.cli.main up -d --json && {sys.executable} -m freehold.cli.main status >/dev/null; "
        f"code=$?; {sys.executable} -m freehold.cli.main down; exit $code"
    )
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script], env=stead.environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"event": "ready"' in done.stdout
