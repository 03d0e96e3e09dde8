"""The contract of `freehold.computer.contract.backend`, run against every backend.

A new backend is one line in BACKENDS. `ray` has the fleet of the run. Limits are tested where `isolation.limits` says that the backend enforces them.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.computer.engines import running_engine
from tests.computer.isolates.conftest import NODE_PLACE, node_folder
from tests.computer.isolates.language_cases import CASES, PRIVATE
from tests.computer.unsealed_backend import UnsealedBackend
from tests.computer.virtual_machines import micro_vm
from tests.computer.waits import alive
from tests.egress.proxy_harness import OK, FakeResolver, respond_once, run_proxy, run_server
from tests.support.condition import until

from freehold.computer import Computer, LimitEvent, Limits, Machine, launch
from freehold.computer.contract.backend import Backend, RemoteParts, find_host_pid, read_usage
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.computer.contract.report import SleepReport
from freehold.computer.contract.spec import MIB, ComputerSpec, Mount
from freehold.computer.contract.transport import SocketTransport
from freehold.computer.isolates.language import CodeLanguage
from freehold.computer.registry import find_backend
from freehold.errors import FreeholdError
from freehold.fleet.machine import RemoteMachine

BACKENDS: dict[str, Callable[[], AbstractContextManager[Backend]]] = {
    "bubblewrap": lambda: contextlib.nullcontext(find_backend("bubblewrap")),
    "docker": lambda: running_engine("docker"),
    "podman": lambda: running_engine("podman"),
    "microvm": micro_vm,
    "unsealed": lambda: contextlib.nullcontext(UnsealedBackend()),
}
SMALL = Limits(memory=192 * MIB, processes=64, tmp=16 * MIB)
ALLOCATE = "x = bytearray(400 * 1024 * 1024); print(len(x))"
DEADLINE = 60


@pytest.fixture(params=[*BACKENDS, "ray"], scope="module")
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "ray":
        yield request.getfixturevalue("fleet").backend()
        return
    with BACKENDS[request.param]() as started:
        yield started


@pytest.fixture
def spec(tmp_path: Path) -> ComputerSpec:
    return make_spec(tmp_path, "one")


def make_spec(folder: Path, name: str) -> ComputerSpec:
    for part in ("workspace", "home"):
        (folder / name / part).mkdir(parents=True)
    return ComputerSpec(folder / name / "workspace", folder / name / "home", limits=SMALL)


@asynccontextmanager
async def running(
    backend: Backend, spec: ComputerSpec, path: Path, deadline: float = 3 * DEADLINE
) -> AsyncIterator[tuple[Machine, Computer]]:
    """A machine and a computer that is connected to it, as the keeper and the gateway have them."""
    async with asyncio.timeout(deadline):  # the first virtual machine boots, emulated, on a busy host
        machine = await launch(spec, path, backend)
        try:
            async with Computer.connect(machine.transport, limits=spec.limits) as computer:
                yield machine, computer
        finally:
            await machine.stop(0)


async def bring_back(machine: Machine) -> None:
    """A machine on another host has copies of the folders."""
    if isinstance(machine, RemoteParts):
        await machine.fetch_files()


async def test_it_starts_and_runs_commands(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        assert machine.isolation.backend == backend.name
        assert (await computer.run("echo hello")).stdout == b"hello\n"
        await computer.files.write("made.txt", b"inside")
        await bring_back(machine)
        assert (spec.workspace / "made.txt").read_bytes() == b"inside"


async def test_clients_also_reach_it_by_the_path(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    """Another process knows the path only."""
    async with (
        running(backend, spec, tmp_path / "link"),
        Computer.connect(SocketTransport(tmp_path / "link")) as other,
    ):
        assert (await other.run("echo hello")).stdout == b"hello\n"


async def test_only_its_own_user_may_open_the_socket(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    async with running(backend, spec, tmp_path / "link"):
        assert (tmp_path / "link").stat().st_mode & 0o777 == 0o600
        assert [one.name for one in tmp_path.glob("link*")] == ["link"]


async def test_stop_gives_programs_time_to_end(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    """Within the grace a program that handles SIGTERM can write its state."""
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        process = await computer.spawn("trap 'echo saved > saved; exit' TERM; echo ready; while :; do sleep 0.05; done")
        assert await process.stdout.read() == b"ready\n"
        await machine.stop(grace=DEADLINE)
        assert await machine.wait() == 0
        assert (spec.workspace / "saved").read_text() == "saved\n"


async def test_stop_kills_what_is_left_after_the_grace(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        process = await computer.spawn("trap '' TERM; echo ready; while :; do sleep 0.05; done")
        assert await process.stdout.read() == b"ready\n"
        async with asyncio.timeout(DEADLINE):
            await machine.stop(grace=0.2)
        assert await machine.wait() != 0
        await machine.stop()  # idempotent


async def test_a_machine_stopped_right_after_its_start_ends_in_order(
    backend: Backend, spec: ComputerSpec, tmp_path: Path
) -> None:
    """The signal must not be lost because the guest was not ready for it."""
    machine = await launch(spec, tmp_path / "link", backend)
    await machine.stop(grace=DEADLINE)
    assert await machine.wait() == 0


async def test_the_death_of_the_guest_is_seen(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    """SIGKILL to the guest ends the machine and everything inside, and every waiter is told."""
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        await computer.run("setsid sleep 1000 >/dev/null 2>&1 &")
        pid = machine.guest_pid if isinstance(machine, RemoteMachine) else find_host_pid(machine)  # its node is here
        assert pid is not None, "this backend needs another way to kill its guest in this test"
        os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            statuses = await asyncio.gather(machine.wait(), machine.wait())
            assert statuses[0] == statuses[1] != 0
        with pytest.raises(FreeholdError):
            async with asyncio.timeout(DEADLINE):
                await computer.run("true")


async def test_a_lost_link_is_made_again(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    """The machine does not notice; the guest ends what ran on the link; terminals stay."""
    async with running(backend, spec, tmp_path / "link") as (_, computer):
        terminal = await computer.terminal(["/bin/sh"])
        process = await computer.spawn(["sleep", "1000"])
        computer._connection.link.cut(FreeholdError("link.lost", "cut by the test"))
        with pytest.raises(FreeholdError):
            await process.wait()
        await computer.wait_connected()
        assert (await computer.run("echo back")).stdout == b"back\n"
        assert [one.id for one in await computer.terminals()] == [terminal.id]

        async def ended() -> bool:
            return not [one for one in await alive(computer) if one.name == "sleep"]

        await until(ended)


async def test_usage_is_measured_or_said_to_be_unknown(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        await computer.run("true")
        usage = await read_usage(machine)
        assert usage.memory is None or usage.memory > 0
        assert usage.processes is None or usage.processes >= 1
    assert all(value is None for value in vars(await read_usage(machine)).values())


async def test_an_enforced_memory_limit_is_held_and_reported(
    backend: Backend, spec: ComputerSpec, tmp_path: Path
) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        if "memory" not in machine.isolation.limits:
            return
        events: list[LimitEvent] = []
        unsubscribe = machine.subscribe(events.append)
        assert not (await computer.run(["/usr/bin/python3", "-c", ALLOCATE])).ok
        await read_usage(machine)
        assert any(event.kind == "reached" and event.setting == "computer.limits.memory" for event in events), events
        unsubscribe()
        unsubscribe()
        assert (await computer.run("echo fine")).stdout == b"fine\n"


async def test_an_enforced_process_limit_is_held(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        if "processes" not in machine.isolation.limits:
            return
        ran = await computer.run("for i in $(seq 200); do sleep 5 & done; wait", timeout=10)
        assert not ran.ok or b"fork" in ran.stderr.lower() or b"resource" in ran.stderr.lower()


async def test_last_words_hold_the_end_of_stderr(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    """The guest reports on stderr why it cut a link."""
    async with running(backend, spec, tmp_path / "link") as (machine, _):
        _, writer = await asyncio.open_unix_connection(tmp_path / "link")
        writer.write(b"this is no link" * 10)

        async def reported() -> bool:
            return "link" in machine.last_words()

        await until(reported)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_two_machines_have_nothing_in_common(backend: Backend, tmp_path: Path) -> None:
    one, two = make_spec(tmp_path, "one"), make_spec(tmp_path, "two")
    async with (
        running(backend, one, tmp_path / "link-1") as (first, computer),
        running(backend, two, tmp_path / "link-2") as (second, other),
    ):
        await computer.files.write("name", b"one")
        await other.files.write("name", b"two")
        await bring_back(first)
        await bring_back(second)
        assert (one.workspace / "name").read_bytes() == b"one"
        assert (two.workspace / "name").read_bytes() == b"two"
        process = await computer.spawn(["sleep", "1000"])
        assert not [one for one in await other.processes() if one.name == "sleep"]
        await second.stop(0)
        assert (await computer.run("cat name")).stdout == b"one"
        assert process.exit is None
        await read_usage(first)


async def test_an_unknown_image_is_refused(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    with pytest.raises(FreeholdError) as caught:
        await launch(replace(spec, image="/nowhere/such-image"), tmp_path / "link", backend)
    assert caught.value.code == "computer.unknown-image"
    assert not list(tmp_path.glob("link*"))


async def test_a_mount_is_shown_inside(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    if backend.name == "unsealed":
        return  # it has the file system of the host
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "file").write_text("from the host")
    with_mount = replace(spec, mounts=(Mount(tmp_path / "shared", "/mnt/shared"),))
    async with running(backend, with_mount, tmp_path / "link") as (_, computer):
        assert await computer.files.read("/mnt/shared/file") == b"from the host"
        assert not (await computer.run("echo x > /mnt/shared/file")).ok


@pytest.mark.parametrize("pause", [0.0, 0.005, 0.02, 0.04])
async def test_a_cancelled_start_leaves_nothing(
    backend: Backend, spec: ComputerSpec, tmp_path: Path, pause: float
) -> None:
    """No socket, and no process: the check after every test would find one."""

    async def start_and_stay() -> None:
        async with running(backend, spec, tmp_path / "link"):
            await asyncio.sleep(DEADLINE)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(start_and_stay(), pause)
    assert not list(tmp_path.glob("link.*"))


def test_an_unknown_backend_is_refused_with_the_valid_names() -> None:
    with pytest.raises(FreeholdError) as caught:
        find_backend("chroot")
    assert caught.value.code == "computer.unknown-backend"
    assert "bubblewrap" in caught.value.hint


COUNT = "import time\nn = 0\nwhile True:\n    n += 1\n    print(n, flush=True)\n    time.sleep(0.01)"


@asynccontextmanager
async def asleep(machine: Machine) -> AsyncIterator[SleepReport | None]:
    """The machine sleeps inside. None if its backend says that it cannot, and then it has not changed."""
    if machine.isolation.backend == "unsealed":
        with pytest.raises(FreeholdError, match="freezer"):
            await machine.sleep()
        assert not machine.is_asleep
        yield None
        return
    report = await machine.sleep()
    assert machine.is_asleep
    yield report
    await machine.wake()
    assert not machine.is_asleep


async def test_everything_goes_on_after_a_sleep(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    """A process, a terminal and their variables are as they were. Asleep they use no processor."""
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        terminal = await computer.terminal(["/bin/sh"])
        await terminal.write(b"word=kept\n")
        async with await computer.spawn(["/usr/bin/python3", "-c", COUNT]) as counter:
            lines = counter.stdout.lines()
            before = int(await anext(lines))
            async with asleep(machine) as report:
                if report is not None:
                    used = (await read_usage(machine)).cpu_seconds
                    assert (await read_usage(machine)).cpu_seconds == used
            assert int(await anext(lines)) == before + 1
            await terminal.write(b"echo [$word]\n")
            await terminal.read_until(b"[kept]")
            assert counter.exit is None


async def test_what_is_sent_to_a_sleeping_machine_is_answered_when_it_wakes(
    backend: Backend, spec: ComputerSpec, tmp_path: Path
) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        async with asleep(machine):
            answers = [asyncio.ensure_future(computer.run(f"echo {number}")) for number in range(20)]
            await asyncio.sleep(0)
        assert [int((await one).stdout) for one in answers] == list(range(20))


async def test_a_sleeping_machine_can_be_stopped(backend: Backend, spec: ComputerSpec, tmp_path: Path) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        process = await computer.spawn("trap 'echo saved > saved; exit' TERM; echo ready; while :; do sleep 0.05; done")
        assert await process.stdout.read() == b"ready\n"
        with contextlib.suppress(FreeholdError):
            await machine.sleep()
        await machine.stop(grace=DEADLINE)
        assert (spec.workspace / "saved").read_text() == "saved\n"


async def test_sleep_and_wake_can_be_repeated_and_interrupted(
    backend: Backend, spec: ComputerSpec, tmp_path: Path
) -> None:
    async with running(backend, spec, tmp_path / "link") as (machine, computer):
        await machine.wake()
        for _ in range(3 if backend.name == "microvm" else 10):
            sleeping = asyncio.ensure_future(machine.sleep())
            await asyncio.sleep(0)
            await machine.wake()
            with contextlib.suppress(FreeholdError):
                await sleeping
                await machine.sleep()
            await machine.wake()
            assert (await computer.run("echo awake")).stdout == b"awake\n"


async def test_isolates_of_every_language_run_behind_their_walls(
    backend: Backend, spec: ComputerSpec, tmp_path: Path
) -> None:
    """One-shot and in a context. A file that is not granted, a program and a connection are refused."""
    if backend.name == "unsealed":
        return  # it has no mounts, with which Node and wasmtime come
    with_node = replace(spec, mounts=(Mount(node_folder(), NODE_PLACE),))
    async with running(backend, with_node, tmp_path / "link", 4 * DEADLINE) as (_, computer):
        await computer.files.write(PRIVATE, b"not granted")
        async with asyncio.TaskGroup() as group:
            for name, case in CASES.items():
                group.create_task(case.check(CodeLanguage(computer._connection, name)), name=name)


FETCH = """
import sys, urllib.error, urllib.request
try: print(urllib.request.urlopen(sys.argv[1]).read().decode())
except urllib.error.HTTPError as error: print(error.code)
except OSError as error: print(type(error.reason).__name__)
"""


async def test_the_egress_port_leads_to_the_hosts_that_are_allowed_and_nothing_else_leads_out(
    backend: Backend, spec: ComputerSpec, tmp_path: Path
) -> None:
    """By the proxy that every program inside is told. The server of this machine is on no port of the computer."""
    if backend.name == "unsealed":
        return  # it has the ports and the network of the host
    names = FakeResolver()
    names.set("example.org", ["127.0.0.1"])
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
        running(backend, spec, tmp_path / "link") as (_, computer),
        await computer.listen(EGRESS_PORT, proxy.egress.handle),
    ):

        async def fetch(host: str) -> str:
            return (await computer.run(["/usr/bin/python3", "-c", FETCH, f"http://{host}:{server.port}/"])).text.strip()

        assert await fetch("example.org") == "hello"
        assert await fetch("example.com") == "403"
        assert await fetch("127.0.0.1") == "ConnectionRefusedError"
        assert len(server.heads) == 1
