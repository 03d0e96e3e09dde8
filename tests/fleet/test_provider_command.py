"""The owner's commands that start and end a machine: real shells that leave things behind, talk too much, or never end."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.fleet import provider_command
from freehold.fleet.provider_command import run_provider_command

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def run(script: str, **variables: str) -> None:
    await run_provider_command(("/bin/sh", "-c", script), variables, ENVIRONMENT)


def list_session(leader: int) -> list[int]:
    """The processes of a session that live."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z":
            found.append(int(path.parent.name))
    return found


async def test_a_command_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(FreeholdError, match=r"/bin/sh has failed: exit code 3. no money"):
        await run("echo no money >&2; exit 3")
    with pytest.raises(FreeholdError, match="missing has failed: No such file"):
        await run_provider_command((str(tmp_path / "missing"),), {}, ENVIRONMENT)


async def test_what_a_command_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    """It holds the standard error of the command for as long as it lives."""
    os.mkfifo(tmp_path / "end")
    await run(f"(read line < {tmp_path}/end; echo done > {tmp_path}/done) & echo $$ > {tmp_path}/session")
    assert not (tmp_path / "done").exists()
    await asyncio.to_thread((tmp_path / "end").write_text, "now\n")
    await until((tmp_path / "done").exists)
    session = int((tmp_path / "session").read_text())
    await until(lambda: not list_session(session))


async def test_only_the_end_of_many_words_is_kept() -> None:
    with pytest.raises(FreeholdError) as caught:
        await run("yes 0123456789 | head -c 5000000 >&2; echo the end >&2; exit 1")
    assert caught.value.message.endswith("the end")
    assert len(caught.value.message) < 500


def write_endless(folder: Path) -> str:
    """A script that ignores its end, as do those that it has started. Its session is in a file once all are there."""
    return f"trap '' TERM HUP; sleep 1000 & sleep 1001 & echo $$ > {folder}/draft; mv {folder}/draft {folder}/pid; wait"


async def test_one_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    running = asyncio.ensure_future(run(write_endless(tmp_path)))
    await until((tmp_path / "pid").exists)
    session = int((tmp_path / "pid").read_text())
    assert len(list_session(session)) == 3
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not list_session(session))


async def test_one_that_does_not_end_in_time_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in (1.0, 10.0, 100.0):  # until it had the time to start the others
        monkeypatch.setattr(provider_command, "COMMAND_TIMEOUT", seconds)
        with pytest.raises(FreeholdError, match=f"did not end within {seconds:g} s"):
            await run(write_endless(tmp_path))
        if (tmp_path / "pid").exists():
            break
    session = int((tmp_path / "pid").read_text())
    await until(lambda: not list_session(session))


async def test_it_gets_the_environment_that_it_is_given_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-of-the-owner")
    await run('[ -z "$MODEL_KEY" ] && [ "$FREEHOLD_NODE" = small-1 ]', FREEHOLD_NODE="small-1")
