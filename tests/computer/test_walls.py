"""The walls: what is visible inside, the user on the host, and that no wall is ever left out."""

import asyncio
import contextlib
import errno
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.computer.machines import host_pid

from freehold import system_packages
from freehold.computer.bubblewrap import requirements, sandbox
from freehold.computer.bubblewrap.backend import Bubblewrap
from freehold.computer.bubblewrap.layout import MAX_COPIED, open_public_file
from freehold.computer.bubblewrap.requirements import (
    SandboxTools,
    explain_bwrap_error,
    find_missing_requirements,
    find_tools,
    parse_version,
)
from freehold.computer.contract.spec import ComputerSpec, Mount
from freehold.computer.library.computer import Computer
from freehold.computer.library.removal import remove_tree
from freehold.computer.walls import credentials, ownership, seccomp
from freehold.computer.walls.cgroups import Cgroup, find_parents
from freehold.computer.walls.credentials import start_as_uid
from freehold.computer.walls.folder_check import check_mounts
from freehold.computer.walls.inside import SHARED_ETC
from freehold.computer.walls.owner_walk import OwnerWalk, TooManyEntries
from freehold.computer.walls.ownership import chown_tree
from freehold.errors import FreeholdError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="shows what a keeper started by root does")


@pytest.fixture
def private() -> Iterator[Path]:
    """A home of root, which no other user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="fh-", dir="/var/tmp"))
    for name in ("workspace", "home", "vault"):
        (folder / name).mkdir()
    (folder / "vault" / "key").write_text("secret")
    folder.chmod(0o700)
    yield folder
    remove_tree(folder)


@as_root
async def test_a_computer_that_root_starts_runs_as_an_unprivileged_user(private: Path) -> None:
    """The uid is 1000 inside, and on the host an unprivileged one that cannot enter the home."""
    async with Computer.start(private / "workspace", private / "home") as computer:
        assert (await computer.run("id -u; echo made > /workspace/made; echo kept > ~/kept")).stdout == b"1000\n"
        assert computer.machine is not None
        assert computer.machine.isolation.runs_as == "uid 64242"
        status = Path(f"/proc/{host_pid(computer)}/status").read_text()
        assert "Uid:\t64242\t64242\t64242\t64242" in status
        assert "Groups:\t \n" in status or "Groups:\t\n" in status
    assert (private / "workspace" / "made").stat().st_uid == 64242
    assert (private / "home" / "kept").read_text() == "kept\n"
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    walk = ["setpriv", "--reuid", "64242", "--regid", "64242", "--clear-groups", "ls", str(private / "workspace")]
    tried = await asyncio.to_thread(subprocess.run, walk, capture_output=True, check=False)
    assert tried.returncode != 0


def test_a_computer_is_never_root() -> None:
    if os.geteuid() == 0:
        with pytest.raises(FreeholdError, match="must not run as root"):
            Bubblewrap(uid=0)


async def test_the_reported_walls_are_those_that_the_kernel_shows() -> None:
    """`isolation` names the walls that the kernel shows, and a process without walls is detected."""
    async with Computer.start() as computer:
        assert computer.machine is not None
        isolation = computer.machine.isolation
        uid = 64242 if os.geteuid() == 0 else os.geteuid()
        assert sandbox.find_missing_wall(host_pid(computer), uid) == ""
        assert {"user namespace", "net namespace", "no capabilities", "filtered system calls"} <= set(isolation.walls)
        assert set(isolation.limits) == set(computer.limits.__dataclass_fields__)
    assert sandbox.find_missing_wall(os.getpid(), os.getuid()) != ""


async def test_only_the_persistent_folders_persist(private: Path) -> None:
    async with Computer.start(private / "workspace", private / "home") as computer:
        await computer.run("echo 1 > /workspace/a; echo 2 > ~/b; echo 3 > /tmp/c; echo 4 > /dev/shm/d; echo 5 > /run/e")
    async with Computer.start(private / "workspace", private / "home") as computer:
        assert (await computer.run("cat /workspace/a ~/b; ls /tmp /dev/shm /run")).text.split() == [
            "1", "2", "/dev/shm:", "/run:", "/tmp:",
        ]  # fmt: skip


async def test_a_mount_is_read_only_by_default(private: Path) -> None:
    for name in ("given", "open"):
        (private / name).mkdir()
        (private / name / "file").write_text(name)
        (private / name).chmod(0o777)
    mounts = [Mount(private / "given", "/mnt/given"), Mount(private / "open", "/mnt/open", writable=True)]
    async with Computer.start(private / "workspace", private / "home", mounts=mounts) as computer:
        assert (await computer.run("cat /mnt/given/file /mnt/open/file")).text == "givenopen"
        assert b"Read-only" in (await computer.run("echo x > /mnt/given/new")).stderr
        assert (await computer.run("echo x > /mnt/open/new")).ok
        assert b"No such file" in (await computer.run("ls /vault")).stderr
    assert (private / "open" / "new").exists()


@pytest.mark.parametrize(
    "target",
    ["/", "/etc", "/etc/ssl", "/proc", "/proc/sys", "/dev/shm", "/usr/bin", "/bin", "/tmp/x", "/workspace", "/home/agent", "/home",
     "relative", "/mnt/../etc", "/opt/freehold", "/opt/freehold/guest.pyz", "/lib64/x", "/run/x", "/sys"],
)  # fmt: skip
def test_a_mount_cannot_cover_a_part_of_the_computer(target: str, tmp_path: Path) -> None:
    spec = ComputerSpec(workspace=tmp_path, home=tmp_path, mounts=(Mount(tmp_path, target),))
    with pytest.raises(FreeholdError) as caught:
        check_mounts(spec)
    assert caught.value.code == "computer.mount-refused"


def test_the_error_names_a_missing_or_duplicate_mount(tmp_path: Path) -> None:
    missing = ComputerSpec(workspace=tmp_path, home=tmp_path, mounts=(Mount(tmp_path / "no", "/mnt/no"),))
    with pytest.raises(FreeholdError, match="does not exist"):
        check_mounts(missing)
    twice = (Mount(tmp_path, "/mnt/a"), Mount(tmp_path, "/mnt/a"))
    with pytest.raises(FreeholdError, match="mounted twice"):
        check_mounts(ComputerSpec(workspace=tmp_path, home=tmp_path, mounts=twice))


async def test_the_environment_contains_only_what_the_spec_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the keeper is visible inside, and none of the spec reaches the programs that build the walls."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    wanted = {"GREETING": "hello world", "LD_PRELOAD": "/workspace/evil.so", "BASH_ENV": "/workspace/evil"}
    async with Computer.start(environment=wanted) as computer:
        shown = (await computer.run(["/usr/bin/env"])).text
        assert "GREETING=hello world" in shown
        assert "secret" not in shown
        assert "HTTPS_PROXY=http://127.0.0.1:3128" in shown
        assert computer.machine is not None
        helper = int(Path(f"/proc/{host_pid(computer)}/stat").read_text().rsplit(")", 1)[1].split()[1])
        assert b"hello" not in Path(f"/proc/{helper}/cmdline").read_bytes()
        assert b"LD_PRELOAD" not in Path(f"/proc/{helper}/environ").read_bytes()


async def test_an_image_replaces_the_system_of_the_host() -> None:
    """Its /usr and /opt are visible and read-only; its /etc, home and everything else are not visible."""
    async with Computer.start(image="/") as computer:
        seen = (await computer.run("ls /; ls /opt; id -un; echo x > /opt/x")).text.split()
        assert {"usr", "opt", "workspace", "agent", "freehold"} <= set(seen)
        assert not {"root", "srv", "boot", "sys", "work"} & set(seen)
        assert not (await computer.run("cat /etc/shadow || echo x > /opt/x")).ok


async def test_an_image_without_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    with pytest.raises(FreeholdError) as caught:
        await Computer.start(image=str(tmp_path))
    assert caught.value.code == "computer.no-python"


def test_only_small_files_that_everybody_may_read_are_copied_into_a_computer(tmp_path: Path) -> None:
    """Neither a link in an image nor a private file or folder of the host gives anything to it."""
    base = tmp_path / "image"
    (base / "etc" / "open").mkdir(parents=True)
    (base / "etc" / "closed").mkdir(mode=0o700)
    for name, mode in (("open/public", 0o644), ("open/private", 0o640), ("closed/public", 0o644), ("large", 0o644)):
        (base / "etc" / name).write_bytes(b"x" * (MAX_COPIED + 1 if name == "large" else 3))
        (base / "etc" / name).chmod(mode)
    (base / "etc" / "link").symlink_to("open/public")
    (base / "etc" / "folder-link").symlink_to("open")
    os.mkfifo(base / "etc" / "pipe", 0o644)
    found = open_public_file(base, "etc/open/public")
    assert found is not None
    with os.fdopen(found, "rb") as file:
        assert file.read() == b"xxx"
    for name in ("open/private", "closed/public", "large", "link", "folder-link/public", "pipe", "open", "missing"):
        assert open_public_file(base, f"etc/{name}") is None, name
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "etc").symlink_to(base / "etc")
    assert open_public_file(tmp_path / "linked", "etc/open/public") is None


async def test_the_shared_files_of_etc_are_those_of_the_host_and_cannot_be_changed() -> None:
    async with Computer.start() as computer:
        names = [name for name in SHARED_ETC if Path("/etc", name).is_file()]
        assert names
        for name in names:
            assert await computer.files.read(f"/etc/{name}") == Path("/etc", name).read_bytes()
            assert not (await computer.run(f"echo x >> /etc/{name} || chmod 666 /etc/{name} || rm /etc/{name}")).ok


# No computer starts with a wall missing


@pytest.fixture
def tools_forgotten() -> Iterator[None]:
    find_tools.cache_clear()
    yield
    find_tools.cache_clear()


@pytest.mark.usefixtures("tools_forgotten")
@pytest.mark.parametrize(
    ("missing", "packages"),
    [
        (["bwrap"], "bubblewrap"),
        (["setpriv"], "util-linux"),
        (["bwrap", "setpriv", "libseccomp"], "bubblewrap util-linux libseccomp2"),
    ],
)
async def test_without_its_programs_no_computer_starts_and_one_command_brings_them(
    missing: list[str], packages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(name: str, path: str | None = None) -> str | None:
        return None if name in missing else f"/usr/bin/{name}"

    monkeypatch.setattr(shutil, "which", find)
    monkeypatch.setattr(system_packages, "_has_library", lambda: "libseccomp" not in missing)
    with pytest.raises(FreeholdError, match="not installed") as caught:
        await Computer.start()
    assert caught.value.code == "computer.no-isolation"
    assert caught.value.hint == f"Install what is missing: apt-get install {packages}"
    assert [problem.wall for problem in find_missing_requirements()] == ["sandbox"]


@pytest.mark.usefixtures("tools_forgotten")
@pytest.mark.parametrize("version", ["bubblewrap 0.7.0", "bubblewrap 0.3", "what?", ""])
async def test_an_old_bubblewrap_is_refused(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\necho '{version}'\n")
    fake.chmod(0o755)
    real = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, path=None: str(fake) if name == "bwrap" else real(name, path=path)
    )
    with pytest.raises(FreeholdError, match="nested user namespaces"):
        await Computer.start()


@pytest.mark.parametrize(
    ("text", "numbers"), [("0.8.0", (0, 8, 0)), ("0.11", (0, 11)), ("1.0-rc1", (1, 0)), ("x", ()), ("", ())]
)
def test_versions_compare_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


async def test_without_libseccomp_no_computer_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_library() -> None:
        raise FreeholdError("computer.no-isolation", "The filter on system calls cannot be built: no libseccomp")

    seccomp.compile_filters.cache_clear()
    monkeypatch.setattr(seccomp, "_load_library", no_library)
    try:
        with pytest.raises(FreeholdError, match="filter on system calls"):
            await Computer.start()
        assert [problem.wall for problem in find_missing_requirements()] == ["system calls"]
    finally:
        seccomp.compile_filters.cache_clear()


async def test_the_error_explains_why_the_sandbox_cannot_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error contains bubblewrap's message, and nothing is left running."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    real = find_tools()
    monkeypatch.setattr(sandbox, "find_tools", lambda: SandboxTools(str(fake), real.setpriv, real.version))
    with pytest.raises(FreeholdError) as caught:
        await Computer.start()
    assert caught.value.code == "computer.no-isolation"


async def test_a_sandbox_without_walls_is_detected(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox that reports a child without walls is detected and killed."""
    fake = private / "bwrap"
    fake.write_text(
        "#!/usr/bin/python3\n"
        "import os, sys, json\n"
        "words = os.read(int(sys.argv[2]), 1 << 20).split(b'\\0')\n"
        "info = int(words[words.index(b'--info-fd') + 1])\n"
        "os.write(info, json.dumps({'child-pid': os.getpid()}).encode())\n"
        "os.close(info)\n"
        "os.execvp('sleep', ['sleep', '60'])\n"
    )
    fake.chmod(0o755)
    private.chmod(0o755)
    real = find_tools()
    monkeypatch.setattr(sandbox, "find_tools", lambda: SandboxTools(str(fake), real.setpriv, real.version))
    monkeypatch.setattr(sandbox, "START_TIMEOUT", 1.0)
    with pytest.raises(FreeholdError, match="did not build every wall"):
        await Computer.start()


