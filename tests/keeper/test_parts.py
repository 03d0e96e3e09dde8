"""The small parts of the keeper: lock, orphans, backoff, seal, ports, artifacts."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.skills.skill_folders import write_skill
from tests.support.condition import DEADLINE

from freehold.errors import FreeholdError
from freehold.home import Home, find_home
from freehold.keeper import artifacts
from freehold.keeper.backoff import Backoff
from freehold.keeper.lock import lock_home
from freehold.keeper.orphans import OrphanGuard, kill_orphans
from freehold.keeper.plan import MountPlan
from freehold.keeper.plan_reader import make_plan
from freehold.keeper.ports import bind_port, check_port
from freehold.keeper.processes import ProcessId, identify_process, is_alive
from freehold.keeper.seal import Seal, read_seal, withdraw_seal, write_seal
from freehold.keeper.settings import RestartPolicy
from freehold.manifest import load_manifest
from freehold.skills.library import SkillLibrary
from freehold.skills.sources import read_source

PLAN = make_plan(load_manifest(Path("/nowhere/freehold.toml"), {}))


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def test_a_lock_is_held_once_and_released(home: Home) -> None:
    with lock_home(home):
        with pytest.raises(FreeholdError, match=f"pid {os.getpid()}") as caught, lock_home(home):
            pytest.fail("held twice")
        assert caught.value.code == "keeper.already-running"
    with lock_home(home):
        assert home.lock.stat().st_mode & 0o077 == 0


def test_a_lock_that_is_a_planted_link_is_refused(home: Home, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    home.lock.symlink_to(victim)
    with pytest.raises(FreeholdError), lock_home(home):
        pytest.fail("followed")
    assert victim.read_text() == "precious"


def test_the_watcher_kills_whole_groups_when_the_keeper_has_ended(tmp_path: Path) -> None:
    """In a process of its own, that is killed: nothing of Python's runs to the end."""
    script = (
        "import subprocess, os, sys\n"
        "from pathlib import Path\n"
        "from freehold.keeper.orphans import OrphanGuard\n"
        "from freehold.keeper.processes import identify_process\n"
        f"orphan_guard = OrphanGuard(Path({str(tmp_path / 'record')!r}))\n"
        "child = subprocess.Popen(['sh', '-c', 'sleep 1000 & sleep 1000 & wait'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "gone = subprocess.Popen(['cat'], stdin=subprocess.PIPE, start_new_session=True)\n"
        "orphan_guard.add(identify_process(gone.pid)); gone.communicate(); orphan_guard.remove(gone.pid)\n"
        "orphan_guard.add(identify_process(child.pid)); print(child.pid, flush=True); os.kill(os.getpid(), 9)"
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
    assert select.select([descriptor], [], [], DEADLINE)[0], "the group has outlived its keeper"
    os.close(descriptor)


def test_orphans_of_a_killed_keeper_are_killed_and_no_other_process(tmp_path: Path) -> None:
    record = tmp_path / "record"
    orphan, bystander = sleeper(), sleeper()
    try:
        orphan_guard = OrphanGuard(tmp_path / "other")
        orphan_guard._record = record
        identified = identify_process(orphan.pid)
        assert identified is not None
        orphan_guard.add(identified)
        # A pid that was given to somebody else since: same number, another start time.
        orphan_guard.add(ProcessId(bystander.pid, 1))
        saved = record.read_text()
        orphan_guard._groups.clear()
        os.write(orphan_guard._pipe, f"-{orphan.pid}\n-{bystander.pid}\n".encode())
        orphan_guard.close()
        record.write_text(saved)
        assert kill_orphans(record) == [orphan.pid]
        assert orphan.wait() == -signal.SIGKILL
        assert bystander.poll() is None
        assert kill_orphans(record) == []
        record.write_text(saved.replace('"boot": "', '"boot": "another'))
        assert kill_orphans(record) == []
    finally:
        for process in (orphan, bystander):
            process.kill()
            process.wait()


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=60))
def test_a_wait_is_never_longer_than_the_limit_nor_shorter_than_the_jitter_allows(
    starts: list[tuple[float, float]],
) -> None:
    policy = RestartPolicy()
    backoff = Backoff(policy)
    now = 0.0
    for lived, rested in starts:
        now += lived
        wait = backoff.record_death(now, lived)
        most = policy.loop_wait if backoff.looping else policy.limit
        assert policy.first * (1 - policy.jitter) <= wait <= most
        now += wait + rested


