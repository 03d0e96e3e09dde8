"""Adopted processes that have ended are taken away one file later; the children of a test are left to the test."""

import os
import signal
import subprocess
from pathlib import Path

from tests.support.condition import wait_until
from tests.support.processes import reap_orphans


def has_ended(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_an_orphan_that_ended_is_taken_away_by_the_second_call() -> None:
    script = "sleep 1000 >/dev/null & echo $!"
    orphan = int(subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout)
    os.kill(orphan, signal.SIGKILL)
    wait_until(lambda: has_ended(orphan))
    reap_orphans()
    assert has_ended(orphan)
    reap_orphans()
    assert not Path(f"/proc/{orphan}").exists()


def test_a_child_that_is_waited_for_within_its_file_keeps_its_exit_status() -> None:
    with subprocess.Popen(["sh", "-c", "exit 7"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        reap_orphans()
        assert child.wait() == 7
    reap_orphans()
