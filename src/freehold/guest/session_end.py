"""Ends everything that agents started, for the kill switch. What the owner started keeps running.

A process is an agent's if it is inside the domain of agents, which it cannot leave: not its parents, its Unix session or
its environment decide.
"""

from __future__ import annotations

import time

from freehold.guest.kernel import os, signals
from freehold.guest.link import Operation
from freehold.guest.process_table import ProcessInfo, list_processes, read_bytes, read_command_line, send_signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from freehold.guest.landlock import LandlockDomains
    from freehold.guest.link import GuestChannel
    from freehold.guest.process import ChildProcesses

WAIT = 3.0
"""Seconds to wait for killed processes to disappear. One that waits for a device may take longer, and is reported."""
POLL = 0.01
STOP_WAIT = 0.2
"""Seconds for all shells and other parents to stop, each before its children."""
STOP_POLL = 0.000_5
MAX_SHOWN = 20
MAX_COMMAND_LENGTH = 200


def kill_agents(domains: LandlockDomains) -> dict[int, ProcessInfo]:
    """Kill every process of the agents at one moment, so that none can fork away. Returns those that were found."""
    running = {one.pid: one for one in list_processes() if one.state not in "ZX"}
    found: list[int] = []
    if domains.scoped:

        def kill_domain() -> int:
            # In this thread a signal reaches the processes of the domain only, and the kernel sends it to all of them
            # while no process can be created.
            found.extend(pid for pid in running if _can_signal(pid))
            return _signal_everything(signals.SIGKILL)

        domains.agents.start(kill_domain)
    else:
        _stop_parents(running)
        _signal_everything(signals.SIGSTOP)
        stopped = {one.pid: one for one in list_processes() if one.state not in "ZX"}
        found.extend(_find_marked(domains, list(stopped)))
        for pid in found:
            send_signal(pid, signals.SIGKILL)
        for one in sort_children_first(stopped):
            if one.pid not in running or running[one.pid].state != "T":
                send_signal(one.pid, signals.SIGCONT)
        running.update(stopped)
    return {pid: running[pid] for pid in found}


def _stop_parents(processes: dict[int, ProcessInfo]) -> None:
    """Stop every parent before its children: a shell that runs for a moment longer would see its child stopped."""
    parents = {one.parent for one in processes.values()}
    until = time.monotonic() + STOP_WAIT
    for one in reversed(sort_children_first(processes)):
        if one.pid in parents and one.state not in "Tt":
            send_signal(one.pid, signals.SIGSTOP)
            while _is_running(one.pid) and time.monotonic() < until:
                time.sleep(STOP_POLL)


def _is_running(pid: int) -> bool:
    try:
        return ProcessInfo(pid, read_bytes(f"/proc/{pid}/stat")).state not in "TtZX"
    except (OSError, ValueError, IndexError):
        return False  # it has ended


def sort_children_first(processes: dict[int, ProcessInfo]) -> list[ProcessInfo]:
    """In this order they go on after a stop: a shell that sees its child stopped takes the terminal from it.

    The time of the start does not decide, since the kernel tells it in hundredths of a second only.
    """

    depths: dict[int, int] = {}

    def find_depth(one: ProcessInfo) -> int:
        # Each process is looked at once: an agent can start a long chain of them.
        way: list[int] = []
        seen: set[int] = set()
        while one.pid not in depths and one.pid not in seen:
            way.append(one.pid)
            seen.add(one.pid)
            if one.parent not in processes:
                break
            one = processes[one.parent]
        depth = depths.get(one.pid, 0)
        for pid in reversed(way):
            depth += 1
            depths[pid] = depth
        return depth

    return sorted(processes.values(), key=find_depth, reverse=True)


def _can_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _signal_everything(number: int) -> int:
    try:
        os.kill(-1, number)
    except OSError:
        return 0  # there is no process
    return 1


def _find_marked(domains: LandlockDomains, pids: list[int]) -> list[int]:
    """The processes with more filters than we have, except those that the owner's domain may inspect: his own.

    A program of the owner that has both filters of its own and forbids inspection counts as an agent's.
    """
    own = _count_filters(os.getpid())
    marked = [pid for pid in pids if _count_filters(pid) > own]
    owner = domains.owner
    if owner is None:
        return marked
    agents: list[int] = []

    def look() -> int:
        agents.extend(pid for pid in marked if not _can_read(pid))
        return 0

    owner.start(look)
    return agents


def _can_read(pid: int) -> bool:
    try:
        read_bytes(f"/proc/{pid}/environ")
    except OSError:
        return False
    return True


def _count_filters(pid: int) -> int:
    try:
        status = read_bytes(f"/proc/{pid}/status")
    except OSError:
        return 0
    _, found, rest = status.partition(b"\nSeccomp_filters:")
    return int(rest.split(None, 1)[0]) if found else 0


class SessionEnd(Operation):
    """Kills, waits until the killed are gone, and answers what was ended and what is left."""

    def __init__(self, children: ChildProcesses, channel: GuestChannel) -> None:
        self._children = children
        self._channel = channel
        self._killed = kill_agents(children.domains)
        self._until = time.monotonic() + WAIT
        self._look()

    def _look(self) -> None:
        if not self._channel.is_open:
            return
        self._children.reap()
        running = {one.pid: one for one in list_processes() if one.state not in "ZX"}
        left = [pid for pid, one in self._killed.items() if pid in running and running[pid].started == one.started]
        if left and time.monotonic() < self._until:
            self._children.loop.call_later(POLL, self._look)
            return
        kept = [pid for pid in running if pid not in left]
        self._channel.finish(
            {
                "ok": {
                    "ended": len(self._killed) - len(left),
                    "left": [_describe(running[pid]) for pid in left[:MAX_SHOWN]],
                    "kept": len(kept),
                    "detached": [_describe(running[pid]) for pid in kept if self._is_detached(pid, running)][
                        :MAX_SHOWN
                    ],
                }
            }
        )

    def _is_detached(self, pid: int, running: dict[int, ProcessInfo]) -> bool:
        """Whether it belongs to no terminal, service or command any more: none of these is above it."""
        while pid in running:
            if self._children.is_child(pid):
                return False
            pid = running[pid].parent
        return True


def _describe(one: ProcessInfo) -> list[Any]:
    command = " ".join(read_command_line(one.pid))[:MAX_COMMAND_LENGTH]
    return [one.pid, command or one.name, one.state]
