"""What the command line prints of an error: on a terminal also where its page is."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
from tests.support.running_freehold import run_plain_freehold

FREEHOLD = [sys.executable, "-m", "freehold.cli.main"]
LOG = [*FREEHOLD, "log", "--home"]
PLACE = "/docs/errors.html#"


def run_on_a_terminal(*command: str) -> str:
    """What a command that fails prints as an error."""
    terminal, inside = pty.openpty()
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=inside, timeout=120)
        text = os.read(terminal, 65_536).decode()
    finally:
        os.close(inside)
        os.close(terminal)
    assert done.returncode != 0
    return text


def test_an_error_on_a_terminal_names_its_page(tmp_path: Path) -> None:
    text = run_on_a_terminal(*LOG, str(tmp_path))
    assert "[history.empty]" in text
    assert f"About this error: {PLACE}history.empty of the control center" in text


def test_while_freehold_runs_an_error_has_the_address_of_its_page(tmp_path: Path) -> None:
    with run_plain_freehold(tmp_path) as freehold:
        show = [*FREEHOLD, "show", "999:workspace/a.txt", "--home"]
        text = run_on_a_terminal(*show, str(freehold.home.root))
        found = re.search(r"About this error: ([^\s\x1b]+)", text)
        assert found, text
        address, _, code = found[1].partition("#")
        assert f"[{code}]" in text
        # A browser finds the name by itself.
        site = urlsplit(address)
        page = httpx2.get(f"http://127.0.0.1:{site.port}{site.path}", headers={"host": site.netloc}, trust_env=False)
    assert page.status_code == 200
    assert f'id="{code}"' in page.text


def test_an_error_in_a_file_is_two_lines(tmp_path: Path) -> None:
    done = subprocess.run([*LOG, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert len(done.stderr.splitlines()) == 2
    assert "docs/errors" not in done.stderr
