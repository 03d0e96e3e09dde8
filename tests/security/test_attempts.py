"""Tests of the attempts themselves: each must notice a missing wall."""

import subprocess

import pytest

from freehold.computer.escapes import BOMBS, ESCAPES, Bait, EscapeAttempt, try_bomb, try_escape, try_escapes
from freehold.computer.escapes.escape import build_command, judge_escape
from freehold.computer.escapes.series import try_series
from freehold.computer.library.computer import Computer
from freehold.computer.library.process_list import EndedSessions
from freehold.computer.walls import disk_guard
from freehold.computer.walls.deleted_files import DeletedFiles

# On the host, without walls and without privileges, these attempts must succeed. An attempt that never succeeds proves
# nothing. The others would need root.
VISIBLE_WITHOUT_WALLS = (
    "host-file",
    "owner-home",
    "no-sysfs",
    "masked-proc",
    "rare-calls",
    "host-processes",
    "trace-others",
    "host-sockets",
    "abstract-sockets",
    "host-loopback",
    "netlink",
    "host-memory",
    "privileges",
    "host-environment",
    "reserved-space",
    "leases",
    "host-ports",
)


@pytest.mark.parametrize("name", VISIBLE_WITHOUT_WALLS)
def test_an_attempt_notices_that_a_wall_is_missing(name: str, bait: Bait) -> None:
    """The same program, run by an ordinary user of the host, succeeds and reports it."""
    escape = next(escape for escape in ESCAPES if escape.name == name)
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]
    ran = subprocess.run([*drop, *build_command(escape, bait)], capture_output=True, check=False, cwd="/", timeout=60)

    class Ran:
        stdout, stderr, exit_code = ran.stdout, ran.stderr, ran.returncode

    verdict = judge_escape(escape, bait, Ran())
    assert verdict.outcome == "escaped", verdict.seen


@pytest.mark.asyncio(loop_scope="module")
async def test_the_attempt_to_survive_a_stop_notices_a_stop_that_ends_nothing(
    bait: Bait, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end_nothing(computer: Computer) -> EndedSessions:
        return EndedSessions(0, (), 0, ())

    escape = next(escape for escape in ESCAPES if escape.then_stop)
    monkeypatch.setattr(Computer, "end_sessions", end_nothing)
    async with Computer.start() as computer:
        verdict = await try_escape(escape, bait, computer)
    assert (verdict.outcome, verdict.seen) == ("escaped", "3 of 3 processes survived the stop")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ["disk-deleted-files", "disk-deleted-mappings", "names"])
async def test_a_bomb_notices_that_what_it_hides_is_not_counted(
    name: str, bait: Bait, bystander: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the count as it was: deleted files nowhere, and a file with many names once."""
    measure = disk_guard.measure_disk
    monkeypatch.setattr(disk_guard, "measure_deleted", lambda processes, folders: DeletedFiles())
    if name == "names":
        monkeypatch.setattr(
            disk_guard, "measure_disk", lambda folders: disk_guard.DiskUsage(measure(folders).size, 3, too_deep=False)
        )
    bomb = next(bomb for bomb in BOMBS if bomb.name == name)
    verdict = await try_bomb(bomb, bait, bystander)
    assert verdict.outcome == "escaped", verdict.seen


@pytest.mark.asyncio(loop_scope="module")
async def test_each_attempt_of_a_series_is_judged_by_itself(bait: Bait, computer: Computer) -> None:
    """One that gets through, hangs, fails or leaves a process behind changes nothing for the next."""
    programs = {
        "through": "escaped('a wall is missing')",
        "next": "assert reasons == [] and os.listdir('/proc/self/fd') in (['0', '1', '2', '3'], ['0', '1', '2'])\nrefused('x')",
        "hangs": "time.sleep(600)",
        "fails": "raise ValueError('broken')",
        "leaves": "os.fork() or time.sleep(600)",
        "quiet": "os._exit(0)",
        "last": "refused('y')",
    }
    attempts = [EscapeAttempt(name, "a claim", program) for name, program in programs.items()]
    seen = {one.name: (one.outcome, one.seen) async for one in try_series(attempts, bait, computer, 2.0)}
    assert seen == {
        "through": ("escaped", "a wall is missing"),
        "next": ("refused", "x"),
        "hangs": ("unclear", "exit -9: "),
        "fails": ("unclear", "exit 1: ValueError: broken"),
        "leaves": ("refused", "there was nothing to try"),
        "quiet": ("unclear", "exit 0: "),
        "last": ("refused", "y"),
    }


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "program",
    [
        "os.kill(os.getppid(), signal.SIGKILL)",
        "open(f'/proc/{os.getppid()}/fd/1', 'w').write('{\"exit\": 0}\\n' * 3)\nos.kill(os.getppid(), signal.SIGKILL)",
    ],
    ids=["killed", "replaced"],
)
async def test_an_attempt_that_ends_the_series_is_no_refusal(program: str, bait: Bait, computer: Computer) -> None:
    attempts = [EscapeAttempt(name, "a claim", program) for name in ("one", "two", "three")]
    verdicts = [verdict async for verdict in try_escapes(attempts, bait, computer)]
    assert [(one.name, one.outcome) for one in verdicts] == [(one.name, "unclear") for one in attempts]
