import json
import subprocess
import sys
from pathlib import Path

import pytest

from freehold.home import Home
from freehold.identity.sign_ins import SignIns


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path, run=tmp_path / "run")


def run(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "freehold.cli.main", "sign-ins", *words]
    environment = {"FREEHOLD_HOME": str(home.root), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_browsers_are_listed_and_signed_out(home: Home) -> None:
    with SignIns(home.identity) as sign_ins:
        one, first = sign_ins.create(None, label="Firefox\x1b[31m", address="127.0.0.1", method="link")
        _, second = sign_ins.create(None, label="Chromium", address="::1", method="link")
        shown = run(home).stdout
        assert "Firefox" in shown
        assert "\x1b" not in shown
        assert first not in shown
        assert len(json.loads(run(home, "list", "--json").stdout)) == 2
        assert run(home, "revoke", one.id).stdout == "Signed out 1 browser\n"
        assert sign_ins.verify(first) is None
        assert sign_ins.verify(second) is not None
        assert run(home, "revoke", "--all").stdout == "Signed out 1 browser\n"
        assert sign_ins.verify(second) is None
        assert "No browser is signed in" in run(home).stdout


def test_mistakes_are_explained(home: Home) -> None:
    assert run(home, "revoke").returncode == 2
    assert run(home, "revoke", "x", "--all").returncode == 2
    wrong = run(home, "revoke", "x")
    assert wrong.returncode == 1
    assert "sign-in.not-found" in wrong.stderr
