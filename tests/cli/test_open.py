import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.home import Home, find_home
from freehold.identity.sign_ins import SignIns

OWNER = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"


@pytest.fixture
def port() -> Iterator[int]:
    """A port that something listens on, in the place of a Freehold."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return find_home(tmp_path)


def run(home: Home, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "freehold.cli.main", "open", "--home", str(home.root), *words]
    clean = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=clean)


def test_a_laptop_gets_a_link_that_works_once(home: Home, port: int) -> None:
    home.manifest.write_text(f"[gateway]\nport = {port}\n")
    link = run(home, "--print").stdout.strip()
    assert link.startswith(f"http://freehold.localhost:{port}/sign-in#")
    with SignIns(home.identity) as sign_ins:
        token = link.split("#")[1]
        assert sign_ins.redeem_link(token, label="", address="") is not None
        assert sign_ins.redeem_link(token, label="", address="") is None


def test_the_link_is_not_on_the_browsers_command_line(home: Home, port: int, tmp_path: Path) -> None:
    """All users of a machine can read command lines, so the browser gets a private page that redirects to the link."""
    home.manifest.write_text(f"[gateway]\nport = {port}\n")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/argv\n')
    browser.chmod(0o755)
    opened = run(home, BROWSER=f"{browser} %s")
    assert opened.returncode == 0
    argv = (tmp_path / "argv").read_text().strip()
    page = Path(argv.removeprefix("file://"))
    assert page.stat().st_mode & 0o777 == 0o600
    token = page.read_text().split("#")[1].split('"')[0]
    assert token not in argv
    assert token not in opened.stdout + opened.stderr
    with SignIns(home.identity) as sign_ins:
        assert sign_ins.redeem_link(token, label="", address="") is not None
    page.unlink()


def test_with_an_owner_the_sign_in_page_opens(home: Home, port: int) -> None:
    home.manifest.write_text(f'[owner]\ndid = "{OWNER}"\n[gateway]\nport = {port}\n')
    assert run(home, "--print").stdout == f"http://freehold.localhost:{port}/sign-in\n"
    home.manifest.write_text(f'[owner]\ndid = "{OWNER}"\n[gateway]\npublic_url = "https://agent.example.com"\n')
    assert json.loads(run(home, "--json").stdout) == {"url": "https://agent.example.com/sign-in"}


@pytest.mark.parametrize(
    "gateway", ['host = "0.0.0.0"', 'public_url = "https://agent.example.com"', 'host = "192.168.1.5"']
)
def test_a_freehold_that_others_can_reach_gets_no_link(home: Home, gateway: str) -> None:
    home.manifest.write_text(f"[gateway]\n{gateway}\n")
    refused = run(home, "--print")
    assert refused.returncode == 1
    assert "identity.link-not-allowed" in refused.stderr
    assert not home.identity.exists()


@pytest.mark.parametrize("owner", ["", f'[owner]\ndid = "{OWNER}"\n'])
def test_the_recovery_page_gets_a_code_with_and_without_an_owner(home: Home, port: int, owner: str) -> None:
    home.manifest.write_text(f"{owner}[keeper]\nport = {port}\n")
    shown = json.loads(run(home, "--keeper", "--json").stdout)
    assert shown["url"] == f"http://recovery.localhost:{port}/sign-in"
    assert shown["code"] not in shown["url"]
    with SignIns(home.identity, owner=OWNER if owner else None) as sign_ins:
        made = sign_ins.redeem_link(shown["code"], purpose="keeper", label="", address="")
        assert made is not None
        assert sign_ins.verify(made[1], recovery=True) is not None


def test_a_recovery_page_that_others_can_reach_gets_no_code(home: Home) -> None:
    home.manifest.write_text('[keeper]\nhost = "0.0.0.0"\n')
    assert "identity.link-not-allowed" in run(home, "--keeper").stderr


def test_no_link_is_created_when_nothing_runs(home: Home) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        home.manifest.write_text(f"[gateway]\nport = {port}\n[keeper]\nport = {port}\n")
        assert "open.not-running" in run(home).stderr
        assert "open.not-running" in run(home, "--keeper").stderr
    assert not home.identity.exists()
