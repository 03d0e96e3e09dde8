"""A real SSH server (OpenSSH) on loopback that serves SFTP, with a key for its client."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncssh
from tests.support.condition import wait_until
from tests.support.ports import free_ports

from freehold.backup.stores.sftp import SftpPlace


@contextlib.contextmanager
def run_sftp_server(folder: Path) -> Iterator[SftpPlace]:
    """The place of an empty folder on it."""
    (port,) = free_ports(1)
    for name in ("host", "client"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        (folder / name).chmod(0o600)
        (folder / f"{name}.pub").write_bytes(key.export_public_key())
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    settings = [
        f"HostKey {folder / 'host'}",
        f"AuthorizedKeysFile {folder / 'client.pub'}",
        "ListenAddress 127.0.0.1",
        "PidFile none",
        "StrictModes no",
        "PermitRootLogin yes",
        "UsePAM no",
        "Subsystem sftp internal-sftp",
    ]
    (folder / "sshd_config").write_text("\n".join(settings) + "\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    command = ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config"), "-p", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        wait_until(answers)
        place = SftpPlace("127.0.0.1", port, os.environ.get("USER") or "root", str(folder / "repository"))
        yield SftpPlace(
            **vars(place) | {"known_hosts": str(folder / "known_hosts"), "key_files": (str(folder / "client"),)}
        )
    finally:
        process.terminate()
        process.wait()
