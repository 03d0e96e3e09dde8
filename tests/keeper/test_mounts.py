"""Remote mounts in a complete Freehold: the key comes from the vault, the status tells, and whatever dies comes back."""

import os
import signal
from pathlib import Path

import pytest
from tests.computer.remote_servers import KEY, USER, storage_server
from tests.support.condition import wait_until
from tests.support.freehold import FreeholdHarness

from freehold.computer.mounts import mount_point
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.home import find_home
from freehold.keeper.artifacts import check_artifacts
from freehold.keeper.calls import MountStatus, RestartProgram
from freehold.keeper.page.overview import render_overview
from freehold.keeper.plan_reader import make_plan
from freehold.manifest import require_manifest
from freehold.manifest.sections.computer import MountSection
from freehold.mounts.__main__ import identify_mount

pytestmark = [
    pytest.mark.shared_processes,  # the keeper restarts programs that a test ends
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount here"),
]

MANIFEST = """
[[computer.mounts]]
kind = "webdav"
source = "bucket"
target = "/mnt/dav"
endpoint = "{url}"
user = "{user}"
key = "secret:dav"
writable = true

[computer.services.reader]
command = ["sh", "-c", "while :; do cat /mnt/dav/hello > /workspace/seen 2> /dev/null; sleep 0.1; done"]
"""


def write_manifest(freehold: FreeholdHarness, url: str) -> None:
    freehold.home.root.mkdir(parents=True, mode=0o700)
    freehold.home.manifest.write_text(MANIFEST.format(url=url, user=USER))


def read_mount(freehold: FreeholdHarness) -> MountStatus:
    (mount,) = freehold.status().mounts
    return mount


def is_mounted(freehold: FreeholdHarness) -> bool:
    return str(freehold.home.mount_points) in Path("/proc/self/mountinfo").read_text()


def await_content(freehold: FreeholdHarness, folder: Path, content: str) -> None:
    """Wait until a service in the computer reads this from the mount."""
    (folder / "hello").write_text(content)
    seen = freehold.home.workspace / "seen"
    wait_until(lambda: seen.exists() and seen.read_text() == content)


def test_a_mount_of_the_manifest_survives_the_end_of_every_program_around_it(tmp_path: Path) -> None:
    """The key is set while Freehold runs. Then the helpers, their program and the computer are ended, one after another."""
    freehold = FreeholdHarness(tmp_path)
    with storage_server("webdav", tmp_path / "server") as server:
        write_manifest(freehold, server.url)
        with freehold.keeper() as keeper:
            keeper.next("ready")
            wait_until(lambda: "There is no secret dav" in read_mount(freehold).words)
            assert read_mount(freehold).state == "down"
            Vault(freehold.home.vault).set("dav", KEY)
            await_content(freehold, server.bucket, "one")
            wait_until(lambda: read_mount(freehold).state == "ready")
            program = freehold.pid_of("mounts")
            os.kill(program, signal.SIGSTOP)
            unanswered = ("down", "The program mounts does not answer")
            wait_until(lambda: ((mount := read_mount(freehold)).state, mount.words) == unanswered)
            os.kill(program, signal.SIGKILL)
            await_content(freehold, server.bucket, "two")
            computer = freehold.pid_of("computer")
            freehold.call(RestartProgram("computer"))
            assert freehold.pid_of("computer") != computer
            await_content(freehold, server.bucket, "three")
            wait_until(lambda: read_mount(freehold).state == "ready")
            shown = freehold.run("status").stdout
            assert "/mnt/dav" in shown
            assert "webdav" in shown
            page = render_overview(freehold.status(), "")
            assert "History does not cover mounts" in page
            assert "/mnt/dav" in page
            assert is_mounted(freehold)
            freehold.run("down", check=True)
            assert not is_mounted(freehold)


def test_the_mounts_of_a_killed_keeper_are_removed_when_the_manifest_has_none_any_more(tmp_path: Path) -> None:
    freehold = FreeholdHarness(tmp_path)
    write_manifest(freehold, "http://127.0.0.1:9")
    try:
        with freehold.keeper() as keeper:
            keeper.next("ready")
            keeper.kill()
        assert is_mounted(freehold)
        freehold.home.manifest.write_text("")
        with freehold.keeper() as keeper:
            keeper.next("ready")
            assert not is_mounted(freehold)
            assert not freehold.home.mount_points.exists()
    finally:
        mount_point.MountPoints(freehold.home.mount_points).remove()


@pytest.mark.parametrize(
    "change",
    [
        {"target": "/mnt/other"},
        {"kind": "s3"},
        {"endpoint": "https://other.example.org"},
        {"source": "other"},
        {"user": "other"},
        {"key": "secret:other"},
        {"issuer": "https://other.example.org"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_sent_to_one_server_is_never_sent_to_another(tmp_path: Path, change: dict[str, str]) -> None:
    home = find_home(tmp_path)
    mount = MountSection(
        kind="webdav",
        source="docs",
        target="/mnt/dav",
        endpoint="https://dav.example.org",
        user="me",
        key="secret:dav",
    )
    cache = home.mount_cache(identify_mount(mount))
    assert home.mount_cache(identify_mount(mount.model_copy(update={"writable": True}))) == cache
    assert home.mount_cache(identify_mount(mount.model_copy(update=change))) != cache


def test_what_a_remote_mount_needs_is_named_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freehold = FreeholdHarness(tmp_path)
    write_manifest(freehold, "https://dav.example.org")
    plan = make_plan(require_manifest(freehold.home.manifest, {}))
    monkeypatch.setattr(mount_point, "FUSE_DEVICE", tmp_path / "no-fuse")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FreeholdError) as caught:
        check_artifacts(plan, freehold.home)
    assert caught.value.code == "keeper.missing-artifact"
    assert "rclone, which is not installed (needed by the mount at /mnt/dav)" in caught.value.message
    assert "apt install rclone" in caught.value.hint
    assert "apt install fuse3 and modprobe fuse; in a container add --device /dev/fuse" in caught.value.hint