async def test_a_computer_is_in_its_control_groups_and_this_process_is_not() -> None:
    """The thread that starts it is in them for a moment. Inside, the group is the root of all groups."""
    own = Path("/proc/self/cgroup").read_text()
    async with Computer.start() as computer:
        assert (await computer.run("cut -d: -f3 /proc/self/cgroup /proc/1/cgroup | sort -u")).text.strip() == "/"
        parents = find_parents()
        outside = Path(f"/proc/{host_pid(computer)}/cgroup").read_text()
        assert outside.count(f"/freehold-{os.getpid()}.") == len(
            {line for line in outside.splitlines() if set(line.split(":")[1].split(",")) & set(parents)}
        )
        assert {task.read_text() for task in Path("/proc/self/task").glob("*/cgroup")} == {own}


@as_root
async def test_a_sandbox_that_keeps_a_privilege_of_the_keeper_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """bubblewrap itself, outside of the walls, must have nothing of root."""
    monkeypatch.setattr(Cgroup, "entering_command_of_version_2", lambda self: [])
    monkeypatch.setattr(sandbox, "start_as_uid", lambda uid: contextlib.nullcontext())
    monkeypatch.setattr(sandbox, "START_TIMEOUT", 1.0)
    with pytest.raises(FreeholdError, match="did not build every wall"):
        await Computer.start()


