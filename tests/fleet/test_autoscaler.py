"""Ray's own autoscaler with a real Ray: machines come for computers that wait, join by a code, and go when they idle."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fleet.fleet_work import find_process, remote
from tests.support.condition import until
from tests.support.fleet import START_TIMEOUT, RunningFleet, running_fleet

from freehold.computer import Computer, Limits
from freehold.computer.contract.spec import MIB

pytestmark = pytest.mark.shared_processes
WHOLE = Limits(cpus=2, memory=256 * MIB)
SETTINGS = """
[fleet.autoscaler]
start = {start}
stop = {stop}
idle = "5s"
[fleet.autoscaler.machines.small]
cpus = 2
memory = "2GiB"
max = 2
labels = {{region = "attic"}}
"""


@contextlib.contextmanager
def ended_machines(folder: Path) -> Iterator[None]:
    """What a test that failed has left behind."""
    try:
        yield
    finally:
        for path in folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("made")  # the path of a socket is short, and that of a test is not
    with ended_machines(folder):
        yield folder


@pytest.fixture(scope="module")
def growing(provider: Path) -> Iterator[RunningFleet]:
    """A head without nodes."""
    commands = {
        do: json.dumps([sys.executable, "-m", "tests.fleet.loopback_provider", do, str(provider)])
        for do in ("start", "stop")
    }
    with running_fleet(0, settings=SETTINGS.format(**commands)) as fleet:
        yield fleet


JUNK = """
import json, socket
for line in ("[]", "7", "null", "{", '{"do": []}', '{"do": "launch"}', '{"do": "list", "more": [[[]]]}', "[" * 60000):
    with socket.socket(socket.AF_UNIX) as door:
        door.connect("/run/ray/machines.sock")
        door.sendall(line.encode() + b"\\n")
        door.settimeout(60)
        answer = door.makefile().readline()
        assert not answer or "error" in json.loads(answer), (line[:40], answer)
"""


async def test_machines_come_for_what_waits_and_go_when_they_idle(growing: RunningFleet, provider: Path) -> None:
    """A command that fails is told and tried again; a wish that no kind can fulfil starts nothing."""
    (provider / "refuse").write_text("no money is left")
    impossible = asyncio.ensure_future(Computer.start(on=f"{growing.place}?region=moon", limits=WHOLE)._open())
    starts = [
        asyncio.ensure_future(Computer.start(on=f"{growing.place}?region=attic", limits=WHOLE)._open()) for _ in "ab"
    ]
    try:

        async def has_trouble() -> bool:
            return "no money is left" in (await growing.status_now()).trouble

        await until(has_trouble, START_TIMEOUT)
        (provider / "refuse").unlink()
        computers = await asyncio.gather(*starts)
        status = await growing.status_now()
        assert {machine.state for machine in status.machines} == {"joined"}
        assert {remote(one).node for one in computers} == {machine.name for machine in status.machines}
        assert [node.labels["region"] for node in status.nodes] == ["attic", "attic"]
        assert status.trouble == ""
        for computer in computers:
            assert (await computer.run("echo here")).stdout == b"here\n"
        await computers[0].close()
        kept = remote(computers[1]).node

        async def is_one_left() -> bool:
            return [machine.name for machine in (await growing.status_now()).machines] == [kept]

        await until(is_one_left, START_TIMEOUT)
        assert (await computers[1].run("echo still here")).stdout == b"still here\n"
        assert [path.stem for path in provider.glob("*.pid")] == [kept]
        assert [node.name for node in (await growing.status_now()).nodes] == [kept]
        await computers[1].close()

        async def is_none_left() -> bool:
            return not (await growing.status_now()).machines

        await until(is_none_left, START_TIMEOUT)
        assert list(provider.glob("*.pid")) == []
        assert [wait.reason for wait in (await growing.status_now()).waiting] == [
            "No node with region=moon is connected"
        ]
    finally:
        impossible.cancel()
        await asyncio.gather(impossible, *starts, return_exceptions=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters the sandbox of Ray")
async def test_a_head_goes_on_whatever_a_task_of_ray_sends_to_its_autoscaler(growing: RunningFleet) -> None:
    """The head that was asked is the one that goes on."""
    pid = find_process(growing, "head", "gcs_server")
    words = ["nsenter", "-t", str(pid), "-m", "-p", "--", sys.executable, "-c", JUNK]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (await growing.status_now()).is_ready
    assert growing.head is not None
    assert growing.head.poll() is None
