"""Computers in containers: what goes beyond the contract that tests/computer/test_backend_conformance.py checks."""

import asyncio
import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.computer.engines import HAS_CGROUPS_V2, running_engine
from tests.support.condition import until

from freehold.computer import Computer, launch
from freehold.computer.contract.backend import Backend
from freehold.computer.contract.spec import ComputerSpec, Mount
from freehold.computer.engine import api as engine_api
from freehold.computer.engine import container
from freehold.computer.engine.api import EngineApi, EngineRefused, find_engine
from freehold.computer.engine.backend import ContainerBackend
from freehold.computer.engine.container import count_filters, find_image
from freehold.computer.engine.filter_profile import make_filter_profile
from freehold.computer.engine.handover import Handover
from freehold.computer.engine.leftovers import LINK, OWNER, describe_owner, make_container_labels
from freehold.computer.engine.machine import ContainerMachine
from freehold.computer.engine.orphan_guard import OrphanedContainerGuard
from freehold.computer.escapes import BOMBS, ESCAPES, placed_bait, try_bomb
from freehold.computer.registry import find_backend
from freehold.doctor import run_doctor
from freehold.errors import FreeholdError
from freehold.home import find_home

DEADLINE = 60.0
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


async def test_every_escape_attempt_is_refused_in_a_container(docker: Backend, tmp_path: Path) -> None:
    """`freehold doctor` finds the engine of the manifest, and tries what it has."""
    home = find_home(tmp_path)
    home.manifest.write_text(f'[computer]\nbackend = "docker"\nhost = "unix://{api_of(docker).path}"\n')
    report = await run_doctor(home, quick=True, on_event=lambda event: None)
    assert report.isolation is not None
    assert report.isolation.backend == "docker"
    assert {verdict.name: verdict.seen for verdict in report.failures} == {}
    assert (report.ok, len(report.attempts)) == (True, len(ESCAPES))
    async with Computer.start(backend=docker) as computer:
        with placed_bait() as bait:
            bombs = [bomb for bomb in BOMBS if bomb.name in ("memory-in-files", "fork", "disk")]
            verdicts = [await try_bomb(bomb, bait, computer, docker) for bomb in bombs]
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


class DishonestEngine:
    """Answers every request with the same bytes, as slowly as asked, or not at all."""

    def __init__(self, folder: Path, answer: bytes, pause: float = 0.0) -> None:
        self._answer, self._pause = answer, pause
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "engine.sock"))
        self._listener.listen()
        self._ended = threading.Event()
        self.api = EngineApi("docker", folder / "engine.sock")
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "DishonestEngine":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self.api.path))
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._ended.is_set():
            client, _ = self._listener.accept()
            with client, contextlib.suppress(OSError):
                for byte in self._answer if self._pause else (self._answer,):
                    client.sendall(bytes([byte]) if isinstance(byte, int) else byte)
                    if self._ended.wait(self._pause):
                        return
                # Closed before the request has come, the connection would be reset. How long that takes is up to the client.
                client.settimeout(0.2)
                while not self._ended.is_set():
                    with contextlib.suppress(TimeoutError):
                        if not client.recv(65536):
                            break


def answer_with(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize("pause", [1000.0, 0.05], ids=["silent", "a byte now and then"])
def test_an_engine_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float) -> None:
    monkeypatch.setattr(engine_api, "PROBE_TIMEOUT", 0.5)
    with (
        DishonestEngine(tmp_path, answer_with(b"x" * 100_000), pause) as engine,
        pytest.raises(FreeholdError) as caught,
    ):
        engine.api.version()
    assert caught.value.code == "computer.no-isolation"
    assert "Look at the log of the engine" in caught.value.hint or "cannot be understood" in caught.value.message


