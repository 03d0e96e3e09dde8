"""A whole Freehold whose computer is a container or a virtual machine, and then is not."""

import asyncio
import json
import os
from pathlib import Path

from tests.computer.engines import engine_process
from tests.computer.virtual_machines import VM_SYSTEM, micro_vm
from tests.support.condition import wait_until
from tests.support.freehold import ROOT, FreeholdHarness

from freehold.computer import Computer
from freehold.computer.engine.api import find_engine
from freehold.computer.microvm.requirements import SYSTEM_VARIABLE
from freehold.history.calls import MarkFiles, RequestAuthor, TakeSnapshot, UndoChanges
from freehold.keeper.client import KeeperClient

ACTOR = '[agents.actor]\ncommand = "python3 /workspace/actor.py resume"\nmode = "ask"\n'


def write_manifest(harness: FreeholdHarness, computer: str) -> None:
    harness.home.root.mkdir(exist_ok=True)
    harness.home.manifest.write_text(f"[computer]\n{computer}\n{ACTOR}")


def chat(harness: FreeholdHarness, *words: str) -> str:
    return harness.run("chat", "--print", "--agent", "actor", *words, check=True).stdout


def run_inside(harness: FreeholdHarness, command: str) -> list[str]:
    return harness.run("run", "--", "sh", "-c", command, check=True).stdout.split()


def test_switching_the_backend_keeps_files_history_and_sessions(tmp_path: Path) -> None:
    """One home: bubblewrap, then docker, then bubblewrap. The agent goes on in its session, and a change is undone."""
    harness = FreeholdHarness(tmp_path)
    with engine_process("docker") as engine:
        bubblewrap, docker = 'backend = "bubblewrap"', f'backend = "docker"\nhost = "{engine.host}"'
        write_manifest(harness, bubblewrap)
        with harness.keeper() as keeper:
            keeper.next("ready")
            (harness.home.workspace / "actor.py").write_bytes((ROOT / "tests/agents/actor.py").read_bytes())
            assert run_inside(harness, "id -u; echo one > file") == ["1000"]
            assert "hello" in chat(harness, "hello")
            assert keeper.stop() == 0
        (session,) = json.loads(harness.run("sessions", "--json", check=True).stdout)
        write_manifest(harness, docker)
        with harness.keeper() as keeper:
            keeper.next("ready")
            uid = str((harness.home.workspace / "file").stat().st_uid)
            assert run_inside(harness, "id -u; cat file; echo two > file") == [uid, "one"], "no user namespace"
            assert '["hello"' in chat(harness, "--session", session["id"], '[[{"past": ""}]]'), "it knows its past"
            assert keeper.stop() == 0
        assert find_engine("docker", engine.host).ask("GET", "/containers/json?all=1") == []
    write_manifest(harness, bubblewrap)
    with harness.keeper() as keeper:
        keeper.next("ready")
        assert '["hello"' in chat(harness, "--session", session["id"], '[[{"past": ""}]]')
        assert run_inside(harness, "id -u; cat file; echo three > file") == ["1000", "two"]
        harness.run("undo", check=True)
        assert (harness.home.workspace / "file").read_text() == "two\n"
        assert keeper.stop() == 0


def list_entries(harness: FreeholdHarness, path: str) -> list[int]:
    """The history entries that changed a file, the newest first."""
    return [row["id"] for row in json.loads(harness.run("log", path, "--json", check=True).stdout)["entries"]]


async def see_each_undo_at_once(harness: FreeholdHarness) -> None:
    """A program that looks right after an undo sees the file that was restored, and what it writes then is kept.

    The kernel of the machine knows the name, because a moment before the file was written under it.
    """
    file = harness.home.workspace / "file"
    keeper = KeeperClient(harness.home)
    async with Computer.connect(harness.home.computer_socket()) as computer:
        for _ in range(3):
            await keeper.call(MarkFiles("before", "command", RequestAuthor(by="owner"), "write"))
            await computer.run("echo two > file; cat file")
            await keeper.call(MarkFiles("after", "command", RequestAuthor(by="owner"), "write"))
            await keeper.call(UndoChanges(who=RequestAuthor(by="owner")))
            seen = await computer.run("cat file; echo more >> file")
            assert (seen.stdout, file.read_text()) == (b"one\n", "one\nmore\n")
            await computer.run("echo one > file")
            await keeper.call(TakeSnapshot())


