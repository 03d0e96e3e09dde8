"""The side door as the keeper runs it, and `freehold ssh` as the owner types it."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.keeper.running import PATIENCE, KeeperProcess, Stead, free_ports

from freehold.identity.tokens import Tokens

pytestmark = pytest.mark.shared_processes  # the keeper starts new ones in place of those that a test ends


class Farm(Stead):
    def __init__(self, folder: Path) -> None:
        (self.ssh_port,) = free_ports(1)
        super().__init__(
            folder,
            FREEHOLD_SSH_ENABLED="true",
            FREEHOLD_SSH_PORT=str(self.ssh_port),
            XDG_CONFIG_HOME=str(folder / "config"),
            HOME=str(folder),
        )

    def wait_ready(self) -> int:
        """The pid of the server, once it answers."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for program in self.call("status")["programs"]:
                if program["name"] == "ssh" and program["state"] == "ready" and program["pid"] is not None:
                    return int(program["pid"])
            time.sleep(0.05)
        raise AssertionError("the side door never became ready")

    def ssh(self, *words: str) -> str:
        done = self.run("ssh", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Farm, KeeperProcess]]:
    farm = Farm(tmp_path_factory.mktemp("kept"))
    with farm.keeper() as keeper:
        keeper.next("ready")
        farm.wait_ready()
        yield farm, keeper
        assert keeper.stop() == 0


@pytest.fixture
def farm(kept: tuple[Farm, KeeperProcess]) -> Farm:
    return kept[0]


def test_freehold_ssh_runs_a_command_and_passes_its_code_on(farm: Farm) -> None:
    assert farm.ssh("echo", "hello") == "hello\n"
    assert farm.run("ssh", "exit 6").returncode == 6
    assert farm.ssh("-o", "LogLevel=ERROR", "-T", "pwd") == "/workspace\n"


def test_what_was_done_over_ssh_can_be_undone(farm: Farm) -> None:
    farm.ssh("printf one > kept.txt; mkdir -p folder; printf two > folder/other")
    farm.ssh("printf changed > kept.txt; rm -r folder")
    entries = json.loads(farm.run("log", "--json").stdout)
    rows = entries["entries"] if isinstance(entries, dict) else entries
    assert "rm -r folder" in json.dumps(rows[0]) or any("rm -r folder" in json.dumps(row) for row in rows[:3])
    undone = farm.run("undo", "--json")
    assert undone.returncode == 0, undone.stderr
    assert farm.ssh("cat kept.txt folder/other") == "onetwo"


def test_a_certificate_is_used_again_until_it_is_revoked_and_then_renewed(farm: Farm) -> None:
    farm.ssh("true")
    before = json.loads(farm.ssh("--list", "--json"))
    farm.ssh("true")
    assert [one["id"] for one in json.loads(farm.ssh("--list", "--json"))] == [one["id"] for one in before]
    assert "Revoked" in farm.ssh("--revoke", before[0]["id"])
    assert farm.run("ssh", "--revoke", before[0]["id"]).returncode == 1
    assert farm.ssh("echo", "again") == "again\n"
    assert len(json.loads(farm.ssh("--list", "--json"))) == len(before) + 1


def test_an_included_configuration_renews_by_itself(farm: Farm, tmp_path: Path) -> None:
    """Plain ssh, with the certificate gone: the Match line fetches another before the connection."""
    config = tmp_path / "config"
    config.write_text(farm.ssh("--config"))
    (wallet,) = (Path(farm.environment["XDG_CONFIG_HOME"]) / "freehold" / "ssh").iterdir()
    (wallet / "id-cert.pub").unlink()
    argv = ["ssh", "-F", str(config), "freehold", "echo", "renewed"]
    done = subprocess.run(argv, capture_output=True, text=True, env=farm.environment, timeout=PATIENCE, check=False)
    assert done.stdout == "renewed\n", done.stderr
    assert (wallet / "id").stat().st_mode & 0o077 == 0


def test_installing_adds_one_line_once(farm: Farm) -> None:
    own = Path(farm.environment["HOME"]) / ".ssh" / "config"
    own.parent.mkdir(exist_ok=True)
    own.write_text("Host example\n    User me\n")
    assert "Added" in farm.ssh("--install", "--name", "mine")
    assert "Already" in farm.ssh("--install", "--name", "mine")
    lines = own.read_text().splitlines()
    assert lines[0].startswith("Include ")
    assert lines[1:] == ["Host example", "    User me"]
    argv = ["ssh", "-F", str(own), "mine", "id", "-un"]
    done = subprocess.run(argv, capture_output=True, text=True, env=farm.environment, timeout=PATIENCE, check=False)
    assert done.stdout == "agent\n", done.stderr


def test_a_freehold_elsewhere_is_reached_by_a_token(farm: Farm) -> None:
    with Tokens(farm.home.identity) as tokens:
        _, secret = tokens.create("elsewhere", ["admin"], None)
        environment = {**farm.environment, "FREEHOLD_TOKEN": secret, "FREEHOLD_HOME": "/nonexistent"}
        away = Stead(Path(farm.environment["HOME"]) / "away")
        away.environment = {**environment, "FREEHOLD_SSH_PORT": "1"}
        done = away.run("ssh", "--to", f"http://localhost:{farm.gateway_port}", "echo", "from afar")
        assert done.stdout == "from afar\n", done.stderr
        tokens.revoke("elsewhere")
    refused = away.run("ssh", "--to", f"http://localhost:{farm.gateway_port}", "echo", "again")
    assert refused.returncode == 1
    assert "again" not in refused.stdout


def test_a_name_that_would_be_an_option_is_refused(farm: Farm) -> None:
    for name in ("-oProxyCommand=id", "a b", "*", ""):
        refused = farm.run("ssh", f"--name={name}", "true")
        assert refused.returncode == 1
        assert "ssh.bad-name" in refused.stderr


def test_a_killed_server_comes_back_and_nothing_else_falls(farm: Farm) -> None:
    before = farm.wait_ready()
    since = farm.call("status")["since"]
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while farm.wait_ready() == before:
        assert time.monotonic() < deadline
    assert farm.ssh("echo", "back") == "back\n"
    assert farm.call("status")["since"] == since


def test_the_computer_may_be_restarted_under_it(farm: Farm) -> None:
    assert farm.run("restart", "computer").returncode == 0
    deadline = time.monotonic() + PATIENCE
    while farm.run("ssh", "echo", "anew").stdout != "anew\n":
        assert time.monotonic() < deadline


def test_a_taken_port_keeps_nothing_else_from_being_ready_and_off_means_off(tmp_path: Path) -> None:
    farm = Farm(tmp_path)
    with socket.create_server(("127.0.0.1", farm.ssh_port)), farm.keeper() as keeper:
        keeper.next("ready")
        assert farm.call("status")["ready"]
        deadline = time.monotonic() + PATIENCE
        while "ssh.port" not in farm.run("logs", "ssh").stdout:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert keeper.stop() == 0
    farm.environment["FREEHOLD_SSH_ENABLED"] = "false"
    with farm.keeper() as keeper:
        keeper.next("ready")
        assert "ssh" not in {program["name"] for program in farm.call("status")["programs"]}
        refused = farm.run("ssh", "true")
        assert refused.returncode == 1
        assert "switched off" in refused.stderr
        assert keeper.stop() == 0
