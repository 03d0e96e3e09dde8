"""Computers in containers: what goes beyond the contract that tests/computer/test_backend_conformance.py checks."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.computer.engines import HAS_CGROUPS_V2, running_engine
from tests.support.condition import until

from freehold.computer import Computer
from freehold.computer.contract.backend import Backend
from freehold.computer.engine.api import EngineApi, find_engine
from freehold.computer.engine.backend import ContainerBackend
from freehold.computer.escapes import BOMBS, ESCAPES, placed_bait, try_bomb, try_escape
from freehold.computer.registry import find_backend
from freehold.errors import FreeholdError

KEEPER = """
import asyncio, sys
from freehold.computer import Computer
from freehold.computer.registry import find_backend

async def main():
    async with Computer.start(backend=find_backend("docker", sys.argv[1])) as computer:
        print(computer.machine.pid, flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def docker() -> Iterator[Backend]:
    with running_engine("docker") as backend:
        yield backend


def api_of(backend: Backend) -> EngineApi:
    assert isinstance(backend, ContainerBackend)
    return backend._api


async def test_every_escape_attempt_is_refused_in_a_container(docker: Backend) -> None:
    async with Computer.start(backend=docker) as computer:
        with placed_bait() as bait:
            verdicts = [await try_escape(escape, bait, computer) for escape in ESCAPES]
            bombs = [bomb for bomb in BOMBS if bomb.name in ("memory-in-files", "fork", "disk")]
            verdicts += [await try_bomb(bomb, bait, computer, docker) for bomb in bombs]
    assert len(verdicts) > len(ESCAPES)
    assert {verdict.name: verdict.seen for verdict in verdicts if verdict.outcome != "refused"} == {}


async def test_a_container_ends_with_the_process_that_started_it(docker: Backend) -> None:
    """SIGKILL gives that process no chance to say goodbye, and an engine keeps containers whose clients are gone."""
    api = api_of(docker)
    keeper = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KEEPER, f"unix://{api.path}", stdout=subprocess.PIPE
    )
    assert keeper.stdout is not None
    pid = int(await keeper.stdout.readline())
    keeper.kill()
    await keeper.wait()

    async def is_gone() -> bool:
        return not Path(f"/proc/{pid}").exists() and not api.ask("GET", "/containers/json?all=1")

    await until(is_gone)


async def test_a_container_leaves_nothing_in_the_engine_and_on_the_host(docker: Backend, tmp_path: Path) -> None:
    async with Computer.start(backend=docker) as computer:
        assert (await computer.run("ls -A /run/freehold")).stdout == b"", "the socket is gone before anything runs"
    assert api_of(docker).ask("GET", "/containers/json?all=1") == []
    assert api_of(docker).ask("GET", "/volumes")["Volumes"] in (None, [])


async def test_the_environment_of_the_spec_is_all_there_is(docker: Backend) -> None:
    async with Computer.start(backend=docker) as computer:
        names = {line.partition("=")[0] for line in (await computer.run("env")).text.splitlines()}
        assert not names & {"HOSTNAME", "container"}


def test_an_engine_that_does_not_answer_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FreeholdError) as caught:
        find_engine("docker", f"unix://{tmp_path}/none").version()
    assert caught.value.code == "computer.no-isolation"
    assert "SANDBOX_HOST" in caught.value.hint


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:2375", "ssh://elsewhere", "unix://relative", "relative"])
def test_an_engine_elsewhere_is_refused(host: str) -> None:
    """Folders, descriptors and checks of the walls need the same machine."""
    with pytest.raises(FreeholdError) as caught:
        find_backend("docker", host)
    assert caught.value.code == "computer.bad-address"


@pytest.mark.skipif(HAS_CGROUPS_V2, reason="with control groups v2 podman builds every wall")
async def test_a_container_that_lacks_a_wall_is_not_started() -> None:
    """Podman makes no cgroup namespace with control groups v1. It is refused, and nothing of it is left."""
    with running_engine("podman", may_refuse=True) as backend:
        with pytest.raises(FreeholdError, match="cgroup namespace") as caught:
            async with Computer.start(backend=backend):
                pass
        assert caught.value.code == "computer.no-isolation"
        assert "control groups v2" in caught.value.hint
        assert api_of(backend).ask("GET", "/containers/json?all=1") == []


async def test_a_computer_outlives_a_killed_engine_and_can_be_stopped() -> None:
    with running_engine("docker") as backend:
        async with Computer.start(backend=backend) as computer:
            assert computer.machine is not None
            pid = api_of(backend).path.parent / "pid"
            os.kill(int(pid.read_text()), signal.SIGKILL)
            with contextlib.suppress(FreeholdError):
                await computer.run("true")
            await computer.machine.stop(1)
            assert await computer.machine.wait() != -1
