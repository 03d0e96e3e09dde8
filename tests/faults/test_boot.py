"""A boot goes through its stages, and can be ended or refused in each of them."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness

from freehold.keeper.boot_stages import BOOT_STAGES
from freehold.timeline import Timeline


def test_a_first_boot_needs_no_manifest_and_records_every_stage_with_its_duration(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper() as keeper:
        ready = keeper.next("ready")
        assert ready["sign_in"].startswith(f"http://freehold.localhost:{harness.gateway_port}/sign-in#")
        assert keeper.stop() == 0
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        stages = timeline.read(kinds=["boot.stage_finished"])
        assert [event.data["stage"] for event in stages] == list(BOOT_STAGES)
        assert all(isinstance(event.data["seconds"], float) and event.data["seconds"] >= 0 for event in stages)
        kinds = [event.kind for event in timeline.read()]
        assert kinds.index("seal.written") < kinds.index("boot.finished") < kinds.index("seal.withdrawn")
        assert kinds[-1] == "keeper.stopped"


@pytest.mark.parametrize("stage", BOOT_STAGES)
def test_sigterm_during_a_stage_stops_the_boot_in_order(tmp_path: Path, stage: str) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper("--term-at", stage) as keeper:
        keeper.next("stopped")
        assert keeper.process.wait() == 0, keeper.error_output()
        assert keeper.error_output() == ""
    assert not harness.home.seal.exists()
    if stage not in ("manifest", "paths"):
        with Timeline(harness.home.timeline, readonly=True) as timeline:
            assert timeline.verify() == []
            assert [event.data for event in timeline.read(kinds=["boot.stopped"])] == [{"stage": stage}]


def test_a_home_whose_boot_was_stopped_boots_the_next_time(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper("--term-at", "computer") as keeper:
        keeper.next("stopped")
        keeper.process.wait()
    with harness.keeper() as keeper:
        keeper.next("ready")
        assert keeper.stop() == 0


@pytest.mark.parametrize(("which", "setting"), [("keeper_port", "keeper.port"), ("gateway_port", "gateway.port")])
def test_a_taken_port_is_explained_with_its_program_and_its_setting(tmp_path: Path, which: str, setting: str) -> None:
    harness = FreeholdHarness(tmp_path)
    with socket.create_server(("127.0.0.1", getattr(harness, which))), harness.keeper() as keeper:
        failed = keeper.next("failed")
        assert keeper.process.wait() == 1
    assert failed["code"] == "keeper.port-taken"
    assert f"pid {os.getpid()}" in failed["message"]
    assert setting in failed["hint"]


def test_a_broken_manifest_ends_the_boot_with_every_error(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path)
    harness.home.root.mkdir(mode=0o700)
    harness.home.manifest.write_text('[gateway]\nhots = "127.0.0.1"\n[history]\nquiet = "long"\n')
    with harness.keeper() as keeper:
        failed = keeper.next("failed")
        assert keeper.process.wait() == 1
    assert failed["code"] == "manifest.invalid"
    assert "hots" in failed["message"]
    assert "quiet" in failed["message"]
    with Timeline(harness.home.timeline, readonly=True) as timeline:
        assert timeline.read(kinds=["boot.failed"])[0].data["stage"] == "manifest"


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace of its own needs root")
def test_a_boot_succeeds_with_no_network_at_all(tmp_path: Path) -> None:
    """In a network namespace that has loopback and nothing else: no route, no name server."""
    harness = FreeholdHarness(tmp_path)
    script = (
        "ip link set lo up 2>/dev/null; "
        f"{sys.executable} -m freehold.cli.main up -d --json && {sys.executable} -m freehold.cli.main status >/dev/null; "
        f"code=$?; {sys.executable} -m freehold.cli.main down; exit $code"
    )
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script],
        env=harness.environment,
        capture_output=True,
        text=True,
        timeout=2 * PROCESS_TIMEOUT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"event": "ready"' in done.stdout
