"""The key exchanges that are offered, with the real OpenSSH client and with asyncssh."""

import subprocess

import asyncssh
from tests.ssh.ssh_server import SSH_TIMEOUT, ClientKey, SshServerProcess

from freehold.ssh.server import KEY_EXCHANGES


def negotiated(key: ClientKey, *options: str) -> tuple[str, bytes]:
    """The key exchange that OpenSSH reports, and what the command printed."""
    argv = ["ssh", "-v", "-F", str(key.config), *options, "computer", "echo in"]
    done = subprocess.run(argv, capture_output=True, timeout=SSH_TIMEOUT, check=False)
    lines = done.stderr.decode().splitlines()
    return next((line.rpartition(" ")[2] for line in lines if "kex: algorithm:" in line), ""), done.stdout


def test_every_offered_exchange_that_this_openssh_knows_works(key: ClientKey) -> None:
    known = subprocess.run(["ssh", "-Q", "kex"], capture_output=True, text=True, check=True).stdout.split()
    tried = [name for name in KEY_EXCHANGES if name in known]
    assert "curve25519-sha256" in tried
    for name in tried:
        assert negotiated(key, "-o", f"KexAlgorithms={name}") == (name, b"in\n")


def test_the_exchange_that_resists_quantum_computers_comes_first() -> None:
    assert KEY_EXCHANGES[0] == "mlkem768x25519-sha256"
    assert KEY_EXCHANGES[0].encode() in asyncssh.kex.get_kex_algs()


async def test_mlkem_works_with_a_client_that_has_it(server: SshServerProcess, key: ClientKey) -> None:
    """OpenSSH has it from 9.9 on. asyncssh is the client here: the system's may be older."""
    folder = key.config.parent
    async with asyncssh.connect(
        "127.0.0.1",
        server.port,
        username="agent",
        known_hosts=None,
        client_keys=[(str(folder / "id"), str(folder / "id-cert.pub"))],
        kex_algs=["mlkem768x25519-sha256"],
        config=[],
    ) as connection:
        done = await connection.run("echo in")
        assert done.stdout == "in\n"


def test_a_client_without_any_offered_exchange_is_refused(key: ClientKey) -> None:
    assert negotiated(key, "-o", "KexAlgorithms=diffie-hellman-group14-sha256")[1] == b""
