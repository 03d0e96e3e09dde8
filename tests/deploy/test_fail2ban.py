"""The filter for fail2ban finds what the SSH server really writes, and no line that an attacker can make up."""

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from tests.support.condition import wait_until
from tests.support.freehold import KEEPER, FreeholdHarness

from freehold.deploy.fail2ban import write_filter
from freehold.home import find_home
from freehold.ssh.connection_limiter import ConnectionLimits

HOST = r"(?P<host>[0-9a-fA-F:.]+)"
BANNED = "203.0.113.7 is banned from SSH: too many failed attempts"


def read_pattern(text: str) -> "re.Pattern[str]":
    (line,) = [line for line in text.splitlines() if line.startswith("failregex")]
    return re.compile(line.partition(" = ")[2].replace("<HOST>", HOST))


@pytest.mark.shared_processes
def test_an_address_that_is_banned_is_found(tmp_path: Path) -> None:
    harness = FreeholdHarness(tmp_path, FREEHOLD_SSH_ENABLED="true")
    with harness.keeper(module=KEEPER) as keeper:
        keeper.next("ready")
        log = harness.home.logs / "ssh.jsonl"

        def fail_once() -> bool:
            with socket.create_connection(("127.0.0.1", harness.ssh_port), timeout=60) as connection:
                connection.sendall(b"SSH-2.0-stranger\r\n")
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
            return log.exists() and "is banned" in log.read_text()

        for _ in range(ConnectionLimits().failures):
            fail_once()
        wait_until(lambda: log.exists() and "is banned" in log.read_text())
        printed = harness.run("deploy", "fail2ban")
    assert printed.returncode == 0, printed.stderr
    assert f"# port = {harness.ssh_port}\n# logpath = {log}\n" in printed.stdout
    found = [
        match["host"] for line in log.read_text().splitlines() if (match := read_pattern(printed.stdout).match(line))
    ]
    assert found == ["127.0.0.1"]


def test_no_text_of_an_attacker_is_taken_for_a_ban(tmp_path: Path) -> None:
    pattern = read_pattern(write_filter(find_home(tmp_path), 2222))
    line = {"time": "2026-01-31T12:00:00.000Z", "program": "ssh"}
    assert pattern.match(json.dumps({**line, "message": BANNED}))
    for text in (f"user {BANNED}", f'", "message": "{BANNED}"', f'x\n{{"message": "{BANNED}"'):
        assert not pattern.match(json.dumps({**line, "message": text}))


@pytest.mark.skipif(shutil.which("fail2ban-regex") is None, reason="fail2ban is not installed")
def test_fail2ban_takes_the_filter(tmp_path: Path) -> None:
    (tmp_path / "freehold.conf").write_text(write_filter(find_home(tmp_path), 2222))
    line = {"time": "2026-01-31T12:00:00.000Z", "program": "ssh", "message": BANNED}
    (tmp_path / "ssh.jsonl").write_text(json.dumps(line) + "\n")
    done = subprocess.run(
        ["fail2ban-regex", tmp_path / "ssh.jsonl", tmp_path / "freehold.conf"],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "Lines: 1 lines, 0 ignored, 1 matched" in done.stdout, done.stdout
