"""The SSH server under the keeper, and the command `freehold ssh`."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.condition import wait_until
from tests.support.freehold import PROCESS_TIMEOUT, FreeholdHarness, KeeperProcess

from freehold.identity.tokens import ApiTokens

pytestmark = pytest.mark.shared_processes  # the keeper restarts programs that a test ends


class SshHarness(FreeholdHarness):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FREEHOLD_SSH_ENABLED="true", HOME=str(folder))

    def wait_ready(self) -> int:
        """The pid of the server, once it answers."""
        pid = wait_until(self._find_ready_pid)
        assert pid is not None
        return pid

    def _find_ready_pid(self) -> int | None:
        program = self.programs()["ssh"]  # one call: the state and the pid must belong together
        if program.state == "idle":
            socket.create_connection(("127.0.0.1", self.ssh_port), timeout=60).close()
        return program.pid if program.state == "ready" else None

    def ssh(self, *words: str) -> str:
        done = self.run("ssh", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHarness, KeeperProcess]]:
    harness = SshHarness(tmp_path_factory.mktemp("running"))
    with harness.keeper() as keeper:
        keeper.next("ready")
        wait_until(lambda: harness.programs()["ssh"].state == "idle")
        assert harness.programs()["ssh"].pid is None, "nothing runs before the first connection"
        restarted = harness.run("restart", "ssh")
        assert (restarted.returncode, restarted.stdout) == (0, "ssh starts with its first connection\n")
        harness.wait_ready()
        yield harness, keeper
        assert keeper.stop() == 0


@pytest.fixture
def harness(running: tuple[SshHarness, KeeperProcess]) -> SshHarness:
    return running[0]


def test_freehold_ssh_runs_a_command_and_returns_its_exit_code(harness: SshHarness) -> None:
    assert harness.ssh("echo", "hello") == "hello\n"
    assert harness.run("ssh", "exit 6").returncode == 6
    assert harness.ssh("-o", "LogLevel=ERROR", "-T", "pwd") == "/workspace\n"


def test_a_change_over_ssh_can_be_undone(harness: SshHarness) -> None:
    harness.ssh("printf one > running.txt; mkdir -p folder; printf two > folder/other")
    harness.ssh("printf changed > running.txt; rm -r folder")

    def is_recorded() -> bool:  # the client leaves a moment before the server has recorded what the command changed
        entries = json.loads(harness.run("log", "--json").stdout)
        rows = entries["entries"] if isinstance(entries, dict) else entries
        return any("rm -r folder" in json.dumps(row) for row in rows[:3])

    wait_until(is_recorded)
    undone = harness.run("undo", "--json")
    assert undone.returncode == 0, undone.stderr
    assert harness.ssh("cat running.txt folder/other") == "onetwo"


def test_a_certificate_is_reused_until_it_is_revoked(harness: SshHarness) -> None:
    harness.ssh("true")
    before = json.loads(harness.ssh("--list", "--json"))
    harness.ssh("true")
    assert [one["id"] for one in json.loads(harness.ssh("--list", "--json"))] == [one["id"] for one in before]
    assert "Revoked" in harness.ssh("--revoke", before[0]["id"])
    assert harness.run("ssh", "--revoke", before[0]["id"]).returncode == 1
    assert harness.ssh("echo", "again") == "again\n"
    assert len(json.loads(harness.ssh("--list", "--json"))) == len(before) + 1


def test_an_included_configuration_renews_the_certificate(harness: SshHarness, tmp_path: Path) -> None:
    """Plain ssh, with the certificate gone: the Match line fetches another before the connection."""
    config = tmp_path / "config"
    config.write_text(harness.ssh("--config"))
    (wallet,) = (Path(harness.environment["XDG_CONFIG_HOME"]) / "freehold" / "ssh").iterdir()
    (wallet / "id-cert.pub").unlink()
    argv = ["ssh", "-F", str(config), "freehold", "echo", "renewed"]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=harness.environment, timeout=PROCESS_TIMEOUT, check=False
    )
    assert done.stdout == "renewed\n", done.stderr
    assert (wallet / "id").stat().st_mode & 0o077 == 0


def test_install_adds_one_line_once(harness: SshHarness) -> None:
    own = Path(harness.environment["HOME"]) / ".ssh" / "config"
    own.parent.mkdir(exist_ok=True)
    own.write_text("Host example\n    User me\n")
    assert "Added" in harness.ssh("--install", "--name", "mine")
    assert "Already" in harness.ssh("--install", "--name", "mine")
    lines = own.read_text().splitlines()
    assert lines[0].startswith("Include ")
    assert lines[1:] == ["Host example", "    User me"]
    argv = ["ssh", "-F", str(own), "mine", "id", "-un"]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=harness.environment, timeout=PROCESS_TIMEOUT, check=False
    )
    assert done.stdout == "agent\n", done.stderr


def test_a_remote_freehold_is_reached_with_a_token(harness: SshHarness) -> None:
    with ApiTokens(harness.home.identity) as tokens:
        _, secret = tokens.create("elsewhere", ["admin"], None)
        environment = {**harness.environment, "FREEHOLD_TOKEN": secret, "FREEHOLD_HOME": "/nonexistent"}
        away = FreeholdHarness(Path(harness.environment["HOME"]) / "away")
        away.environment = {**environment, "FREEHOLD_SSH_PORT": "1"}
        done = away.run("ssh", "--to", f"http://localhost:{harness.gateway_port}", "echo", "from afar")
        assert done.stdout == "from afar\n", done.stderr
        tokens.revoke("elsewhere")
    refused = away.run("ssh", "--to", f"http://localhost:{harness.gateway_port}", "echo", "again")
    assert refused.returncode == 1
    assert "again" not in refused.stdout


def test_a_host_name_that_is_an_option_is_refused(harness: SshHarness) -> None:
    for name in ("-oProxyCommand=id", "a b", "*", ""):
        refused = harness.run("ssh", f"--name={name}", "true")
        assert refused.returncode == 1
        assert "ssh.bad-name" in refused.stderr


def test_a_killed_server_is_restarted_alone(harness: SshHarness) -> None:
    before = harness.wait_ready()
    since = harness.status().since
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: harness.wait_ready() != before)
    assert harness.ssh("echo", "back") == "back\n"
    assert harness.status().since == since


def test_the_server_survives_a_restart_of_the_computer(harness: SshHarness) -> None:
    assert harness.run("restart", "computer").returncode == 0
    wait_until(lambda: harness.run("ssh", "echo", "anew").stdout == "anew\n")


def test_a_port_in_use_does_not_stop_the_rest_and_disabled_means_not_running(tmp_path: Path) -> None:
    harness = SshHarness(tmp_path)
    with socket.create_server(("127.0.0.1", harness.ssh_port)), harness.keeper() as keeper:
        keeper.next("ready")
        assert harness.status().ready
        wait_until(lambda: "ssh.port" in (harness.programs()["ssh"].last_error or ""))
        assert keeper.stop() == 0
    harness.environment["FREEHOLD_SSH_ENABLED"] = "false"
    with harness.keeper() as keeper:
        keeper.next("ready")
        assert "ssh" not in harness.programs()
        refused = harness.run("ssh", "true")
        assert refused.returncode == 1
        assert "SSH access is disabled" in refused.stderr
        assert keeper.stop() == 0
