"""A copy of this machine that forgets what is written, with systemd as its first program.

Its root is an overlay over the root of this machine, in namespaces of its own. It has no network but loopback.
"""

import contextlib
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.condition import wait_until

BOOT_SECONDS = 90.0
START = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs {stage}
mkdir {stage}/upper {stage}/work {stage}/root
mount -t overlay overlay -o lowerdir=/,upperdir={stage}/upper,workdir={stage}/work {stage}/root
cd {stage}/root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mkdir -p opt/given mnt/before
mount --rbind {given} opt/given
{prepare}
ip link set lo up
pivot_root . mnt/before
umount -l /mnt/before
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit=basic.target --show-status=no </dev/null
"""


class SystemdMachine:
    """It runs while the process `pid`, its systemd, lives."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def run(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        command = ["nsenter", "--target", str(self.pid), "--all", "--wd=/", "env", "-u", "PYTHONPATH", *words]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FREEHOLD", "XDG", "PYTEST"))}
        environment = {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, check=False
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done


@contextlib.contextmanager
def systemd_machine(stage: Path, given: Path, prepare: str = "") -> Iterator[SystemdMachine]:
    """`given` is at /opt/given, as it is here. `prepare` are commands of a shell in its root, before it starts."""
    if os.geteuid() != 0 or not Path("/lib/systemd/systemd").exists():
        pytest.skip("only root can start a machine with systemd: nothing was installed")
    group = _find_groups() / f"freehold-{stage.name}-{os.getpid()}"
    group.mkdir()
    script = START.format(stage=shlex.quote(str(stage)), given=shlex.quote(str(given)), prepare=prepare)
    unshare = 'exec unshare --mount --pid --fork --uts --ipc --net --cgroup --kill-child sh -c "$2"'
    log = stage.with_name(f"{stage.name}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["sh", "-c", f'echo $$ > "$1"/cgroup.procs && {unshare}', "sh", str(group), script],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        machine = wait_until(lambda: _find_machine(process, log), BOOT_SECONDS)
        assert machine is not None
        wait_until(
            lambda: machine.run("systemctl", "is-active", "basic.target", check=False).returncode == 0, BOOT_SECONDS
        )
        yield machine
    finally:
        process.kill()
        process.wait(60)
        wait_until(lambda: _remove_groups(group))


def _find_groups() -> Path:
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
    if not places:
        pytest.skip("there are no control groups v2: nothing was installed")
    return Path(places[0])


def _find_machine(process: "subprocess.Popen[bytes]", log: Path) -> SystemdMachine | None:
    assert process.poll() is None, log.read_text()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    started = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "systemd\n"]
    return SystemdMachine(int(started[0])) if started else None


def _remove_groups(group: Path) -> bool:
    """Empty ones. The processes in them are ending."""
    with contextlib.suppress(OSError):
        for folder, _, _ in os.walk(group, topdown=False):
            Path(folder).rmdir()
        return True
    return False