@pytest.mark.parametrize(
    "body", [b"[]", b"null", b"not json", b'{"State": null}', b'{"State": {"Pid": "x"}}', b"[" * 100_000], ids=range(6)
)
def test_an_answer_of_another_shape_is_an_error_that_names_the_engine(tmp_path: Path, body: bytes) -> None:
    with DishonestEngine(tmp_path, answer_with(body)) as engine, pytest.raises(FreeholdError) as caught:
        engine.api.read_state("freehold-1")
    assert caught.value.code == "computer.no-isolation"
    assert str(tmp_path) in caught.value.message


def test_only_an_unknown_image_is_called_unknown(tmp_path: Path) -> None:
    """An engine that is out of order says nothing about its images."""
    with DishonestEngine(tmp_path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") as engine:
        assert engine.api.read_image("debian") is None
    engine.api.path.unlink()
    with (
        DishonestEngine(tmp_path, b"HTTP/1.1 500 Out of order\r\nContent-Length: 0\r\n\r\n") as engine,
        pytest.raises(EngineRefused),
    ):
        engine.api.read_image("debian")


def test_a_container_is_removed_although_its_engine_is_just_starting(tmp_path: Path) -> None:
    """The guard tries again after an error, and after a connection that ends without an answer."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "engine.sock"))
        listener.listen()
        listener.settimeout(DEADLINE)
        guard = OrphanedContainerGuard(EngineApi("docker", tmp_path / "engine.sock"), "freehold-1")
        try:
            assert guard._process.stdin is not None
            guard._process.stdin.close()
            for answer in (b"HTTP/1.1 500 Starting\r\n\r\n", b"", b"HTTP/1.1 204 No Content\r\n\r\n"):
                client, _ = listener.accept()
                with client:
                    assert client.recv(65536).startswith(b"DELETE /containers/freehold-1?")
                    client.sendall(answer)
            assert guard._process.wait(DEADLINE) == 0
        finally:
            guard.close()


async def test_the_kernel_confirms_the_filters_of_a_guest_before_it_is_used(docker: Backend) -> None:
    """The engine's short profile, and both filters of pid 1."""
    before = count_filters(os.getpid())
    assert before is not None
    async with Computer.start(backend=docker) as computer:
        assert isinstance(computer.machine, ContainerMachine)
        assert (count_filters(computer.machine.pid) or 0) >= before + 3


async def test_a_kernel_that_does_not_count_filters_gets_the_long_profile(
    docker: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "count_filters", lambda pid: None)
    async with Computer.start(backend=docker) as computer:
        assert (await computer.run(["true"])).ok
        names = [one.name for one in api_of(docker).list_containers("freehold=computer")]
        described = [api_of(docker).ask("GET", f"/containers/{name}/json") for name in names]
    wanted = f"seccomp={make_filter_profile()}"
    assert any(wanted in one["HostConfig"]["SecurityOpt"] for one in described)


def test_a_guest_without_its_filters_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "START_TIMEOUT", 0.05)
    with subprocess.Popen(["sleep", "60"]) as guest:
        process = os.pidfd_open(guest.pid)
        try:
            with pytest.raises(FreeholdError, match="instead of"):
                container._await_filters(guest.pid, process, 1000)
            guest.kill()
            monkeypatch.setattr(container, "START_TIMEOUT", DEADLINE)
            with pytest.raises(FreeholdError, match="ended as soon as"):
                container._await_filters(guest.pid, process, 1000)
        finally:
            guest.kill()
            os.close(process)


def test_the_version_of_an_engine_is_what_its_answers_say(docker: Backend) -> None:
    api = api_of(docker)
    assert api.version() == api.ask("GET", "/version")["Version"]


@pytest.mark.parametrize("server", [b"", b"Server: \r\n", b"Server: Docker\r\n"], ids=["none", "empty", "no number"])
def test_an_engine_that_does_not_say_its_version_has_an_unknown_one(tmp_path: Path, server: bytes) -> None:
    with DishonestEngine(tmp_path, b"HTTP/1.1 200 OK\r\n%sContent-Length: 2\r\n\r\nOK" % server) as engine:
        assert engine.api.version() == "unknown"