def test_waits_double_until_a_crash_loop_and_a_long_run_resets_them() -> None:
    policy = RestartPolicy(first=1, limit=100, jitter=0, loop_deaths=4, loop_window=60, loop_wait=300)
    backoff = Backoff(policy)
    assert [backoff.record_death(now, 0.1) for now in (1, 2, 4)] == [1, 2, 4]
    assert not backoff.looping
    assert backoff.record_death(8, 0.1) == 300
    assert backoff.looping
    assert backoff.record_death(8 + 300, 0.1) == 300, "the slow tries of a loop do not end it"
    assert backoff.record_death(1000, 61) == 1
    assert not backoff.looping


def test_a_seal_is_not_valid_when_its_keeper_has_ended_or_it_was_removed(home: Home) -> None:
    me = identify_process(os.getpid())
    assert me is not None
    assert read_seal(home) is None
    seal = Seal("boot", "2026-01-01T00:00:00Z", ("gateway",), me.pid, me.started)
    write_seal(home, seal)
    assert read_seal(home) == seal
    write_seal(home, replace(seal, keeper_started=me.started + 1))
    assert read_seal(home) is None
    assert withdraw_seal(home)
    assert not withdraw_seal(home)


def test_a_process_that_ended_is_not_confused_with_one_of_the_same_pid() -> None:
    process = sleeper()
    identity = identify_process(process.pid)
    assert identity is not None
    assert is_alive(identity)
    process.kill()
    process.wait()
    assert not is_alive(identity)


def test_localhost_is_served_on_ipv4_and_ipv6_and_a_taken_port_is_explained() -> None:
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


def test_an_address_of_another_machine_is_explained() -> None:
    with pytest.raises(FreeholdError) as caught:
        check_port("203.0.113.7", 45678, "gateway.port")
    assert caught.value.code == "keeper.cannot-listen"


def test_all_missing_artifacts_are_named_with_what_needs_them_and_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_bwrap() -> None:
        raise FreeholdError("computer.no-isolation", "bubblewrap is not installed", hint="apt install bubblewrap")

    monkeypatch.setattr(artifacts, "find_tools", no_bwrap)
    plan = replace(
        PLAN,
        image=str(tmp_path / "rootfs"),
        mounts=(MountPlan("folder", str(tmp_path / "code"), "/mnt", False, "", 0),),
    )
    with pytest.raises(FreeholdError) as caught:
        artifacts.check_artifacts(plan, find_home(tmp_path))
    error = caught.value
    assert error.code == "keeper.missing-artifact"
    for words in ("bubblewrap is not installed", 'computer.backend = "bubblewrap"', "rootfs", "computer.image", "/mnt"):
        assert words in error.message
    for command in ("apt install bubblewrap", "freehold build", "mkdir -p"):
        assert command in error.hint


@pytest.mark.parametrize("change", ["removed", "changed"])
def test_a_skill_that_is_missing_or_changed_ends_the_boot_with_its_name(tmp_path: Path, change: str) -> None:
    home = find_home(tmp_path)
    SkillLibrary(home).add(read_source(str(write_skill(tmp_path / "tea", "tea"))))
    artifacts.check_artifacts(PLAN, home)
    (version,) = (home.skills / "versions").iterdir()
    version.chmod(0o755)
    if change == "removed":
        shutil.rmtree(version)
    else:
        (version / "SKILL.md").chmod(0o644)
        (version / "SKILL.md").write_text("other words")
    with pytest.raises(FreeholdError, match="tea"):
        artifacts.check_artifacts(PLAN, home)
    artifacts.check_artifacts(replace(PLAN, shows_skills=False), home)


def test_nothing_is_missing_on_a_complete_machine(tmp_path: Path) -> None:
    artifacts.check_artifacts(PLAN, find_home(tmp_path))
