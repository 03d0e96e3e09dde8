"""How fast is SSH access, compared with the server of OpenSSH on the same machine?

Both are measured with the same OpenSSH client and the same cipher. The sshd runs on a free loopback port with its own
configuration; its commands start in an empty home, so that no start-up file of a shell is measured.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.freehold import KEEPER, FreeholdHarness
from tests.support.ports import free_ports

from bench.harness import Figure, main
from freehold.ssh.server import CIPHERS

QUESTION = "How fast is SSH access, compared with the server of OpenSSH?"
COMMAND_TIMEOUT = 60


@dataclass(frozen=True)
class Peer:
    """A server and the ssh configuration to reach it. `host` is its name there."""

    config: Path
    host: str

    def ssh(self, *words: str, options: tuple[str, ...] = ()) -> list[str]:
        return ["ssh", "-F", str(self.config), *options, self.host, *words]


@contextlib.contextmanager
def openssh(folder: Path) -> Iterator[Peer]:
    folder.mkdir()
    (port,) = free_ports(1)
    for name in ("host", "id"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "home").mkdir()
    lines = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": folder / "host", "PidFile": "none", "UsePAM": "no",
        "AuthorizedKeysFile": folder / "id.pub", "StrictModes": "no", "Subsystem": "sftp internal-sftp",
        "SetEnv": f"HOME={folder / 'home'}", "PermitUserRC": "no", "PrintLastLog": "no",
    }  # fmt: skip
    (folder / "sshd").write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
    (folder / "config").write_text(
        f"Host peer\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n IdentityFile {folder / 'id'}\n"
        f" IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
        f" Ciphers {','.join(CIPHERS)}\n"
    )
    program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    assert program is not None, "install openssh-server"
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen([program, "-D", "-f", str(folder / "sshd")])
    try:
        deadline = time.monotonic() + COMMAND_TIMEOUT
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield Peer(folder / "config", "peer")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def freehold(folder: Path) -> Iterator[Peer]:
    """A complete Freehold with history, because its cost is part of each command."""
    folder.mkdir()
    harness = FreeholdHarness(folder, FREEHOLD_SSH_ENABLED="true")
    with harness.keeper(module=KEEPER) as keeper:
        keeper.next("ready")
        while harness.run("ssh", "true").returncode:
            continue
        (config,) = harness.config.rglob("config")
        yield Peer(config, "freehold")
        keeper.stop()


def seconds(argv: list[str], stdin: Path | None = None) -> float:
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(stdin.open("rb")) if stdin is not None else subprocess.DEVNULL
        began = time.perf_counter()
        process = subprocess.Popen(argv, stdin=source, stdout=subprocess.DEVNULL)
        # Without a timeout: with one, Python looks after 0.5, 1.5, 3.5, 7.5 and 15.5 ms, and no time between is seen.
        overdue = threading.Timer(COMMAND_TIMEOUT, process.kill)
        overdue.start()
        code = process.wait()
        taken = time.perf_counter() - began
        overdue.cancel()
        assert code == 0, f"{argv} ended with {code}"
        return taken


@contextlib.contextmanager
def open_connection(peer: Peer, folder: Path) -> Iterator[tuple[str, ...]]:
    options = ("-o", f"ControlPath={folder / peer.host}.control")
    subprocess.run(
        peer.ssh(options=(*options, "-o", "ControlMaster=yes", "-o", "ControlPersist=120", "-fN")), check=True
    )
    try:
        yield options
    finally:
        subprocess.run(peer.ssh(options=(*options, "-O", "exit")), check=True, stderr=subprocess.DEVNULL)


def measure(quick: bool) -> Iterable[Figure]:
    rounds, size = (5, 64) if quick else (15, 128)
    with tempfile.TemporaryDirectory(prefix="bench-ssh-") as name, contextlib.ExitStack() as stack:
        root = Path(name)
        data = root / "data"
        data.write_bytes(os.urandom(1 << 20) * size)
        both = (stack.enter_context(freehold(root / "freehold")), stack.enter_context(openssh(root / "openssh")))

        def compare(
            figure: str, jobs: list[tuple[list[str], Path | None]], times: int, aim: float, speed: bool
        ) -> Figure:
            """Alternate between the two, so that other load affects both."""
            taken: list[list[float]] = [[], []]
            for _ in range(times):
                for place, (argv, stdin) in enumerate(jobs):
                    taken[place].append(seconds(argv, stdin))
            ours, theirs = (statistics.median(each) for each in taken)
            if speed:
                words = f"at least {aim:g} × sshd"
                return Figure(figure, size / ours, "MiB/s", "sshd", size / theirs, words, theirs / ours >= aim)
            words = f"at most {aim:g} × sshd"
            return Figure(figure, ours * 1000, "ms", "sshd", theirs * 1000, words, ours / theirs <= aim)

        yield compare("connect and run true", [(peer.ssh("true"), None) for peer in both], rounds, 1.3, False)
        with open_connection(both[0], root) as ours, open_connection(both[1], root) as theirs:
            jobs: list[tuple[list[str], Path | None]] = [
                (both[0].ssh("true", options=ours), None),
                (both[1].ssh("true", options=theirs), None),
            ]
            yield compare("true on an open connection", jobs, rounds * 10, 1.5, False)
        bulk = 2 if quick else 5
        output = f"head -c {size << 20} /dev/zero"
        yield compare("cat, from inside", [(peer.ssh(output), None) for peer in both], bulk, 0.5, True)
        yield compare("cat, to inside", [(peer.ssh("cat > /dev/null"), data) for peer in both], bulk, 0.5, True)
        put, get = root / "put", root / "get"
        put.write_text(f"put {data} /tmp/bench-ssh-data\n")
        get.write_text(f"get /tmp/bench-ssh-data {root / 'back'}\n")
        for figure, batch in (("sftp, to inside", put), ("sftp, from inside", get)):
            argv = [["sftp", "-q", "-F", str(peer.config), "-b", str(batch), peer.host] for peer in both]
            yield compare(figure, [(words, None) for words in argv], bulk, 0.5, True)
        for peer in both:
            seconds(peer.ssh("rm", "/tmp/bench-ssh-data"))


if __name__ == "__main__":
    main(QUESTION, measure)
