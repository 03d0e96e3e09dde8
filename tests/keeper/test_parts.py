"""The small parts: the lock, the strays, the backoff, the seal, the ports, the plan's artifacts."""

import os
import select
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper import artifacts
from freehold.keeper.backoff import Backoff
from freehold.keeper.lock import hold_home
from freehold.keeper.plan import MountPlan
from freehold.keeper.ports import bind_port, check_port
from freehold.keeper.processes import ProcessId, identify, is_alive
from freehold.keeper.reading import make_plan
from freehold.keeper.seal import Seal, read_seal, withdraw_seal, write_seal
from freehold.keeper.settings import RestartPolicy
from freehold.keeper.strays import Strays, end_strays
from freehold.manifest import load_manifest

PLAN = make_plan(load_manifest(Path("/nowhere/freehold.toml"), {}))


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def test_a_lock_is_held_once_and_let_go(home: Home) -> None:
    with hold_home(home):
        with pytest.raises(FreeholdError, match=f"pid {os.getpid()}") as caught, hold_home(home):
            pytest.fail("held twice")
        assert caught.value.code == "keeper.already-running"
    with hold_home(home):
        assert home.lock.stat().st_mode & 0o077 == 0


def test_a_lock_that_is_a_planted_link_is_refused(home: Home, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    home.lock.symlink_to(victim)
    with pytest.raises(FreeholdError), hold_home(home):
        pytest.fail("followed")
    assert victim.read_text() == "precious"


def test_the_mourner_kills_whole_groups_when_the_keeper_is_gone(tmp_path: Path) -> None:
    """In a process of its own, that is killed: nothing of Python's runs to the end."""
    script = (
        "import subprocess, os, sys\n"
        "from pathlib import Path\n"
        "from freehold.keeper.strays import Strays\n"
        "from freehold.keeper.processes import identify\n"
        f"strays = Strays(Path({str(tmp_path / 'record')!r}))\n"
        "child = subprocess.Popen(['sh', '-c', 'sleep 1000 & sleep 1000 & wait'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "gone = subprocess.Popen(['cat'], stdin=subprocess.PIPE, start_new_session=True)\n"
        "strays.add(identify(gone.pid)); gone.communicate(); strays.remove(gone.pid)\n"
        "strays.add(identify(child.pid)); print(child.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PATH": os.environ["PATH"]},
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.stdout.close()
    process.wait()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([descriptor], [], [], 10)[0], "the group has outlived its keeper"
    os.close(descriptor)


def test_strays_of_a_dead_keeper_are_ended_and_nobody_else(tmp_path: Path) -> None:
    record = tmp_path / "record"
    stray, bystander = sleeper(), sleeper()
    try:
        strays = Strays(tmp_path / "other")
        strays._record = record
        identified = identify(stray.pid)
        assert identified is not None
        strays.add(identified)
        # A pid that was given to somebody else since: same number, another start time.
        strays.add(ProcessId(bystander.pid, 1))
        kept = record.read_text()
        strays._groups.clear()
        os.write(strays._pipe, f"-{stray.pid}\n-{bystander.pid}\n".encode())
        strays.close()
        record.write_text(kept)
        assert end_strays(record) == [stray.pid]
        assert stray.wait() == -signal.SIGKILL
        assert bystander.poll() is None
        assert end_strays(record) == []
        record.write_text(kept.replace('"boot": "', '"boot": "another'))
        assert end_strays(record) == []
    finally:
        for process in (stray, bystander):
            process.kill()
            process.wait()


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=60))
def test_a_wait_is_never_longer_than_the_limit_nor_shorter_than_the_jitter_allows(
    lives: list[tuple[float, float]],
) -> None:
    policy = RestartPolicy()
    backoff = Backoff(policy)
    now = 0.0
    for lived, rested in lives:
        now += lived
        wait = backoff.died(now, lived)
        most = policy.loop_wait if backoff.looping else policy.limit
        assert policy.first * (1 - policy.jitter) <= wait <= most
        now += wait + rested


def test_waits_double_until_a_crash_loop_and_a_long_life_ends_it() -> None:
    policy = RestartPolicy(first=1, limit=100, jitter=0, loop_deaths=4, loop_window=60, loop_wait=300)
    backoff = Backoff(policy)
    assert [backoff.died(now, 0.1) for now in (1, 2, 4)] == [1, 2, 4]
    assert not backoff.looping
    assert backoff.died(8, 0.1) == 300
    assert backoff.looping
    assert backoff.died(8 + 300, 0.1) == 300, "the slow tries of a loop do not end it"
    assert backoff.died(1000, 61) == 1
    assert not backoff.looping


def test_a_seal_is_void_when_its_keeper_is_dead_or_it_is_withdrawn(home: Home) -> None:
    me = identify(os.getpid())
    assert me is not None
    assert read_seal(home) is None
    seal = Seal("boot", "2026-01-01T00:00:00Z", ("gateway",), me.pid, me.started)
    write_seal(home, seal)
    assert read_seal(home) == seal
    write_seal(home, replace(seal, keeper_started=me.started + 1))
    assert read_seal(home) is None
    assert withdraw_seal(home)
    assert not withdraw_seal(home)


def test_a_dead_process_is_not_mistaken_for_its_successor() -> None:
    process = sleeper()
    identity = identify(process.pid)
    assert identity is not None
    assert is_alive(identity)
    process.kill()
    process.wait()
    assert not is_alive(identity)


def test_localhost_is_served_in_both_families_and_a_taken_port_is_explained() -> None:
    sockets = bind_port("127.0.0.1", 0, "keeper.port")
    try:
        port = sockets[0].getsockname()[1]
        assert {each.family for each in sockets} <= {socket.AF_INET, socket.AF_INET6}
        with pytest.raises(FreeholdError, match=f"Port {port}") as caught:
            check_port("127.0.0.1", port, "gateway.port")
        assert caught.value.code == "keeper.port-taken"
        assert f"pid {os.getpid()}" in caught.value.message
    finally:
        for each in sockets:
            each.close()


def test_an_address_that_is_not_ours_is_explained() -> None:
    with pytest.raises(FreeholdError) as caught:
        check_port("203.0.113.7", 45678, "gateway.port")
    assert caught.value.code == "keeper.cannot-listen"


def test_everything_that_is_missing_is_named_at_once_with_who_needs_it_and_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_bwrap() -> None:
        raise FreeholdError("computer.no-isolation", "bubblewrap is not installed", hint="apt install bubblewrap")

    monkeypatch.setattr(artifacts, "find_tools", no_bwrap)
    plan = replace(PLAN, image=str(tmp_path / "rootfs"), mounts=(MountPlan(str(tmp_path / "code"), "/mnt", False),))
    with pytest.raises(FreeholdError) as caught:
        artifacts.check_artifacts(plan)
    error = caught.value
    assert error.code == "keeper.missing-artifact"
    for words in ("bubblewrap is not installed", 'computer.backend = "bubblewrap"', "rootfs", "computer.image", "/mnt"):
        assert words in error.message
    for command in ("apt install bubblewrap", "mmdebstrap", "mkdir -p"):
        assert command in error.hint


def test_nothing_is_missing_on_a_machine_that_has_it_all() -> None:
    artifacts.check_artifacts(PLAN)