def test_switching_to_a_virtual_machine_and_back_keeps_files_owners_history_and_undo(tmp_path: Path) -> None:
    """The agent owns inside what it made in either of them. A change of the machine is undone after the way back."""
    with micro_vm():
        harness = FreeholdHarness(tmp_path, **{SYSTEM_VARIABLE: str(VM_SYSTEM)})
    limits = '[computer.limits]\nmemory = "256 MiB"\n'
    bubblewrap, machine = f'backend = "bubblewrap"\n{limits}', f'backend = "microvm"\n{limits}'
    file, folder = harness.home.workspace / "file", harness.home.workspace / "folder"
    write_manifest(harness, bubblewrap)
    with harness.keeper() as keeper:
        keeper.next("ready")
        assert run_inside(harness, "umask 077; echo one > file; mkdir folder; stat -c %u:%a file") == ["1000:600"]
        assert keeper.stop() == 0
    owner = file.stat().st_uid, file.stat().st_gid
    first = list_entries(harness, "workspace/file")
    write_manifest(harness, machine)
    with harness.keeper() as keeper:
        keeper.next("ready")
        seen = run_inside(harness, "uname -r; stat -c %u:%a file; cat file; echo two > file; echo new > folder/made")
        assert seen[0] != os.uname().release
        assert seen[1:] == ["1000:600", "one"]
        harness.run("undo", check=True)
        assert (file.read_text(), (folder / "made").exists()) == ("one\n", False)
        assert run_inside(harness, "cat file") == ["one"]
        asyncio.run(see_each_undo_at_once(harness))
        assert run_inside(harness, "cat file; echo three > file; echo more > folder/made") == ["one"]
        assert keeper.stop() == 0
    write_manifest(harness, bubblewrap)
    with harness.keeper() as keeper:
        keeper.next("ready")
        seen = run_inside(harness, "cat file folder/made; stat -c %u:%a file; stat -c %u folder/made")
        assert seen == ["three", "more", "1000:600", "1000"]
        assert {(one.stat().st_uid, one.stat().st_gid) for one in (file, folder, folder / "made")} == {owner}
        entries = list_entries(harness, "workspace/file")
        assert first == entries[-len(first) :]
        assert len(entries) >= len(first) + 3, "two changes in the machine, and an undo"
        harness.run("undo", check=True)
        assert (file.read_text(), (folder / "made").exists()) == ("one\n", False)
        assert keeper.stop() == 0


def test_a_freehold_comes_back_after_its_engine_was_killed(tmp_path: Path) -> None:
    """The computer goes on without the engine. When that is back, so is a computer, with all files and no leftover."""
    with engine_process("docker") as engine:
        harness = FreeholdHarness(tmp_path)
        write_manifest(harness, f'backend = "docker"\nhost = "{engine.host}"')
        with harness.keeper() as keeper:
            keeper.next("ready")
            assert run_inside(harness, "echo before > file") == []
            engine.kill()
            assert run_inside(harness, "cat file; echo meanwhile >> file") == ["before"]
            engine.start()
            api = find_engine("docker", engine.host)

            def works_again() -> bool:
                return harness.run("run", "--", "grep", "-q", "meanwhile", "file").returncode == 0

            wait_until(lambda: len(api.ask("GET", "/containers/json")) == 1 and works_again())
            wait_until(lambda: len(api.ask("GET", "/containers/json?all=1")) == 1)
            assert keeper.stop() == 0
        assert api.ask("GET", "/containers/json?all=1") == []
