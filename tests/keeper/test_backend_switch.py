"""A whole Freehold whose computer is a container, and then is not."""

import json
from pathlib import Path

from tests.computer.engines import engine_process
from tests.support.condition import wait_until
from tests.support.freehold import ROOT, FreeholdHarness

from freehold.computer.engine.api import find_engine

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