@as_root
async def test_a_sandbox_is_not_lost_if_its_thread_cannot_become_root_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is that of the system, not one of bubblewrap, and the check after every test finds no process."""

    @contextlib.contextmanager
    def start_and_fail(uid: int) -> Iterator[None]:
        with start_as_uid(uid):
            yield
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(Cgroup, "entering_command_of_version_2", lambda self: [])
    monkeypatch.setattr(sandbox, "start_as_uid", start_and_fail)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        await Computer.start()


@as_root
def test_a_thread_takes_back_what_it_can_if_a_step_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    before = (os.getresuid(), os.getresgid(), os.getgroups())
    call, set_gids = credentials._call, credentials._CALLS[platform.machine()][0]

    def fail_for_gids(number: int, *values: int) -> None:
        if number == set_gids:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        call(number, *values)

    def start() -> None:
        try:
            with start_as_uid(64242):
                monkeypatch.setattr(credentials, "_call", fail_for_gids)
        except OSError as error:
            seen.extend([error.errno, os.getresuid(), os.getresgid(), os.getgroups()])

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert seen == [errno.EPERM, before[0], (64242,) * 3, before[2]]


@as_root
def test_what_a_thread_starts_as_another_user_has_nothing_of_root() -> None:
    """Not its uids, its groups or its capabilities. The thread is root again afterwards, and no other thread changes."""
    seen: list[str] = []
    before = (os.getresuid(), os.getresgid(), os.getgroups())

    def start() -> None:
        with start_as_uid(64242):
            seen.append(subprocess.run(["/bin/cat", "/proc/self/status"], capture_output=True, text=True).stdout)
        seen.append(repr((os.getresuid(), os.getresgid(), os.getgroups())))
        with contextlib.suppress(ZeroDivisionError), start_as_uid(64242):
            1 / 0  # noqa: B018
        seen.append(repr((os.getresuid(), os.getresgid(), os.getgroups())))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in seen[0].splitlines())}
    assert status["Uid"] == status["Gid"] == ["64242"] * 4
    assert status["Groups"] == []
    assert status["NoNewPrivs"] == ["1"]
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name][0], 16) == 0
    assert seen[1:] == [repr(before)] * 2
    assert (os.getresuid(), os.getresgid(), os.getgroups()) == before
    assert "NoNewPrivs:\t0" in Path("/proc/self/status").read_text()


@pytest.mark.parametrize(
    ("setting", "value", "said", "wall", "hint"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "bwrap: setting up uid map: Permission denied", "user namespace", "/etc/apparmor.d/bwrap"),
        ("kernel/unprivileged_userns_clone", "0", "bwrap: No permissions to create new namespace", "user namespace", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "bwrap: Creating new namespace failed: No space left", "user namespace", "max_user_namespaces="),
        ("", "", "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "masked /proc", "systempaths"),
        ("", "", "bwrap: something new", "sandbox", "freehold doctor"),
    ],
)  # fmt: skip
def test_a_missing_wall_is_named_with_a_hint(
    setting: str, value: str, said: str, wall: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "_read_sysctl", lambda name: value if name == setting else None)
    problem = explain_bwrap_error(said)
    assert problem.wall == wall
    assert hint in problem.hint
    assert said in problem.message


def test_this_machine_has_no_missing_wall() -> None:
    assert find_missing_requirements() == []


# Folders


@as_root
@pytest.mark.parametrize("here", [2000, 0], ids=["small", "in a process of its own"])
def test_changing_the_owner_of_a_folder_follows_no_link(
    private: Path, monkeypatch: pytest.MonkeyPatch, here: int
) -> None:
    """A symbolic link or a hard link does not give a file of the host to the computer."""
    monkeypatch.setattr(ownership, "MAX_ENTRIES_HERE", here)
    outside = private / "vault" / "key"
    inside = private / "workspace"
    (inside / "deep").mkdir()
    (inside / "deep" / "own").write_text("x")
    (inside / "link").symlink_to(outside)
    (inside / "folder-link").symlink_to(private / "vault")
    os.link(outside, inside / "second-name")
    chown_tree(inside, 64242)
    assert inside.stat().st_uid == 64242
    assert (inside / "deep" / "own").stat().st_uid == 64242
    assert (inside / "link").lstat().st_uid == 64242
    assert outside.stat().st_uid == 0
    assert (private / "vault").stat().st_uid == 0


@as_root
def test_the_owner_of_a_folder_tells_that_all_below_it_was_changed(private: Path) -> None:
    """So a change that was interrupted is done again at the next start, and one that was done costs nothing."""
    inside = private / "workspace"
    for name in "abc":
        (inside / name).write_text("x")
    handle = os.open(inside, os.O_RDONLY)
    with pytest.raises(TooManyEntries):
        OwnerWalk(64242, inside.stat().st_dev, max_entries=2).change(handle)
    os.close(handle)
    assert inside.stat().st_uid == 0
    chown_tree(inside, 64242)
    assert {(inside / name).stat().st_uid for name in "abc"} == {64242}
    os.chown(inside / "a", 0, 0)
    chown_tree(inside, 64242)
    assert (inside / "a").stat().st_uid == 0


@as_root
def test_a_very_deep_folder_is_given_to_the_computer(private: Path) -> None:
    here = os.open(private / "workspace", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    try:
        chown_tree(private / "workspace", 64242)
        assert os.fstat(here).st_uid == 64242
    finally:
        os.close(here)
        remove_tree(private / "workspace")


@as_root
def test_a_folder_that_cannot_be_given_to_the_computer_is_named_with_the_reason(
    private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (private / "workspace" / "file").write_text("x")
    monkeypatch.setattr(ownership, "MAX_ENTRIES_HERE", 0)
    with pytest.raises(FreeholdError, match=r"workspace cannot be given to the computer.*OverflowError"):
        chown_tree(private / "workspace", 2**40)


def test_removing_a_hostile_tree_follows_no_link(private: Path) -> None:
    tree = private / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(private / "vault")
    (tree / "shut").mkdir()
    (tree / "shut" / "file").write_text("x")
    (tree / "shut").chmod(0)
    here = os.open(tree, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    remove_tree(tree)
    assert not tree.exists()
    assert (private / "vault" / "key").read_text() == "secret"
    remove_tree(tree)
