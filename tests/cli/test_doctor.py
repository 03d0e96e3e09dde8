"""`freehold doctor` line by line, interrupted, and for another backend. tests/security shows that the walls hold."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.computer.engines import engine_process
from tests.support.ports import free_ports

from freehold.computer.registry import BACKENDS
from freehold.doctor.backend_choice import choose_backend
from freehold.home import find_home

ROOT = Path(__file__).parents[2]


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    words = ["doctor", "--quick", "--lines", "--home", str(tmp_path / "home")]
    process = subprocess.Popen(
        [sys.executable, "-m", "freehold.cli.main", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


def test_each_attempt_is_printed_as_it_ends(doctor: "subprocess.Popen[str]") -> None:
    assert doctor.stdout is not None
    lines = [json.loads(line) for line in doctor.stdout]
    begun, isolation, *attempts, ended = lines
    assert (begun["event"], isolation["event"], ended["event"]) == ("begun", "isolation", "ended")
    assert begun["total"] == len(attempts) > 20
    assert begun["missing_walls"] == []
    assert {attempt["event"] for attempt in attempts} == {"attempt"}
    assert [attempt["name"] for attempt in attempts if attempt["outcome"] != "refused"] == []
    assert ended == {"event": "ended", "ok": True}
    assert doctor.wait() == 0


def test_an_interrupted_doctor_stops_its_computers(doctor: "subprocess.Popen[str]") -> None:
    """No process is left behind: the suite checks that."""
    assert doctor.stdout is not None
    while json.loads(doctor.stdout.readline())["event"] != "attempt":
        pass
    doctor.send_signal(signal.SIGTERM)
    said = [json.loads(line)["event"] for line in doctor.stdout]
    assert doctor.wait(30) == 128 + signal.SIGTERM
    assert "ended" not in said


def run_doctor_command(folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "freehold.cli.main", "doctor", "--home", str(folder / "home"), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_backend_that_is_named_is_tried_with_the_engine_of_the_environment(tmp_path: Path) -> None:
    """The manifest names another one. At an address without an engine nothing is tried, and the answer says where."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/freehold.toml").write_text('[computer]\nbackend = "bubblewrap"\n')
    with engine_process("docker") as engine:
        tried = run_doctor_command(tmp_path, "--quick", "--json", "--backend", "docker", SANDBOX_HOST=engine.host)
    report = json.loads(tried.stdout)
    assert report["isolation"]["backend"] == "docker"
    assert [one["name"] for one in report["attempts"] if one["outcome"] != "refused"] == []
    assert (tried.returncode, report["ok"], len(report["attempts"]) > 20) == (0, True, True)
    ended = f"unix://{tmp_path}/ended"
    refused = run_doctor_command(tmp_path, "--quick", "--json", "--backend", "docker", SANDBOX_HOST=ended)
    report = json.loads(refused.stdout)
    assert (refused.returncode, report["ok"], report["attempts"], report["isolation"]) == (1, False, [], None)
    (missing,) = report["missing_walls"]
    assert f"{tmp_path}/ended" in missing["message"]
    assert "SANDBOX_HOST" in missing["hint"]


def test_a_deployed_freehold_is_looked_at_from_outside(tmp_path: Path) -> None:
    """Nothing answers at that address, and an address without TLS is not looked at."""
    found = run_doctor_command(tmp_path, "--json", "--public", f"https://127.0.0.1:{free_ports(1)[0]}")
    assert found.returncode == 1
    (only,) = json.loads(found.stdout)
    assert (only["name"], only["is_right"]) == ("certificate", False)
    refused = run_doctor_command(tmp_path, "--public", "http://agent.example.com")
    assert refused.returncode == 1
    assert "http://agent.example.com" in refused.stderr


def test_a_backend_that_does_not_exist_is_refused_with_the_names_of_all(tmp_path: Path) -> None:
    refused = run_doctor_command(tmp_path, "--backend", "chroot")
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in ("chroot", *BACKENDS)), refused.stderr


def test_the_engine_of_the_manifest_is_asked_for_its_own_backend_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = find_home(tmp_path)
    home.manifest.write_text('[computer]\nbackend = "docker"\nhost = "unix:///run/docker-of-manifest"\n')
    monkeypatch.delenv("SANDBOX_HOST", raising=False)
    chosen = [choose_backend(home, wanted) for wanted in (None, "docker", "podman")]
    assert [(one.name, one.host) for one in chosen] == [
        ("docker", "unix:///run/docker-of-manifest"),
        ("docker", "unix:///run/docker-of-manifest"),
        ("podman", None),
    ]
    monkeypatch.setenv("SANDBOX_HOST", "unix:///run/podman-of-environment")
    other = choose_backend(home, "podman")
    assert (other.name, other.host) == ("podman", "unix:///run/podman-of-environment")
