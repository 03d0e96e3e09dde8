"""The wheel: the same bytes each time, with everything but system packages, and it runs without the checkout."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from tests.support.freehold import FreeholdHarness

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


def build(folder: Path, kind: str = "wheel") -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=200)
    (found,) = folder.glob("freehold-*")
    return found


def test_the_same_sources_give_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert build(tmp_path / "wheel").read_bytes() == wheel.read_bytes()
    first, second = build(tmp_path / "first", "sdist"), build(tmp_path / "second", "sdist")
    assert first.read_bytes() == second.read_bytes()


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
    """The packages that it needs are those of this environment; Freehold itself is the wheel and nothing else."""
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=100)
    python = place / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # As a path, so that the link to the checkout that is among them does not count.
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    harness = FreeholdHarness(tmp_path)
    environment = {name: value for name, value in harness.environment.items() if name != "PYTHONPATH"}

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [str(python), "-m", "freehold.cli.main", *words]
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
