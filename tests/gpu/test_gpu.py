"""A computer gets the devices that are named, and no other. Where there is no GPU, other devices stand in for one."""

import stat
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import pytest
import pytest_asyncio

from freehold.computer import Computer, Device, escapes
from freehold.computer.registry import find_backend
from freehold.doctor.backend_choice import BackendChoice
from freehold.doctor.exceptions import try_exceptions
from freehold.errors import FreeholdError
from freehold.gpu.section import GpuSection
from freehold.gpu.trial import USUAL
from freehold.home import Home
from freehold.keeper.artifacts import find_missing
from freehold.keeper.computer_program import make_computer_spec
from freehold.keeper.plan_reader import make_plan
from freehold.keeper.shared_library import has_library
from freehold.manifest import load_manifest
from freehold.manifest.exceptions import list_in_force
from freehold.manifest.loader import LoadedManifest

pytestmark = pytest.mark.asyncio(loop_scope="module")
GPU = "[gpu]\nenabled = true\n"
GRANTED = '[security.exceptions.gpu]\nreason = "agents train"\n'


def load(folder: Path, text: str) -> LoadedManifest:
    (folder / "freehold.toml").write_text(text)
    return load_manifest(folder / "freehold.toml", {}, home=folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer() -> AsyncIterator[Computer]:
    """Its /dev/nvidia0 is really /dev/full, which is always there."""
    async with Computer.start(devices=[Device(Path("/dev/full"), "/dev/nvidia0")]) as computer:
        yield computer


async def test_a_named_device_is_there_and_works_and_no_other_is(computer: Computer) -> None:
    listed = set((await computer.run("ls -1 /dev")).stdout.decode().split())
    async with Computer.start() as plain:
        without = set((await plain.run("ls -1 /dev")).stdout.decode().split())
    assert listed - without == {"nvidia0"}
    assert without < listed <= {*USUAL, "nvidia0"}
    number = (await computer.run("stat -c %t:%T /dev/nvidia0")).text.strip()
    assert number == "1:7"
    written = await computer.run(["/usr/bin/python3", "-c", "open('/dev/nvidia0', 'wb', 0).write(b'x')"])
    assert b"No space left" in written.stderr


async def test_no_device_can_be_made_moved_or_mounted_beside_it(computer: Computer) -> None:
    for attempt in (
        "mknod /tmp/made c 1 7",
        "mknod /workspace/made c 195 0",
        "mv /dev/nvidia0 /dev/other",
        "rm /dev/nvidia0",
        "ln /dev/nvidia0 /workspace/linked",
        "mount --bind /dev/nvidia0 /dev/null",
        "touch /dev/sda",
    ):
        assert not (await computer.run(attempt)).ok, attempt
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


async def test_every_escape_attempt_is_refused_with_a_device_as_without(computer: Computer) -> None:
    with escapes.placed_bait() as bait:
        attempts = [one for one in escapes.ESCAPES if not one.then_stop]
        async for verdict in escapes.try_escapes(attempts, bait, computer):
            assert verdict.outcome == "refused", verdict


async def test_a_backend_without_devices_refuses_them(tmp_path: Path) -> None:
    with pytest.raises(FreeholdError) as caught:
        async with Computer.start(
            devices=[Device(Path("/dev/full"), "/dev/nvidia0")], backend=find_backend("attached")
        ):
            pass
    assert caught.value.code == "computer.no-devices"
    problems = load(tmp_path, f'{GPU}{GRANTED}[computer]\nbackend = "podman"\n').errors
    assert "E924" in [one.code for one in problems]  # where podman is not installed, that is another problem


async def test_the_manifest_names_exactly_what_the_computer_gets(tmp_path: Path) -> None:
    assert [one.code for one in load(tmp_path, GPU).errors] == ["E901"]
    loaded = load(tmp_path, f"{GPU}cards = [0, 3]\n{GRANTED}")
    assert loaded.errors == ()
    (one,) = list_in_force(loaded.manifest, date(2026, 11, 16))
    devices = ("/dev/nvidia0", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert one.adds[0] == f"Devices: {', '.join(devices)}, to read and write"
    plan = make_plan(loaded)
    assert plan.devices == devices
    spec = make_computer_spec(plan, tmp_path, tmp_path, tmp_path / "unpacked")
    assert [device.target for device in spec.devices] == list(devices)
    assert GpuSection().list_devices() == ()
    assert make_plan(load(tmp_path, "")).devices == ()


@pytest.mark.parametrize(
    "place", ["usr/lib/x86_64-linux-gnu", "usr/lib64", "lib", "usr/local/nvidia/lib64", "opt/nvidia"]
)
async def test_the_library_of_the_driver_is_looked_for_where_programs_find_it(tmp_path: Path, place: str) -> None:
    """In the folders where every program looks, and in those of the linker's cache that a computer shows."""
    root = tmp_path / "image"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/python3").touch()
    (root / "etc").mkdir()
    folder = root / place
    folder.mkdir(parents=True)
    plan = make_plan(load(tmp_path, f'[computer]\nimage = "{root}"\n{GPU}{GRANTED}'))

    def is_missing() -> bool:
        return any(one.artifact.startswith("There is no libcuda.so.1") for one in find_missing(plan))

    assert is_missing()
    (root / "etc/ld.so.cache").write_bytes(f"glibc-ld.so.cache1.1\0libcuda.so.1\0/{place}/libcuda.so.1\0".encode())
    assert is_missing(), "the cache names what is not there"
    (folder / "libcuda.so.1").touch()
    assert not is_missing()
    # A computer has nothing of /srv, and nothing of this machine's /opt.
    assert has_library(root, "libcuda.so.1", is_image=False) == (place != "opt/nvidia")
    (root / "srv").mkdir()
    (folder / "libcuda.so.1").rename(root / "srv/libcuda.so.1")
    (root / "etc/ld.so.cache").write_bytes(b"libcuda.so.1\0/srv/libcuda.so.1\0")
    assert is_missing()
    mount = f'[[computer.mounts]]\nsource = "{root / "srv"}"\ntarget = "/mnt/driver"\n'
    plan = make_plan(load(tmp_path, f'[computer]\nimage = "{root}"\n{GPU}{GRANTED}{mount}'))
    assert not is_missing()


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
async def test_a_missing_card_ends_the_boot_and_the_doctor_says_what_happened(tmp_path: Path) -> None:
    missing = sorted(find_missing(make_plan(load(tmp_path, GPU + GRANTED))), key=lambda one: "libcuda" in one.artifact)
    assert [one.artifact for one in missing] == [
        "There is no device /dev/nvidia0",
        "There is no device /dev/nvidiactl",
        "There is no device /dev/nvidia-uvm",
        "There is no libcuda.so.1 in the system of the computer",
    ]
    assert {one.needed_by for one in missing} == {"[security.exceptions.gpu]"}
    (tried,) = [
        one async for one in try_exceptions(Home(tmp_path, tmp_path / "run"), BackendChoice("bubblewrap", None))
    ]
    assert (tried.name, tried.is_right) == ("gpu", False)
    assert "There is no device /dev/nvidia0" in tried.seen


@pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="this machine has no GPU")
async def test_a_sealed_program_computes_on_the_card_and_the_doctor_says_which(tmp_path: Path) -> None:
    loaded = load(tmp_path, GPU + GRANTED)
    assert list(find_missing(make_plan(loaded))) == []
    (tried,) = [
        one async for one in try_exceptions(Home(tmp_path, tmp_path / "run"), BackendChoice("bubblewrap", None))
    ]
    assert (tried.name, tried.is_right) == ("gpu", True), tried.seen
    assert "computed for a sealed program. It has no other device." in tried.seen
