"""Full and read-only disks are explained, the keeper survives them, and continues when there is space again."""

import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness

from freehold.timeline import Timeline

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


@contextmanager
def small_disk(folder: Path, size: str, *options: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Leave no byte free."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        chunk = b"x" * 65536
        while chunk:
            try:
                file.write(chunk)
            except OSError:
                chunk = chunk[: len(chunk) // 2]
    return ballast


def read_component(harness: FreeholdHarness, name: str) -> str:
    """Its state in `/health`."""
    with urllib.request.urlopen(f"{harness.url}/health", timeout=60) as answer:
        components = json.load(answer)["components"]
    return next(str(one["state"]) for one in components if one["name"] == name)


@needs_root
def test_a_full_disk_neither_ends_the_keeper_nor_damages_the_timeline(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "24M") as disk:
        harness = FreeholdHarness(disk)
        with harness.keeper() as keeper:
            keeper.next("ready")
            ballast = fill(disk)
            os.kill(keeper.pid_of("computer"), signal.SIGKILL)
            keeper.next("lost")
            keeper.next("sealed")
            status = harness.status()
            assert status.ready
            assert status.timeline_trouble, "the owner is told that events wait"
            shown = harness.run("status")
            assert shown.returncode == 1
            # The gateway may still be starting, which is then told as well.
            assert re.search("not ready: .*The disk is full: 0 B of 25 MB free", shown.stdout)
            assert harness.run("status", "--json").stdout.count('"state": "full"') == 1
            assert read_component(harness, "disk") == "failed"
            ballast.unlink()
            assert keeper.stop() == 0
        with Timeline(harness.home.timeline, readonly=True) as timeline:
            assert timeline.verify() == []
            assert [event.data["program"] for event in timeline.read(kinds=["program.died"])] == ["computer"]


@needs_root
def test_a_boot_on_a_full_disk_is_explained_and_ends(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1M") as disk:
        harness = FreeholdHarness(disk)
        fill(disk)
        with harness.keeper() as keeper:
            failed = keeper.next("failed")
            assert keeper.process.wait() == 1
            assert "space" in failed["message"].lower() or "full" in failed["message"].lower()
            assert failed["hint"]


@needs_root
def test_a_read_only_home_is_explained_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8M") as disk:
        harness = FreeholdHarness(disk)
        harness.home.root.mkdir(mode=0o700)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with harness.keeper() as keeper:
            failed = keeper.next("failed")
            assert failed["code"] == "home.not-writable"
            assert str(harness.home.root) in failed["message"]
            assert keeper.process.wait() == 1
        assert list(harness.home.root.iterdir()) == []
