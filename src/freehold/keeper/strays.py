"""Children die with their keeper, even one that was killed without warning.

Three nets: the kernel kills each child when the keeper's main thread dies; a small shell, the mourner, holds the other
end of a pipe and kills the children's whole process groups when it closes; and what both missed is written down, and
ended by the next keeper before it starts anything.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from freehold.keeper.processes import ProcessId, is_alive, kernel_boot, kill_group

# Reads "+GROUP" and "-GROUP" lines; when the pipe closes, kills the groups still in the list.
MOURNER = r"""
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


def dies_with_parent(argv: list[str]) -> list[str]:
    """`argv`, started so that the kernel kills it when the thread that started it dies."""
    setpriv = shutil.which("setpriv", path="/usr/bin:/bin:/run/current-system/sw/bin")
    return [setpriv, "--pdeathsig", "KILL", "--", *argv] if setpriv else argv


class Strays:
    """The groups that must not outlive this keeper. `add` before anything can go wrong, `remove` when a group is gone."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._groups: dict[int, ProcessId] = {}
        reading, self._pipe = os.pipe()
        self._mourner = subprocess.Popen(
            ["/bin/sh", "-c", MOURNER],
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
        self._tell(f"+{process.pid}\n")
        self._write()

    def remove(self, group: int) -> None:
        if self._groups.pop(group, None) is not None:
            self._tell(f"-{group}\n")
            self._write()

    def close(self) -> None:
        """Ends the mourner, which ends whatever is still on the list."""
        os.close(self._pipe)
        self._mourner.wait()
        self._record.unlink(missing_ok=True)

    def _tell(self, line: str) -> None:
        # A mourner that was killed leaves the two other nets.
        with contextlib.suppress(OSError):
            os.write(self._pipe, line.encode())

    def _write(self) -> None:
        body = {"boot": kernel_boot(), "groups": [[p.pid, p.started] for p in self._groups.values()]}
        fresh = self._record.with_suffix(".new")
        with contextlib.suppress(OSError):  # a full disk takes away this net and leaves the others
            fresh.write_text(json.dumps(body))
            fresh.replace(self._record)


def end_strays(record: Path) -> list[int]:
    """Kill what a previous keeper left behind, and only that: same boot, same pid, same start time."""
    try:
        body = json.loads(record.read_text())
        groups = [ProcessId(int(pid), int(started)) for pid, started in body["groups"]]
        same_boot = body["boot"] == kernel_boot()
    except (OSError, ValueError, KeyError, TypeError):
        return []
    ended = []
    for process in groups if same_boot else []:
        if is_alive(process) and kill_group(process.pid, signal.SIGKILL):
            ended.append(process.pid)
    record.unlink(missing_ok=True)
    return ended
