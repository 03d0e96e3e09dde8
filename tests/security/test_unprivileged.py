"""The usual case: an owner without root. The same walls stand, and the computer is that owner and nobody more."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import freehold

PYTHON = "/usr/bin/python3"
NOBODY = 65534
DOCTOR = (
    "import sys; sys.argv = ['freehold', 'doctor', '--quick', '--json']; from freehold.cli.main import main; main()"
)


def _same_python() -> bool:
    """The system's Python can use this one's packages only if it is the same version."""
    shown = subprocess.run(
        [PYTHON, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() == str(sys.version_info[:2])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_an_owner_without_root_has_the_same_walls(own_temporary_folder: Path) -> None:
    """The doctor, run by a user without rights, sees every escape refused."""
    if not _same_python():
        pytest.skip("the system's Python is of another version")
    home = own_temporary_folder / "nobody"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    packages = [str(Path(freehold.__file__).parent.parent), sysconfig.get_path("purelib")]
    drop = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]
    ran = subprocess.run(
        [*drop, PYTHON, "-c", DOCTOR],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONPATH": ":".join(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(ran.stdout)
    assert told["isolation"]["runs_as"] == f"uid {NOBODY}"
    assert {attempt["outcome"] for attempt in told["attempts"]} == {"refused"}
