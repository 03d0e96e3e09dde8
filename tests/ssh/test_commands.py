"""Shells and commands with the real OpenSSH client."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import asyncssh
import pytest
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, SshServerProcess, run_ssh

from freehold.ssh.terminal_modes import stty_settings, with_stty


@pytest.mark.parametrize("code", [0, 1, 3, 42, 127, 255])
def test_exit_codes_arrive(key: ClientKey, code: int) -> None:
    assert run_ssh(key, f"exit {code}").returncode == code


def test_stdout_and_stderr_are_separate_and_complete(key: ClientKey) -> None:
    done = run_ssh(key, "cat; echo problem >&2", stdin=bytes(range(256)) * 100)
    assert done.stdout == bytes(range(256)) * 100
    assert done.stderr == b"problem\n"


def test_commands_run_in_the_workspace_as_the_agent_user(key: ClientKey) -> None:
    done = run_ssh(key, "id -un; pwd; echo $HOME; ls /proc | grep -c '^[0-9]*$'; cat /etc/shadow")
    lines = done.stdout.decode().split()
    assert lines[:3] == ["agent", "/workspace", "/home/agent"]
    assert int(lines[3]) < 20
    assert b"No such file" in done.stderr or b"Permission" in done.stderr


def test_a_workspace_that_cannot_be_entered_does_not_lock_the_owner_out(key: ClientKey) -> None:
    """A command is refused, as it would run in another folder. A shell starts in /, says so, and can repair it."""
    assert run_ssh(key, "chmod 000 /workspace").returncode == 0
    try:
        refused = run_ssh(key, "echo ran")
        assert (refused.returncode, refused.stdout) == (127, b"")
        assert b"/workspace: Permission denied" in refused.stderr
    finally:
        shell = run_ssh(key, stdin=b"pwd\nchmod 700 /workspace\n")
    assert shell.stdout == b"/\n"
    assert b"/workspace: Permission denied. This shell is in /" in shell.stderr
    assert run_ssh(key, "pwd").stdout == b"/workspace\n"


def test_a_command_that_ends_by_a_signal_reports_it(server: SshServerProcess, key: ClientKey) -> None:
    assert run_ssh(key, "kill -TERM $$").returncode == 255
    assert server.wait_for_event("ssh.command_ended", signal=signal.SIGTERM)


def test_only_allowed_environment_variables_are_accepted(key: ClientKey, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LC_MARK": "fine", "GIT_PROTOCOL": "version=2", "LD_PRELOAD": "/x", "SECRET": "s"}.items():
        monkeypatch.setenv(name, value)
    done = run_ssh(key, "env", options=("-o", "SendEnv=*"))
    shown = dict(line.split("=", 1) for line in done.stdout.decode().splitlines() if "=" in line)
    assert shown["LC_MARK"] == "fine"
    assert shown["GIT_PROTOCOL"] == "version=2"
    assert not {"LD_PRELOAD", "SECRET"} & shown.keys()
    assert shown["SSH_CONNECTION"] == "127.0.0.1 0 127.0.0.1 22"


def test_a_shell_reads_its_input(key: ClientKey) -> None:
    assert run_ssh(key, stdin=b"cd /tmp\npwd\nexit 7\n").stdout == b"/tmp\n"


async def test_signals_reach_the_command(server: SshServerProcess, key: ClientKey) -> None:
    """The OpenSSH client sends no signals, so asyncssh does."""
    folder = key.config.parent
    async with asyncssh.connect(
        "127.0.0.1",
        server.port,
        username="agent",
        client_keys=[(str(folder / "id"), str(folder / "id-cert.pub"))],
        known_hosts=None,
        config=[],
    ) as connection:
        process = await connection.create_process(
            "trap 'echo caught; kill %1; exit 9' USR1; sleep 100 & echo ready; wait"
        )
        assert await process.stdout.readline() == "ready\n"
        process.send_signal("USR1")
        assert await process.stdout.readline() == "caught\n"
        done = await process.wait()
        assert done.exit_status == 9
        killed = await connection.create_process("echo ready; exec sleep 100")
        await killed.stdout.readline()
        killed.send_signal("KILL")
        assert (await killed.wait()).exit_signal is not None


class Screen:
    """An ssh client in a pseudo-terminal."""

    def __init__(self, key: ClientKey, rows: int, columns: int, *words: str, settings: str = "") -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            if settings:
                subprocess.run(["stty", *settings.split()], check=True)
            os.execvp("ssh", ["ssh", "-F", str(key.config), "-tt", "computer", *words])
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, pattern: bytes) -> bytes:
        seen, deadline = b"", time.monotonic() + SSH_TIMEOUT
        while not re.search(pattern, seen):
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"never saw {pattern!r} in {seen!r}"
            seen += os.read(self.master, 4096)
        return seen

    def type(self, words: bytes) -> None:
        os.write(self.master, words)

    def end(self) -> int:
        while True:
            try:
                if not os.read(self.master, 4096):
                    break
            except OSError:
                break
        os.close(self.master)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_terminal_has_the_size_of_the_client_and_follows_changes(key: ClientKey) -> None:
    screen = Screen(key, 33, 101)
    screen.type(b"PS1=; stty size; echo $TERM mark\n")
    screen.until(rb"(?s)33 101\r\n.*mark\r\n")
    screen.resize(44, 122)
    screen.type(b"while [ \"$(stty size)\" != '44 122' ]; do sleep 0.05; done; echo resi''zed\n")
    screen.until(rb"resized\r\n")
    screen.type(b"exit 5\n")
    assert screen.end() == 5


def test_a_terminal_uses_the_modes_of_the_client(key: ClientKey) -> None:
    screen = Screen(
        key, 24, 80, "trap 'exit 7' INT; stty -a; cat", settings="erase ^H intr ^B eol2 undef iutf8 -echoctl -ixon"
    )
    seen = screen.until(rb"echoke")
    assert b"erase = ^H;" in seen
    assert b"intr = ^B;" in seen
    assert b"eol2 = <undef>;" in seen
    assert {b"-ixon", b"iutf8", b"-echoctl", b"echoe"} <= set(seen.split())
    screen.type(b"\x02")
    assert screen.end() == 7


def test_terminal_modes_are_never_run_as_commands() -> None:
    assert stty_settings({0: 1, 3: 0x7F, 1: 3, 7: 255, 2: 2**32 - 1, 53: 0, 36: 1, 128: 38400, 200: 1}) == [
        *("erase", "0x7f", "intr", "0x03", "eol2", "undef", "-echo", "icrnl")
    ]
    assert with_stty([], ["bash", "-l"]) == ["bash", "-l"]


def test_ctrl_c_interrupts_and_ctrl_d_ends(key: ClientKey) -> None:
    screen = Screen(key, 24, 80, "bash --norc")
    screen.type(b"PS1='ready> '\n")
    screen.until(rb"ready> $")
    # The shell's own fork races a Ctrl-C: wait until what is to be interrupted says that it runs.
    screen.type(b"bash -c 'echo slee''ping; exec sleep 1000'\n")
    screen.until(rb"sleeping\r\n")
    screen.type(b"\x03")
    screen.until(rb"ready> $")
    screen.type(b"\x04")
    assert screen.end() == 130


def test_leaving_a_terminal_ends_its_shell_but_not_nohup(key: ClientKey) -> None:
    screen = Screen(key, 24, 80)
    # Only what says so itself is known to be in a session of its own.
    screen.type(b"PS1=; echo $$ > /tmp/shell; (setsid sh -c 'echo be\"\"gun; exec sleep 4321' &)\n")
    screen.until(rb"begun\r\n")
    os.kill(screen.pid, signal.SIGKILL)
    screen.end()
    gone = "while kill -0 $(cat /tmp/shell) 2>/dev/null; do sleep 0.05; done; echo gone"
    assert run_ssh(key, gone).stdout == b"gone\n"
    assert run_ssh(key, "pkill -f '[s]leep 4321'; echo $?").stdout == b"0\n"


def test_a_terminal_runs_no_program_that_an_agent_left(key: ClientKey) -> None:
    """~/.local/bin is first in PATH, and agents can write there. Neither the start nor the end of a terminal looks there."""
    trap = "#!/bin/sh\necho $0 >> /tmp/ran\n"
    plant = (
        "mkdir -p ~/.local/bin && cd ~/.local/bin && tee kill stty > /dev/null && chmod +x kill stty && env kill -0 1"
    )
    run_ssh(key, plant, stdin=trap.encode(), check=True)
    try:
        assert run_ssh(key, "cat /tmp/ran; rm /tmp/ran").stdout == b"/home/agent/.local/bin/kill\n"  # the trap works
        screen = Screen(key, 24, 80)  # with the modes of the client, which stty sets
        screen.type(b"PS1=; echo $$ > /tmp/shell; echo writ''ten\n")
        screen.until(rb"written\r\n")
        os.kill(screen.pid, signal.SIGKILL)
        screen.end()
        gone = "while kill -0 $(cat /tmp/shell) 2>/dev/null; do sleep 0.05; done; cat /tmp/ran"
        assert b"/tmp/ran: No such file" in run_ssh(key, gone).stderr
    finally:
        run_ssh(key, "rm -r ~/.local/bin")


def test_killing_the_client_ends_its_command(key: ClientKey) -> None:
    argv = ["ssh", "-F", str(key.config), "computer", "echo begun; exec sleep 8765"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"begun\n"
        client.kill()
    gone = "while pgrep -f '[s]leep 8765' > /dev/null; do sleep 0.05; done; echo gone"
    assert run_ssh(key, gone).stdout == b"gone\n"


def test_several_commands_share_a_connection(key: ClientKey) -> None:
    """ControlMaster: one connection, and a channel for each command at the same time."""
    control = str(key.config.parent / "control")
    options = ("-o", f"ControlPath={control}")
    run_ssh(key, options=(*options, "-o", "ControlMaster=yes", "-o", "ControlPersist=60", "-fN"), check=True)
    try:
        argv = ["ssh", "-F", str(key.config), *options, "computer"]
        clients = [
            subprocess.Popen([*argv, f"sleep 0.2; echo {number}"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            for number in range(8)
        ]
        found = {client.communicate(timeout=SSH_TIMEOUT)[0] for client in clients}
        assert found == {f"{number}\n".encode() for number in range(8)}
    finally:
        run_ssh(key, options=(*options, "-O", "exit"), check=True)


def test_agent_and_x11_forwarding_are_refused(key: ClientKey, tmp_path: object) -> None:
    agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"(SSH_\w+)=([^;]+);", agent))
    try:
        os.environ["SSH_AUTH_SOCK"] = found["SSH_AUTH_SOCK"]
        done = run_ssh(key, "echo agent=$SSH_AUTH_SOCK display=$DISPLAY", options=("-A", "-X", "-o", "LogLevel=INFO"))
    finally:
        del os.environ["SSH_AUTH_SOCK"]
        os.kill(int(found["SSH_AGENT_PID"]), signal.SIGTERM)
    assert done.stdout == b"agent= display=\n"


def test_a_secret_in_a_command_is_masked_in_the_timeline(server: SshServerProcess, key: ClientKey) -> None:
    secret = "sk-" + "a1" * 20
    done = run_ssh(
        key, f"KEY={secret}; echo told ${{#KEY}}; : 'Authorization: Bearer {secret}' https://me:{secret}@example.org"
    )
    assert done.stdout == b"told 43\n"
    server.wait_for_event(
        "ssh.command_started",
        command="KEY=•••; echo told ${#KEY}; : 'Authorization: Bearer •••' https://me:•••@example.org",
    )
    assert not any(secret in str(event) for event in server.events("ssh.command_started"))


def test_every_command_is_in_the_timeline(server: SshServerProcess, key: ClientKey) -> None:
    run_ssh(key, "echo noted-7431")
    began = server.wait_for_event("ssh.command_started", command="echo noted-7431")
    ended = server.wait_for_event("ssh.command_ended", connection=began["connection"])
    assert ended["exit"] == 0
    met = server.wait_for_event("ssh.connected", connection=began["connection"])
    assert met["credential"] == key.credential
    assert server.wait_for_event("ssh.disconnected", connection=began["connection"])
