"""Remote mounts, with real servers and real computers: used, killed, hung, and attacked by their servers."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.computer.engines import running_engine
from tests.computer.remote_servers import (
    KEY,
    RCLONE,
    USER,
    StorageServer,
    dav_entry,
    dav_listing,
    hostile_server,
    http_answer,
    storage_server,
)
from tests.computer.virtual_machines import micro_vm
from tests.support.condition import until
from tests.support.freehold import ROOT
from tests.support.processes import find_descendants

from freehold.computer import Computer, Mount, launch
from freehold.computer.contract.backend import Backend, Machine
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.mounts import helper_inside, helper_process, remote_mount
from freehold.computer.mounts.helper_inside import CONTROL
from freehold.computer.mounts.helper_process import HELPER_UID
from freehold.computer.mounts.mount_point import MountPoints
from freehold.computer.mounts.rclone_remote import RcloneRemote, RemoteFolder
from freehold.computer.mounts.remote_mount import RemoteMount, RemoteMountSettings, ServerFinder, relay_to_servers
from freehold.computer.registry import find_backend
from freehold.errors import FreeholdError

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount here"),
]
COMPUTER_UID = 64242


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, StorageServer]]:
    with contextlib.ExitStack() as stack:
        yield {
            kind: stack.enter_context(storage_server(kind, tmp_path_factory.mktemp(kind))) for kind in ("s3", "webdav")
        }


def make_folder(server: StorageServer, kind: str | None = None, *, key: str = KEY) -> RemoteFolder:
    if kind == "rclone":
        password = subprocess.run([RCLONE, "obscure", key], capture_output=True, text=True, check=True).stdout.strip()
        dav = {"type": "webdav", "url": server.url, "user": USER, "pass": password}
        remotes = {"dav": dav, "docs": {"type": "alias", "remote": "dav:bucket"}}
        return RemoteFolder("rclone", "docs:", hosts=(server.url,), key=json.dumps(remotes))
    assert server.kind in ("s3", "webdav")
    return RemoteFolder("s3" if server.kind == "s3" else "webdav", "bucket", server.url, user=USER, key=key)


class MountedComputer:
    """A computer that sees one remote folder at /mnt/remote."""

    def __init__(self, computer: Computer, machine: Machine, mount: RemoteMount, settings: RemoteMountSettings) -> None:
        self.computer = computer
        self.machine = machine
        self.mount = mount
        self.settings = settings

    async def run(self, command: str) -> str:
        """What it prints. Fails if the command fails."""
        result = await self.computer.run(command)
        assert result.ok, result
        return result.stdout.decode()

    async def fail(self, command: str) -> str:
        result = await self.computer.run(command)
        assert not result.ok, result
        return result.stderr.decode()

    async def until_runs(self, command: str) -> str:
        """What it prints, once it succeeds: the helper remembers a listing for some seconds."""

        async def succeed() -> bytes:
            result = await self.computer.run(command)
            return result.stdout if result.ok else b""

        return (await until(succeed)).decode()

    async def until_state(self, state: str) -> str:
        await until(lambda: self.mount.state.state == state)
        return self.mount.state.words

    async def until_restarted(self, old: int) -> None:
        """Until it is ready with another helper."""
        await until(lambda: self.mount.state.state == "ready" and self.mount.state.pid != old)

    @property
    def helper(self) -> int:
        assert self.mount.state.pid is not None
        return self.mount.state.pid

    @property
    def rclone(self) -> int:
        """The innermost process of the helper."""
        (pid,) = (
            pid for pid, command in find_descendants(self.helper).items() if command.startswith("/run/bin/rclone")
        )
        return pid


@asynccontextmanager
async def mounted(
    folder: RemoteFolder,
    tmp_path: Path,
    backend: Backend | None = None,
    *,
    make_servers: Callable[[RemoteMountSettings], ServerFinder] = lambda _: relay_to_servers,
    **changes: object,
) -> AsyncIterator[MountedComputer]:
    points = MountPoints(tmp_path / "points")
    settings = RemoteMountSettings(points.folder(0), points.lock, tmp_path / "cache", COMPUTER_UID, writable=True)
    settings = replace(settings, **{"timeout": 20.0, "recheck": 6.0, **changes})  # type: ignore[arg-type]
    for part in ("workspace", "home"):
        (tmp_path / part).mkdir(exist_ok=True)
    spec = ComputerSpec(
        tmp_path / "workspace", tmp_path / "home", mounts=(Mount(points.folder(0), "/mnt/remote", follows=True),)
    )
    mount = RemoteMount(settings, lambda: folder, find_servers=make_servers(settings))
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(points.remove)
        points.prepare([0])
        machine = await launch(spec, tmp_path / "link", backend or find_backend("bubblewrap"))
        stack.push_async_callback(machine.stop, 0)
        computer = await stack.enter_async_context(Computer.connect(machine.transport))
        running = asyncio.ensure_future(mount.run())
        try:
            yield MountedComputer(computer, machine, mount, settings)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def give(bucket: Path, name: str) -> None:
    """What `use` finds. Before the mount, because the helper remembers a listing for some seconds."""
    (bucket / name).mkdir()
    (bucket / name / "given").write_text("from the server\n")


async def read_and_write(inside: MountedComputer, bucket: Path, name: str) -> None:
    assert await inside.until_runs(f"cat /mnt/remote/{name}/given") == "from the server\n"
    await inside.run(f"echo from inside > /mnt/remote/{name}/new")
    await until(lambda: _read(bucket / name / "new") == "from inside\n")


async def use(inside: MountedComputer, bucket: Path, name: str) -> None:
    """Read, write, list, change, rename and delete from inside, and see it on the server."""
    at = f"/mnt/remote/{name}"
    assert await inside.until_runs(f"cat {at}/given") == "from the server\n"
    await inside.run(f"echo from inside > {at}/new && mkdir {at}/deep && seq 100000 > {at}/deep/numbers")
    assert await inside.run(f"ls {at} && tail -1 {at}/deep/numbers") == "deep\ngiven\nnew\n100000\n"
    await inside.run(f"mv {at}/new {at}/renamed && rm {at}/given && echo more >> {at}/renamed")
    await until(lambda: _read(bucket / name / "renamed") == "from inside\nmore\n")
    await until(lambda: (_read(bucket / name / "deep/numbers") or "").endswith("\n100000\n"))
    assert not (bucket / name / "given").exists()


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("kind", ["s3", "webdav", "rclone"])
async def test_a_remote_folder_is_read_written_and_listed_inside(
    servers: dict[str, StorageServer], tmp_path: Path, kind: str
) -> None:
    server = servers["webdav" if kind == "rclone" else kind]
    give(server.bucket, f"use-{kind}")
    async with mounted(make_folder(server, kind), tmp_path) as inside:
        await inside.until_state("ready")
        await use(inside, server.bucket, f"use-{kind}")


async def test_another_version_of_rclone_serves_as_well(
    servers: dict[str, StorageServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(servers["webdav"].bucket, "use-other")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/rclone").symlink_to(RCLONE)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    async with mounted(make_folder(servers["webdav"]), tmp_path) as inside:
        await inside.until_state("ready")
        await read_and_write(inside, servers["webdav"].bucket, "use-other")


async def test_a_mount_that_is_not_writable_refuses_every_change(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    (servers["webdav"].bucket / "kept").write_text("kept")
    async with mounted(make_folder(servers["webdav"]), tmp_path, writable=False) as inside:
        await inside.until_state("ready")
        assert await inside.run("cat /mnt/remote/kept") == "kept"
        for attempt in ("echo x > /mnt/remote/kept", "rm /mnt/remote/kept", "mkdir /mnt/remote/x"):
            assert "Read-only file system" in await inside.fail(attempt)


@pytest.mark.parametrize("kind", ["s3", "webdav"])
async def test_a_wrong_key_is_said_and_gives_errors_inside(
    servers: dict[str, StorageServer], tmp_path: Path, kind: str
) -> None:
    async with mounted(make_folder(servers[kind], key="wrong"), tmp_path) as inside:
        await until(lambda: "The server refuses the key" in inside.mount.state.words)
        assert inside.mount.state.state in ("down", "failing")
        assert "wrong" not in inside.mount.state.words.replace("wrong key", "")
        assert await inside.fail("ls /mnt/remote")


async def test_a_server_that_is_not_there_is_said_and_gives_errors(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody else gets the port, and nobody listens
        folder = RemoteFolder("s3", "bucket", f"http://127.0.0.1:{taken.getsockname()[1]}", user=USER, key=KEY)
        async with mounted(folder, tmp_path) as inside:
            assert "cannot be reached" in await inside.until_state("failing")
            assert "Input/output error" in await inside.fail("ls /mnt/remote")


@pytest.mark.parametrize("endpoint", ["https://127.0.0.1", "http://192.0.2.7"])
async def test_a_server_may_have_a_usual_port_and_an_address_of_its_own(endpoint: str, tmp_path: Path) -> None:
    """The helper listens there in its own network, which only an owner of that network may."""
    folder = RemoteFolder("webdav", "", endpoint, user=USER, key=KEY)
    async with mounted(folder, tmp_path, timeout=3.0) as inside:
        await inside.until_state("failing")  # nobody is there, and not: the helper ended before it could listen


async def test_a_killed_helper_gives_errors_and_then_the_mount_is_back_in_the_same_computer(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    """It is killed while a program inside reads a file and another holds one open."""
    server = servers["webdav"]
    (server.bucket / "large").write_bytes(os.urandom(1 << 20) * 32)
    async with mounted(make_folder(server), tmp_path) as inside:
        await inside.until_state("ready")
        reader = asyncio.ensure_future(
            inside.computer.run(
                "exec 3< /mnt/remote/large; touch /workspace/open; while cat /mnt/remote/large; do :; done > /dev/null"
            )
        )
        await until(lambda: (tmp_path / "workspace/open").exists())
        old = inside.helper
        os.kill(inside.rclone, signal.SIGKILL)
        result = await asyncio.wait_for(reader, 60)
        assert any(word in result.stderr for word in (b"not connected", b"connection abort", b"Permission denied"))
        await inside.until_restarted(old)
        assert len(await inside.run("cat /mnt/remote/large | sha256sum")) > 64


async def test_what_was_written_before_the_helper_was_killed_is_sent_by_the_next(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    server = servers["webdav"]
    async with mounted(make_folder(server), tmp_path) as inside:
        await inside.until_state("ready")
        await inside.run("echo kept > /mnt/remote/unsent")
        old = inside.helper
        os.kill(old, signal.SIGKILL)
        await inside.until_restarted(old)
        await until(lambda: _read(server.bucket / "unsent") == "kept\n")


async def test_an_unsent_file_whose_record_was_cut_off_is_sent_by_the_next_helper(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    """rclone writes its record in place, so that a kill can leave half of one. It deletes such a file itself."""
    server = servers["webdav"]
    async with mounted(make_folder(server), tmp_path) as inside:
        await inside.until_state("ready")
        await inside.run("echo kept > /mnt/remote/half-recorded")
        old = inside.helper
        os.kill(old, signal.SIGKILL)
        await inside.until_state("down")
        (record,) = (tmp_path / "cache/vfsMeta").rglob("half-recorded")
        os.truncate(record, 20)
        await inside.until_restarted(old)
        await until(lambda: _read(server.bucket / "half-recorded") == "kept\n")


@pytest.mark.parametrize("fetched", [0, 1 << 20], ids=["empty", "with a hole"])
def test_a_file_that_may_be_half_fetched_is_not_recorded_as_unsent(tmp_path: Path, fetched: int) -> None:
    for part in ("vfs", "vfsMeta"):
        (tmp_path / part / "remote").mkdir(parents=True)
    (tmp_path / "vfsMeta/remote/file").write_text('{"Size": 4')
    with (tmp_path / "vfs/remote/file").open("wb") as file:
        file.seek(fetched)
        file.write(b"end" if fetched else b"")
    helper_inside.repair_cache(tmp_path)
    assert (tmp_path / "vfsMeta/remote/file").read_text() == '{"Size": 4'


async def test_a_helper_that_hangs_gives_errors_and_no_process_waits_for_ever(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    async with mounted(make_folder(servers["webdav"]), tmp_path, timeout=3.0) as inside:
        await inside.until_state("ready")
        rclone = inside.rclone
        os.kill(rclone, signal.SIGSTOP)
        try:
            assert "timed out" in await inside.fail("ls /mnt/remote/some")
            killed = await inside.computer.run("timeout -s KILL 0.2 ls /mnt/remote/other")
            assert not killed.ok
        finally:
            with contextlib.suppress(ProcessLookupError):  # it was given up
                os.kill(rclone, signal.SIGCONT)
        await inside.until_runs("stat -c %F /mnt/remote")


async def test_a_server_that_hangs_gives_errors(tmp_path: Path) -> None:
    hangs = asyncio.Event()

    async def answer(method: str, path: str, writer: asyncio.StreamWriter) -> None:
        if hangs.is_set():
            await asyncio.Event().wait()
        writer.write(dav_listing(dav_entry("/"), dav_entry("/file", size=5)))

    async with (
        hostile_server(answer) as url,
        mounted(RemoteFolder("webdav", "", url), tmp_path, timeout=3.0) as inside,
    ):
        await inside.until_state("ready")
        hangs.set()
        assert await inside.fail("cat /mnt/remote/file")
        await inside.until_state("failing")


HOLD_DEVICE = """
import asyncio, sys
from pathlib import Path
from freehold.computer.mounts.mount_point import MountPoints
from freehold.computer.mounts.rclone_remote import RemoteFolder
from freehold.computer.mounts.remote_mount import RemoteMount, RemoteMountSettings
place, url = Path(sys.argv[1]), sys.argv[2]
points = MountPoints(place / "points")
settings = RemoteMountSettings(points.folder(0), points.lock, place / "cache", 64242, writable=True, timeout=600)
asyncio.run(RemoteMount(settings, lambda: RemoteFolder("webdav", "", url)).run())
"""


async def test_a_program_of_mounts_that_is_killed_while_it_lists_a_folder_is_gone(tmp_path: Path) -> None:
    """It holds the device of the mount: if it waited for itself, not even SIGKILL would end it."""
    asked = asyncio.Event()

    async def answer(method: str, path: str, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    points = MountPoints(tmp_path / "points")
    points.prepare([0])
    try:
        async with hostile_server(answer) as url:
            command = [sys.executable, "-c", HOLD_DEVICE, str(tmp_path), url]
            process = await asyncio.create_subprocess_exec(*command, start_new_session=True)
            try:
                await asyncio.wait_for(asked.wait(), 60)
            finally:
                process.kill()
            assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL
    finally:
        points.remove()


async def test_no_credential_is_found_inside_nor_on_a_command_line_nor_on_a_disk(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    async with mounted(make_folder(servers["s3"]), tmp_path) as inside:
        await inside.until_state("ready")
        await inside.run("echo x > /mnt/remote/secretless")
        # As an agent would search, and with words that do not match themselves.
        search = (
            "import glob, os\n"
            f"wanted = [b'{KEY[0]}' + b'{KEY[1:]}', b'{USER[0]}' + b'{USER[1:]}']\n"
            "paths = ['/proc/self/mountinfo', *glob.glob('/proc/[0-9]*/environ'), *glob.glob('/proc/[0-9]*/cmdline')]\n"
            "for top in ('/etc', '/home', '/mnt', '/run', '/tmp', '/var', '/workspace'):\n"
            "    for place, _, names in os.walk(top):\n"
            "        paths += [os.path.join(place, one) for one in names]\n"
            "for path in paths:\n"
            "    try:\n"
            "        data = open(path, 'rb').read(1 << 20) if os.path.isfile(path) else b''\n"
            "        if any(word in data for word in wanted): print(path)\n"
            "    except OSError: pass\n"
            "print(len(paths))\n"
        )
        (tmp_path / "workspace/search.py").write_text(search)
        found = (await inside.run("python3 /workspace/search.py")).split()
        assert int(found.pop()) > 20
        assert found == []
        for pid in (inside.helper, *find_descendants(inside.helper)):
            for name in ("cmdline", "environ"):
                assert KEY.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        on_disk = [
            path for path in (tmp_path / "cache").rglob("*") if path.is_file() and KEY in path.read_text("latin-1")
        ]
        assert on_disk == []


async def test_the_helper_has_its_own_uid_no_capability_and_reaches_only_its_server(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    async with mounted(make_folder(servers["webdav"]), tmp_path) as inside:
        await inside.until_state("ready")
        rclone = inside.rclone
        status = Path(f"/proc/{rclone}/status").read_text()
        assert f"Uid:\t{HELPER_UID}\t{HELPER_UID}\t{HELPER_UID}\t{HELPER_UID}" in status
        for name in ("CapPrm", "CapEff", "CapAmb"):
            assert f"{name}:\t{'0' * 16}" in status
        connect = "import socket,sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
        for server, is_reached in ((servers["webdav"], True), (servers["s3"], False)):
            port = server.url.rpartition(":")[2]
            tried = await asyncio.create_subprocess_exec(
                "nsenter", "-t", str(rclone), "-n", "python3", "-c", connect, port, stderr=subprocess.DEVNULL
            )
            assert (await tried.wait() == 0) is is_reached
        devices = Path(f"/proc/{rclone}/net/dev").read_text()
        assert [line.split(":")[0].strip() for line in devices.splitlines()[2:]] == ["lo"]
        assert not Path(f"/proc/{rclone}/root/home").exists()


async def test_a_helper_whose_errors_cannot_be_read_is_watched_as_before(tmp_path: Path) -> None:
    """A part of what the server says looks like the start of very deep JSON."""
    is_broken = True
    depths = itertools.count(20_000, 100)  # wherever the long line is cut, one of them is seen

    async def answer(method: str, path: str, writer: asyncio.StreamWriter) -> None:
        deep = http_answer("500 Internal Server Error", b"[" * next(depths))
        writer.write(deep if is_broken else dav_listing(dav_entry("/")))

    async with (
        hostile_server(answer) as url,
        mounted(RemoteFolder("webdav", "", url), tmp_path, recheck=0.2) as inside,
    ):
        await until(lambda: "[[[[" in inside.mount.state.words)
        is_broken = False
        await inside.until_state("ready")
        old = inside.helper
        os.kill(old, signal.SIGKILL)
        await inside.until_restarted(old)


async def test_a_mount_that_fails_for_no_known_reason_is_mounted_again(
    servers: dict[str, StorageServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail_once(*_: object) -> RcloneRemote:
        monkeypatch.undo()
        raise ValueError("an error that nobody thought of")

    monkeypatch.setattr(remote_mount, "describe_remote", fail_once)
    async with mounted(make_folder(servers["webdav"]), tmp_path) as inside:
        await inside.until_state("ready")
        assert "an error that nobody thought of" in caplog.text


async def test_a_helper_starts_whatever_files_are_open(servers: dict[str, StorageServer], tmp_path: Path) -> None:
    """Those that it gets would have the numbers that it uses itself."""
    async with contextlib.AsyncExitStack() as stack:
        while (number := os.open("/dev/null", os.O_RDONLY)) < CONTROL - 10:
            stack.callback(os.close, number)
        stack.callback(os.close, number)
        inside = await stack.enter_async_context(mounted(make_folder(servers["webdav"]), tmp_path))
        await inside.until_state("ready")


def test_the_name_of_a_mount_may_be_any_bytes(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a \xff\x85\n\\040\xe2\x80\xa8")
    program = """if True:
        import errno, os, sys
        from pathlib import Path
        from freehold.computer.mounts.mount_point import MountPoint
        point = MountPoint(Path(sys.argv[1]))
        point.prepare()
        try:
            os.rmdir(sys.argv[1])
        except OSError as error:
            assert error.errno == errno.EBUSY
        else:
            sys.exit("it was not mounted")
        point.remove()
    """
    # Nobody else sees these mounts: other programs may not be prepared for such names.
    private = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", program, str(folder)]
    subprocess.run(private, check=True)
    assert not folder.exists()


def test_an_owner_without_root_has_remote_mounts_too(servers: dict[str, StorageServer]) -> None:
    """On a machine as systemd makes it: everybody may open /dev/fuse, and the run folder is a shared mount."""
    python = "/usr/bin/python3"
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=False).stdout
    if version.split()[-1].split(".")[:2] != [str(part) for part in sys.version_info[:2]]:
        pytest.skip("the system's Python is of another version")
    (servers["webdav"].bucket / "given").write_text("from the server\n")
    machine = (
        "mount -t tmpfs none dev && mknod dev/fuse c 10 229 && chmod 666 dev/fuse && mount --bind dev/fuse /dev/fuse"
        " && mount --bind home home && mount --make-shared home"
        ' && exec setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"'
    )
    with tempfile.TemporaryDirectory(prefix="fh-", dir="/var/tmp") as place:
        folder = Path(place)
        folder.chmod(0o755)
        for name in ("dev", "home"):
            (folder / name).mkdir()
        os.chown(folder / "home", 65534, 65534)
        packages = [ROOT / "src", ROOT, sysconfig.get_path("purelib")]
        program = [python, "-m", "tests.computer.unprivileged_mount", str(folder / "home"), servers["webdav"].url]
        ran = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", machine, "sh", *program, USER, KEY],
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": str(folder / "home"),
                "TMPDIR": str(folder / "home"),
                "PYTHONPATH": ":".join(map(str, packages)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    seen = json.loads(ran.stdout)
    assert seen.pop("mounted") == seen.pop("mounted again") == "from the server"
    assert "Permission denied" in seen.pop("before"), "while nothing is mounted, it is closed and does not look empty"
    assert "Permission denied" in seen.pop("after")
    assert seen == {"left": ""}


async def test_a_cache_that_is_full_of_unsent_changes_takes_no_more(tmp_path: Path) -> None:
    async def answer(method: str, path: str, writer: asyncio.StreamWriter) -> None:
        if method == "PROPFIND" and path == "/":
            writer.write(dav_listing(dav_entry("/")))
        elif method == "PROPFIND":
            writer.write(http_answer("404 Not Found"))
        else:
            await asyncio.Event().wait()  # nothing is ever taken

    async with (
        hostile_server(answer) as url,
        mounted(RemoteFolder("webdav", "", url), tmp_path, cache_size=1 << 20) as inside,
    ):
        await inside.until_state("ready")
        command = "for n in $(seq 400); do head -c 256k /dev/zero > /mnt/remote/$n || exit 1; sleep 0.05; done"
        assert "No space left on device" in await inside.fail(command)


HOSTILE_NAMES = ("a%0Ab", "..", "%2E%2E", "a%2Fb", "..%2F..%2Fetc%2Fpasswd", "esc%1B%5B31m", "nul%00l", "x" * 5000)


async def test_hostile_names_and_sizes_neither_escape_nor_hide_the_others(tmp_path: Path) -> None:
    async def answer(method: str, path: str, writer: asyncio.StreamWriter) -> None:
        entries = [dav_entry(f"/{name}", size=3) for name in HOSTILE_NAMES]
        huge = [dav_entry("/huge", size=2**63 - 1), dav_entry("/negative", size=-5)]
        if path == "/" and method == "PROPFIND":
            writer.write(dav_listing(dav_entry("/"), *entries, *huge, dav_entry("/good", size=3)))
        elif method == "PROPFIND":
            writer.write(dav_listing(dav_entry(path, size=3)))
        else:
            writer.write(http_answer("200 OK", b"abc"))

    async with hostile_server(answer) as url, mounted(RemoteFolder("webdav", "", url), tmp_path) as inside:
        await inside.until_state("ready")
        names = (await inside.computer.run("find /mnt/remote -mindepth 1 -printf '%P\\0'")).stdout.split(b"\0")
        assert b"good" in names
        assert not any(byte < 32 or byte == 127 for name in names for byte in name)
        assert not any(part in (b"..", b"etc") for name in names for part in name.split(b"/"))
        assert await inside.run("cat /mnt/remote/good") == "abc"
        await inside.computer.run("head -c 1M /mnt/remote/huge; cat /mnt/remote/negative")
        assert await inside.run("cat /mnt/remote/good") == "abc"


@pytest.mark.parametrize("pause", [0.0, 0.2], ids=["fast", "slow"])
async def test_a_listing_without_an_end_ends_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    """The fast one meets the helper's limit of memory, the slow one the time limit of each answer."""
    monkeypatch.setattr(helper_process, "MAX_MEMORY", 256 << 20)
    timeout = 3.0 if pause else 600.0  # nothing but the memory can end the fast one

    async def answer(method: str, path: str, writer: asyncio.StreamWriter) -> None:
        if path == "/":
            writer.write(dav_listing(dav_entry("/"), dav_entry("/endless/")))
            return
        writer.write(b"HTTP/1.1 207 Multi-Status\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n")
        writer.write(b'<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">')
        some = "".join(dav_entry(f"/endless/{number}", size=1) for number in range(1 if pause else 1000)).encode()
        while True:
            writer.write(some)
            await writer.drain()
            await asyncio.sleep(pause)

    async with (
        hostile_server(answer) as url,
        mounted(RemoteFolder("webdav", "", url), tmp_path, timeout=timeout) as inside,
    ):
        await inside.until_state("ready")
        old = inside.helper
        assert await inside.fail("ls /mnt/remote/endless")
        if not pause:
            await inside.until_restarted(old)
        await inside.until_state("ready")
        assert "endless" in await inside.until_runs("ls /mnt/remote")


