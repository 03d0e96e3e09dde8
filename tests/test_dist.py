"""The wheel: the same bytes each time, with everything but system packages, and it runs without the checkout."""

import hashlib
import json
import platform
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness
from tools.wheel_tag import find_platform

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("archive"), "sdist")


def build(folder: Path, kind: str = "wheel", source: Path = ROOT) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=200)
    (found,) = folder.glob("freehold-*")
    return found


def test_the_same_sources_give_the_same_bytes(wheel: Path, archive: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "wheel").read_bytes() == wheel.read_bytes()
    assert build(tmp_path / "archive", "sdist").read_bytes() == archive.read_bytes()


def test_the_source_archive_gives_the_same_wheel(wheel: Path, archive: Path, tmp_path: Path) -> None:
    """As pip builds it, from the archive alone: with the page, the model of memory and the addon, byte by byte."""
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    again = build(tmp_path / "again", source=source)
    with zipfile.ZipFile(wheel) as ours, zipfile.ZipFile(again) as theirs:
        assert set(theirs.namelist()) == set(ours.namelist())
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())


def test_the_name_of_the_wheel_says_where_its_addon_can_be_loaded(wheel: Path) -> None:
    assert re.fullmatch(rf"freehold-[^-]+-py3-none-manylinux_2_\d+_{platform.machine()}\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        (about,) = [name for name in archive.namelist() if name.endswith(".dist-info/WHEEL")]
        text = archive.read(about).decode()
    assert "Root-Is-Purelib: false" in text
    assert f"Tag: {wheel.stem.split('-', 2)[2]}\n" in text


def test_the_tag_is_that_of_the_addon_and_not_of_this_machine() -> None:
    head = b"\x7fELF" + bytes(14)
    assert find_platform(head + b"\xb7\0 GLIBC_2.2.5 GLIBC_2.34 ") == "manylinux_2_34_aarch64"
    assert find_platform(head + b"\x3e\0 GLIBC_2.9 ") == "manylinux_2_17_x86_64"
    for wrong in (b"", head + b"\x28\0", b"#!/bin/sh and more than twenty bytes"):
        with pytest.raises(ValueError, match="not for a processor"):
            find_platform(wrong)


def test_the_wheel_has_the_control_center_and_all_that_is_built(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for needed in (
        "freehold/gateway/static/index.html",
        "freehold/guest/isolates/fork.node",
        "freehold/slots/memory/minilm/weights.safetensors",
        "freehold/backup/job.py",
        "freehold/CHANGELOG.md",
        "freehold/py.typed",
    ):
        assert needed in names, needed
    assert any(name.endswith("share/man/man1/freehold.1") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "bench/", "tools/")) or name.endswith(".pyc")]


def test_a_wheel_in_an_empty_environment_runs_to_ready(wheel: Path, tmp_path: Path) -> None:
    """pip installs it with the packages that it declares, of the versions that are locked, and nothing else is there."""
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=200)
    python = place / "bin" / "python"
    (tmp_path / "wanted.txt").write_text(
        f"freehold @ {wheel.as_uri()} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    )
    locked = ["-r", str(ROOT / "requirements/runtime.lock"), "-r", str(tmp_path / "wanted.txt")]
    installed = subprocess.run(
        [str(python), "-m", "pip", "install", "-q", "--require-hashes", "--only-binary=:all:", *locked],
        cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    if any(told in installed.stderr for told in ("Failed to establish a new connection", "Max retries exceeded")):
        pytest.skip("no index of packages can be reached: the wheel was not installed with what it declares")
    assert installed.returncode == 0, installed.stderr
    subprocess.run([str(python), "-m", "pip", "check"], cwd=tmp_path, check=True, capture_output=True, timeout=100)
    harness = FreeholdHarness(tmp_path)
    environment = {name: value for name, value in harness.environment.items() if name != "PYTHONPATH"}

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(place / "bin" / "freehold"), *words]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )

    where = subprocess.run(
        [str(python), "-c", "import freehold; print(freehold.__file__)"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert where.startswith(str(place)), "the checkout is not what runs"
    started = run("up", "-d")
    try:
        assert started.returncode == 0, started.stderr
        status = run("status", "--json")
        assert status.returncode == 0, status.stderr
        assert json.loads(status.stdout)["ready"]
        page = subprocess.run(
            ["curl", "-sfL", f"{harness.url}/sign-in"], capture_output=True, text=True, timeout=30, check=True
        )
        assert "<html" in page.stdout
    finally:
        stopped = run("down")
    assert stopped.returncode == 0, stopped.stderr
