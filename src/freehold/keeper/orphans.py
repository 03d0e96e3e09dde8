"""Ends the keeper's child processes when the keeper ends, even when it is killed with SIGKILL.

There are three mechanisms. The kernel kills each child when the keeper's main thread ends. A small shell process, the
watcher, holds the other end of a pipe and kills the children's process groups when the pipe closes. The groups are also
written to a file, and the next keeper kills those that are left before it starts anything.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from freehold.keeper.processes import ProcessId, is_alive, kill_group, read_boot_id

# Reads lines "+GROUP" and "-GROUP". When the pipe closes, it kills the groups that are still in the list.
WATCHER_SCRIPT = r"""
trap '' HUP INT TERM
groups=' '
while read -r word; do
  group=${word#?}
  case $word in
    +*) groups="$groups$group " ;;
    -*) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


def bind_to_parent(argv: list[str]) -> list[str]:
    """`argv` with a prefix that makes the kernel kill the process when the thread that started it ends."""
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/run/current-system/sw/bin")
    return [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else argv


class OrphanGuard:
    """The process groups that must not outlive this keeper. `add` a group as soon as it exists, `remove` it when it has ended."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._groups: dict[int, ProcessId] = {}
        reading, self._pipe = os.pipe()
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCHER_SCRIPT],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            close_fds=True,
            cwd="/",
            env={},
        )
        os.close(reading)

    def add(self, process: ProcessId) -> None:
        self._groups[process.pid] = process
        self._send(f"+{process.pid}\n")
        self._write()

    def remove(self, group: int) -> None:
        if self._groups.pop(group, None) is not None:
            self._send(f"-{group}\n")
            self._write()

    def close(self) -> None:
        """Ends the watcher, which kills the groups that are still in the list."""
        os.close(self._pipe)
        self._watcher.wait()
        self._record.unlink(missing_ok=True)

    def _send(self, line: str) -> None:
        # Without the watcher, the two other mechanisms remain.
        with contextlib.suppress(OSError):
            os.write(self._pipe, line.encode())

    def _write(self) -> None:
        body = {"boot": read_boot_id(), "groups": [[p.pid, p.started] for p in self._groups.values()]}
        fresh = self._record.with_suffix(".new")
        with contextlib.suppress(OSError):  # on a full disk, the two other mechanisms remain
            fresh.write_text(json.dumps(body))
            fresh.replace(self._record)


def kill_orphans(record: Path) -> list[int]:
    """Kill the groups that a previous keeper left. A group counts only with the same boot, pid and start time."""
    try:
        body = json.loads(record.read_text())
        groups = [ProcessId(int(pid), int(started)) for pid, started in body["groups"]]
        same_boot = body["boot"] == read_boot_id()
    except (OSError, ValueError, KeyError, TypeError):
        return []
    killed = []
    for process in groups if same_boot else []:
        if is_alive(process) and kill_group(process.pid, signal.SIGKILL):
            killed.append(process.pid)
    record.unlink(missing_ok=True)
    return killed
