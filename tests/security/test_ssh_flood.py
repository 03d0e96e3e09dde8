"""Floods, slow ones and guessers: the owner comes in all the same."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, SshServerProcess, run_ssh, run_ssh_server
from tests.support.condition import wait_until

LIMITS = {"pending": 32, "pending_per_address": 24, "failures": 5, "ban": 3600.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServerProcess]:
    with run_ssh_server(tmp_path_factory.mktemp("flood"), connection_limits=LIMITS) as found:
        yield found


@pytest.fixture(scope="module")
def hasty_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServerProcess]:
    """One that soon ends who does not sign in. On a busy machine many clients at once would not be in by then."""
    with run_ssh_server(tmp_path_factory.mktemp("hasty"), login_timeout=8.0, connection_limits=LIMITS) as found:
        yield found


@pytest.fixture(scope="module")
def hasty_key(hasty_server: SshServerProcess) -> ClientKey:
    """Of an owner who has been in: connections from an address that is not known are dropped at random in a flood."""
    key = hasty_server.issue()
    assert run_ssh(key, "echo in").stdout == b"in\n"
    return key


@pytest.fixture(scope="module")
def key(server: SshServerProcess) -> ClientKey:
    return server.issue()


def stranger(server: SshServerProcess, address: str = "127.0.0.2") -> socket.socket:
    """A connection from elsewhere: Linux has a whole network on its loopback."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=SSH_TIMEOUT, source_address=(address, 0))


def guess(server: SshServerProcess, address: str) -> int:
    folder = server.make_client_folder()
    return run_ssh(ClientKey(server.write_client_config(folder), ""), "true", options=("-b", address)).returncode


def test_a_guesser_is_banned_and_the_owner_is_not(server: SshServerProcess, key: ClientKey) -> None:
    for _ in range(5):
        assert guess(server, "127.0.0.3") == 255
    assert server.wait_for_event("ssh.address_banned", address="127.0.0.3")
    with stranger(server, "127.0.0.3") as banned, suppress(ConnectionResetError):
        assert banned.recv(100) == b""
    assert run_ssh(key, "echo in").stdout == b"in\n"


def test_failures_from_the_owners_address_do_not_lock_out_the_owner(server: SshServerProcess, key: ClientKey) -> None:
    for _ in range(8):
        assert guess(server, "127.0.0.1") == 255
    assert run_ssh(key, "echo in").stdout == b"in\n"


def test_many_keys_on_one_connection_are_cut_off(server: SshServerProcess) -> None:
    folder = server.make_client_folder()
    options: list[str] = []
    for number in range(12):
        path = folder / f"key{number}"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
        options += ["-i", str(path)]
    refused = run_ssh(ClientKey(server.write_client_config(folder), ""), "true", options=tuple(options))
    assert refused.returncode == 255
    assert b"Too many keys" in refused.stderr or b"disconnect" in refused.stderr.lower()


@pytest.mark.parametrize("words", [b"", b"SSH-2.0-Slow\r\n"], ids=["silent", "greeting"])
def test_slow_ones_are_bounded_and_ended_and_the_owner_comes_in(
    hasty_server: SshServerProcess, hasty_key: ClientKey, words: bytes
) -> None:
    server, key = hasty_server, hasty_key
    with ExitStack() as stack:
        slow = []
        for number in range(120):
            connection = stack.enter_context(stranger(server, f"127.0.1.{number % 4 + (10 if words else 1)}"))
            try:
                connection.sendall(words)
            except OSError:
                continue
            slow.append(connection)
        assert run_ssh(key, "echo in").stdout == b"in\n"
        state = _ask(server)
        assert state["waiting"] <= LIMITS["pending"]
        deadline = time.monotonic() + SSH_TIMEOUT
        for connection in slow:  # each is ended by the server: dropped for room, or at the end of its grace
            connection.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                while connection.recv(1000):
                    continue
            except ConnectionResetError:
                continue
    assert run_ssh(key, "echo in").stdout == b"in\n"


def _ask(server: SshServerProcess) -> dict[str, int]:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(server.home.run / "ssh.sock"))
        with asking.makefile("rb") as file:
            answer: dict[str, int] = json.loads(file.readline())
    return answer


def test_the_owner_comes_in_while_a_flood_goes_on_from_the_same_address(
    hasty_server: SshServerProcess, hasty_key: ClientKey
) -> None:
    server, key = hasty_server, hasty_key
    script = (
        "import socket\n"
        "print('flooding', flush=True)\n"
        "held = []\n"
        "while True:\n"
        "    try:\n"
        f"        held.append(socket.create_connection(('127.0.0.1', {server.port}), timeout=5))\n"
        "        held[-1].sendall(b'SSH-2.0-Flood\\r\\n')\n"
        "    except OSError: pass\n"
        "    if len(held) > 200: held.pop(0).close()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as flood:
        try:
            assert flood.stdout is not None
            flood.stdout.readline()
            wait_until(lambda: run_ssh(key, "echo in").stdout == b"in\n")
        finally:
            flood.kill()


def test_200_connections_are_held_at_once(server: SshServerProcess, key: ClientKey, tmp_path: Path) -> None:
    clients: list[subprocess.Popen[bytes]] = []
    argv = ["ssh", "-F", str(key.config), "computer", "echo ready; exec cat"]
    try:
        for start in range(0, 200, 8):
            batch = [
                subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                for _ in range(start, start + 8)
            ]
            clients += batch
            for client in batch:
                assert client.stdout is not None
                assert client.stdout.readline() == b"ready\n"
        assert _ask(server)["connected"] == 200
        for number, client in enumerate(clients):
            out, _ = client.communicate(str(number).encode(), timeout=SSH_TIMEOUT)
            assert out == str(number).encode()
    finally:
        for client in clients:
            client.kill()
            client.communicate()


# Of the exchanges for clients before OpenSSH 9.9. Newer ones choose the one that is offered first.
FOR_OLDER_CLIENTS = "does not provide protection against post-quantum attacks"
POST_QUANTUM = "mlkem768x25519-sha256"


def test_ssh_audit_finds_nothing(server: SshServerProcess) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ssh-audit")),
            "-p",
            str(server.port),
            "-j",
            "--skip-rate-test",
            "127.0.0.1",
        ],
        capture_output=True,
        text=True,
        timeout=SSH_TIMEOUT,
        check=False,
    )
    report = json.loads(done.stdout)
    found = [
        (part, row.get("algorithm"), severity, words)
        for part in ("kex", "key", "enc", "mac")
        for row in report[part]
        for severity in ("fail", "warn")
        for words in row.get("notes", {}).get(severity, [])
        if words != FOR_OLDER_CLIENTS
    ]
    assert not found
    assert report["kex"][0]["algorithm"] == POST_QUANTUM
    assert not report["cves"]
    assert report["recommendations"].get("critical", {}) == {}