@pytest.mark.parametrize("name", ["docker", "podman"])
async def test_a_container_sees_the_mount_and_sees_it_again_after_the_helper_was_killed(
    servers: dict[str, StorageServer], tmp_path: Path, name: str
) -> None:
    with running_engine(name) as backend:
        give(servers["webdav"].bucket, f"use-{name}")
        async with mounted(make_folder(servers["webdav"]), tmp_path, backend) as inside:
            await inside.until_state("ready")
            await read_and_write(inside, servers["webdav"].bucket, f"use-{name}")
            old = inside.helper
            os.kill(old, signal.SIGKILL)
            await inside.until_restarted(old)
            assert "new" in await inside.until_runs(f"ls /mnt/remote/use-{name}")


async def until_waits(computer: Computer, program: str) -> None:
    """Until a process of this name waits."""

    async def waits() -> bool:
        return any(one.name == program and one.state in "DS" for one in await computer.processes())

    await until(waits)


async def test_a_virtual_machine_has_remote_mounts_that_come_back_and_hold_up_nothing_else(
    servers: dict[str, StorageServer], tmp_path: Path
) -> None:
    with micro_vm() as backend:
        give(servers["webdav"].bucket, "use-vm")
        async with mounted(make_folder(servers["webdav"]), tmp_path, backend, timeout=600.0) as inside:
            await inside.until_state("ready")
            await read_and_write(inside, servers["webdav"].bucket, "use-vm")
            assert await inside.fail("touch /run/remote/mine")
            # While the helper hangs, the workspace goes on. When it dies, who waited for it gets an error.
            old = inside.helper
            os.kill(inside.rclone, signal.SIGSTOP)
            waiting = asyncio.ensure_future(inside.fail("ls /mnt/remote/some"))
            try:
                await until_waits(inside.computer, "ls")
                assert await inside.run("echo here > /workspace/file && cat /workspace/file") == "here\n"
            finally:
                os.kill(old, signal.SIGKILL)
                await asyncio.gather(waiting, return_exceptions=True)
            assert "some" in waiting.result()
            await inside.until_restarted(old)
            assert "new" in await inside.until_runs("ls /mnt/remote/use-vm")
            assert (await inside.machine.sleep()).how == "frozen"
            await inside.machine.wake()
            assert "new" in await inside.until_runs("ls /mnt/remote/use-vm")


@pytest.mark.parametrize("target", ["/workspace/cloud", "/mnt/local/cloud", "/mnt"])
async def test_a_remote_mount_of_a_virtual_machine_is_in_no_other_folder(tmp_path: Path, target: str) -> None:
    for name in ("workspace", "home", "points", "local"):
        (tmp_path / name).mkdir()
    mounts = (Mount(tmp_path / "points", target, follows=True), Mount(tmp_path / "local", "/mnt/local"))
    spec = ComputerSpec(tmp_path / "workspace", tmp_path / "home", mounts=mounts)
    with micro_vm() as backend, pytest.raises(FreeholdError) as refused:
        await launch(spec, tmp_path / "link", backend)
    assert refused.value.code == "computer.mount-refused"
