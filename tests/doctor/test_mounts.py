"""The mounts of a manifest as the doctor shows them: their state, and why one is not ready."""

from pathlib import Path

import pytest

from freehold.cli.doctor import print_event
from freehold.computer.mounts.remote_state import RemoteMountState
from freehold.computer.mounts.remote_status import serve_states
from freehold.doctor import decode_event, encode_event, mounts
from freehold.doctor.backend_choice import BackendChoice
from freehold.doctor.events import DoctorStarted
from freehold.doctor.examination import check_machine
from freehold.doctor.mounts import FoundMount
from freehold.doctor.report import DoctorReport
from freehold.home import Home

MANIFEST = """
[[computer.mounts]]
source = "{here}"
target = "/mnt/here"

[[computer.mounts]]
kind = "archive"
source = "{gone}"
target = "/mnt/gone"

[[computer.mounts]]
kind = "memory"
size = "1MiB"
target = "/mnt/memory"

[[computer.mounts]]
kind = "webdav"
endpoint = "https://files.example.com"
target = "/mnt/remote"
"""


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """With a mount that is there, one whose source is gone, one in memory and a remote one."""
    home = Home(root=tmp_path, run=tmp_path / "run")
    home.run.mkdir()
    sources = tmp_path_factory.mktemp("sources")
    home.manifest.write_text(MANIFEST.format(here=sources, gone=sources / "gone.tar"))
    return home


async def check(home: Home) -> DoctorStarted:
    return await check_machine(home, quick=True, backend=BackendChoice("bubblewrap", None))


async def test_each_mount_of_the_manifest_is_shown_with_its_state(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    states = {"/mnt/remote": RemoteMountState("failing", "files.example.com: 503", 7)}
    async with serve_states(home.run / "mounts.sock", lambda: states):
        started = await check(home)
    folder, archive, memory, remote = started.mounts
    assert (folder.kind, folder.target, folder.state, folder.words) == ("folder", "/mnt/here", "ready", "")
    assert (archive.kind, archive.target, archive.state) == ("archive", "/mnt/gone", "down")
    assert archive.words == f"{archive.source}: No such file or directory"
    assert memory == FoundMount("memory", "", "/mnt/memory", "ready", "")
    assert remote == FoundMount("webdav", "", "/mnt/remote", "failing", "files.example.com: 503")
    assert DoctorReport(started).as_json()["mounts"][3]["state"] == "failing"
    assert decode_event(encode_event(started)) == started
    print_event(started)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "mount /mnt/remote webdav, failing: files.example.com: 503" in lines
    assert f"mount /mnt/here folder {folder.source}, ready" in lines


async def test_a_remote_mount_says_that_nobody_mounts_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mounts, "find_missing_programs", lambda: iter(()))
    *_, remote = (await check(home)).mounts
    assert remote.state == "down"
    assert "Freehold does not run" in remote.words


async def test_a_remote_mount_says_which_program_is_missing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    *_, remote = (await check(home)).mounts
    assert "rclone, which is not installed (apt install rclone)" in remote.words


async def test_without_mounts_nothing_is_shown(tmp_path: Path) -> None:
    assert (await check(Home(root=tmp_path, run=tmp_path))).mounts == ()
