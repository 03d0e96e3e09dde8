"""`freehold check` on the command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BROKEN = """\
[gateway]
prot = 3000
[keeper]
port = 3000
[egress]
mode = "allow"
"""


def freehold(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", **environ}
    command = [sys.executable, "-m", "freehold.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def test_all_problems_are_printed_with_code_line_and_hint(home: Path) -> None:
    path = home / "freehold.toml"
    path.write_text(BROKEN)
    done = freehold("check", "--home", home)
    assert done.returncode == 1
    assert f"{path}:2  E005  There is no key gateway.prot" in done.stdout
    assert "Did you mean gateway.port? Example: port = 3000" in done.stdout
    assert f"{path}:4  E101" in done.stdout
    assert f"{path}:6  W301" in done.stdout
    assert done.stdout.endswith("2 errors, 1 warning\n")
    assert done.stderr == ""


def test_json_is_for_scripts(home: Path) -> None:
    (home / "freehold.toml").write_text(BROKEN)
    done = freehold("check", "--home", home, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["ok"] is False
    assert [(problem["code"], problem["severity"], problem["line"]) for problem in answer["problems"]] == [
        ("E005", "error", 2),
        ("E101", "error", 4),
        ("W301", "warning", 6),
    ]
    assert set(answer["problems"][0]) == {"code", "severity", "message", "hint", "file", "line", "key"}


def test_warnings_alone_exit_zero(home: Path) -> None:
    (home / "freehold.toml").write_text('[egress]\nmode = "allow"\n')
    done = freehold("check", "--home", home)
    assert done.returncode == 0
    assert done.stdout.endswith("no errors, 1 warning\n")


def test_a_good_manifest_says_so(home: Path) -> None:
    (home / "freehold.toml").write_text("[gateway]\nport = 3001\n")
    done = freehold("check", "--home", home)
    assert (done.returncode, done.stdout) == (0, f"No problems in {home}/freehold.toml\n")


def test_no_manifest_is_valid_too(home: Path) -> None:
    done = freehold("check", FREEHOLD_HOME=str(home))
    assert done.returncode == 0
    assert "freehold init" in done.stdout


def test_another_file_is_checked_for_this_home(home: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.toml"
    draft.write_text(f'[[computer.mounts]]\nsource = "{home}"\ntarget = "/mnt/a"\n')
    done = freehold("check", draft, "--home", home)
    assert done.returncode == 1
    assert f"{draft}:2  E221" in done.stdout


def test_the_socket_of_an_engine_is_refused_with_the_reason_and_the_way_to_go(home: Path, tmp_path: Path) -> None:
    """Through a link, as a setup for docker inside docker has it."""
    (tmp_path / "docker").symlink_to("/var/run/docker.sock")
    draft = tmp_path / "draft.toml"
    draft.write_text(f'[[computer.mounts]]\nsource = "{tmp_path}/docker"\ntarget = "/mnt/docker.sock"\n')
    done = freehold("check", draft, "--home", home)
    assert done.returncode == 1
    assert f"{draft}:2  E221" in done.stdout
    words = " ".join(done.stdout.split())
    assert "the socket of a container engine: whoever has it is as good as root on this machine" in words
    assert 'with computer.backend = "docker", "podman" or "microvm" (docs/guides/backends.md)' in words


def test_a_file_that_does_not_exist_is_an_error(home: Path) -> None:
    done = freehold("check", home / "nothing.toml", "--home", home)
    assert done.returncode == 1
    assert "manifest.missing" in done.stderr


def test_the_environment_is_checked_as_well(home: Path) -> None:
    done = freehold("check", "--home", home, PUBLIC_URL="http://a.example.com", FREEHOLD_GATEWAY_PORT="many")
    assert done.returncode == 1
    assert "environment  E007" in done.stdout
    assert "environment  E116" in done.stdout
    assert "(from PUBLIC_URL)" in done.stdout


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b"#" * 300_000, b"a = 1e", b"\0"])
def test_never_a_traceback(home: Path, data: bytes) -> None:
    (home / "freehold.toml").write_bytes(data)
    done = freehold("check", "--home", home)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert "E00" in done.stdout


def test_a_key_in_the_file_is_not_printed(home: Path) -> None:
    (home / "freehold.toml").write_text('[models.openai]\nkind = "openai"\nkey = "sk-proj-VerySecretVerySecret1"\n')
    for option in ((), ("--json",)):
        done = freehold("check", "--home", home, *option)
        assert done.returncode == 1
        assert "VerySecret" not in done.stdout + done.stderr


def test_help_has_an_example() -> None:
    done = freehold("check", "--help")
    assert done.returncode == 0
    assert "freehold check draft.toml --json" in done.stdout