def test_a_process_that_the_engine_did_not_start_gets_no_link(tmp_path: Path) -> None:
    """An engine that lies about the pid: the kernel says who really asks."""
    handover = Handover(os.getuid())
    with socket.socket(socket.AF_UNIX) as stranger, socket.socket(socket.AF_UNIX) as listener:
        stranger.connect(str(handover.folder / "handover"))
        with pytest.raises(FreeholdError, match="Another process than the guest"):
            handover.give(os.getppid(), [listener.fileno()], [])
        stranger.settimeout(DEADLINE)
        assert stranger.recv(1) == b""
    handover.close()


def test_a_guest_that_ends_at_once_is_not_waited_for(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    handover = Handover(os.getuid())
    with pytest.raises(FreeholdError, match="ended before it took its link"):
        handover.give(ended.pid, [], [])
    handover.close()


def describe_dead_process() -> str:
    dead = subprocess.Popen(["true"])
    owner = describe_owner(dead.pid)
    dead.wait()
    return owner


async def test_leftovers_of_a_killed_freehold_are_removed_and_nobody_elses(docker: Backend, tmp_path: Path) -> None:
    """The next start removes what a dead process left, and what served the same link; not what lives or is unknown."""
    api = api_of(docker)
    image = find_image(api, None)
    link = tmp_path / "link"
    mine = make_container_labels(link)
    elsewhere = re.sub(r" \d+ ", " 1 ", mine[OWNER], count=1)
    containers = {
        "freehold-000000000001": mine,  # this link: a computer that could not be removed
        "freehold-000000000002": {**mine, LINK: "/elsewhere", OWNER: describe_dead_process()},
        "freehold-000000000003": {**mine, LINK: "/elsewhere"},  # a computer beside this one
        "freehold-000000000004": {**mine, OWNER: elsewhere},  # another pid namespace
        "freehold-000000000005": {"freehold": "computer"},
        "freehold-000000000006": {**mine, "freehold": "other"},
        "postgres": mine,
    }
    for name, labels in containers.items():
        api.create(name, {"Image": image, "Cmd": ["x"], "Labels": labels})
    try:
        for folder in ("workspace", "home"):
            (tmp_path / folder).mkdir()
        machine = await launch(ComputerSpec(tmp_path / "workspace", tmp_path / "home"), link, docker)
        await machine.stop(0)
        left = {one["Names"][0][1:] for one in api.ask("GET", "/containers/json?all=1")}
        assert left == set(containers) - {"freehold-000000000001", "freehold-000000000002"}
    finally:
        for name in containers:
            api.remove(name)


async def test_an_image_that_declares_volumes_is_refused(docker: Backend) -> None:
    """The engine would mount them writable, without a limit."""
    api = api_of(docker)
    api.create("maker", {"Image": find_image(api, None), "Cmd": ["x"], "Volumes": {"/usr": {}, "/data": {}}})
    api.ask("POST", "/commit?container=maker&repo=localhost/hostile&tag=1")
    api.remove("maker")
    with pytest.raises(FreeholdError, match=r"declares volumes.*/data, /usr") as caught:
        async with Computer.start(backend=docker, image="localhost/hostile:1"):
            pass
    assert caught.value.code == "computer.unknown-image"


HOSTILE_PYTHON = """#!/mnt/host/bin/python3 -I
import sys
program, sys.argv = sys.argv[5], [*sys.argv[4:5], *sys.argv[6:]]
allow_all = (8).to_bytes(4, "little") + bytes([6, 0, 0, 0]) + (0x7FFF0000).to_bytes(4, "little")
start, found, end = program.partition("while data:")
assert found
exec(f"{start}data = {allow_all!r}\\n{found}{end}")
"""
FORBIDDEN_ACTS = """
import ctypes, fcntl, os, resource, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *words):
    if getattr(libc, name)(*words) < 0:
        raise OSError(ctypes.get_errno(), name)
file = os.open("/workspace/file", os.O_RDWR | os.O_CREAT)
acts = {
    "unshare": lambda: call("unshare", 0x10000000),
    "clone": lambda: call("syscall", {"x86_64": 56}.get(os.uname().machine, 220), 0x10000000 | 17, 0, 0, 0, 0) or os.getpid() == 1 and os._exit(0),
    "mount": lambda: call("mount", b"x", b"/tmp", b"tmpfs", 0, None),
    "AF_ALG": lambda: socket.socket(38, socket.SOCK_SEQPACKET),
    "AF_PACKET": lambda: socket.socket(17, socket.SOCK_RAW),
    "fallocate": lambda: call("fallocate", file, 0, ctypes.c_long(0), ctypes.c_long(4096)),
    "reserve": lambda: fcntl.ioctl(file, 0x40305828, bytes(48)),
    "lease": lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK),
    "core": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
}
for name, act in acts.items():
    try:
        act()
    except (OSError, ValueError):  # Python makes the second of EPERM for a limit
        pass
    else:
        print(name, "was not refused")
os.mkfifo("/tmp/fifo")
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    socket.socket(family, socket.SOCK_DGRAM).close()
print([line.split()[1] for line in open("/proc/1/status") if line.startswith("Seccomp")])
"""


def pack_hostile_root() -> bytes:
    """An image whose programs are this machine's, but for the one that is to apply our filters."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"mnt/host/{name}"
            tar.addfile(link)
        for name in ("usr", "usr/bin", "mnt", "mnt/host", "tmp", "run", "var"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name in ("tmp", "run") else 0o755
            tar.addfile(folder)
        python = tarfile.TarInfo("usr/bin/python3")
        python.mode, python.size = 0o755, len(HOSTILE_PYTHON)
        tar.addfile(python, io.BytesIO(HOSTILE_PYTHON.encode()))
    return packed.getvalue()


async def test_an_image_cannot_leave_out_the_filter_of_system_calls(docker: Backend) -> None:
    """Its python3 drops the filters that it is given, and applies one that allows everything."""
    api_of(docker).import_image(pack_hostile_root(), "localhost/hostile", "2")
    mounts = [Mount(Path("/usr"), "/mnt/host")]
    async with Computer.start(backend=docker, image="localhost/hostile:2", mounts=mounts) as computer:
        done = await computer.run(["/mnt/host/bin/python3", "-c", FORBIDDEN_ACTS])
        assert (done.text, done.stderr) == ("['2', '2']\n", b""), "the filter of the engine, and its own"
        assert computer.machine is not None
        assert "filtered system calls" in computer.machine.isolation.walls


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


async def test_a_computer_is_stopped_although_its_engine_hangs(
    docker: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its programs get their time to end, and the next start removes what the engine still has of it."""
    api = api_of(docker)
    for folder in ("workspace", "home"):
        (tmp_path / folder).mkdir()
    spec = ComputerSpec(tmp_path / "workspace", tmp_path / "home")
    machine = await launch(spec, tmp_path / "link", docker)
    monkeypatch.setattr(engine_api, "PROBE_TIMEOUT", 0.5)
    monkeypatch.setattr(engine_api, "REMOVE_TIMEOUT", 0.5)
    engine = int((api.path.parent / "pid").read_text())
    os.kill(engine, signal.SIGSTOP)
    try:
        async with asyncio.timeout(DEADLINE):
            await machine.stop(grace=DEADLINE / 2)
    finally:
        os.kill(engine, signal.SIGCONT)
    monkeypatch.undo()
    machine = await launch(spec, tmp_path / "link", docker)
    # The engine may be busy with the request to remove it that it got while it hung.
    await until(lambda: len(api.list_containers("freehold=computer")) == 1)
    await machine.stop(0)


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
