"""A card in a whole Freehold: an agent computes on it behind the walls of its session, and the owner is told what is open."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold

from freehold.gpu.section import GpuSection
from freehold.gpu.trial import PROGRAM, USUAL
from freehold.timeline import Timeline

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.shared_processes,
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="this machine has no GPU"),
]
MANIFEST = """
[agents.builtin]
model = "local"

[gpu]
enabled = true

[security.exceptions.gpu]
reason = "agents train"
"""
DEVICES = GpuSection(enabled=True).list_devices()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def freehold(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningFreehold]:
    options = FreeholdOptions(agents=("builtin",), manifest=MANIFEST)
    async with run_freehold(tmp_path_factory.mktemp("gpu"), options) as running:
        await until(running.is_connected)
        yield running


async def test_an_agent_computes_on_the_card_and_has_no_other_device(freehold: RunningFreehold) -> None:
    freehold.file("compute.py").write_text(PROGRAM)
    session = await freehold.open("builtin")
    script = "RUN python3 compute.py > card.txt 2>&1\nRUN ls -1 /dev > devices.txt\nSAY done"
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, script)
    assert freehold.file("card.txt").read_text().startswith("NVIDIA ")
    seen = set(freehold.file("devices.txt").read_text().split())
    assert seen - USUAL == {Path(device).name for device in DEVICES}


async def test_an_agent_makes_and_opens_no_other_device_of_the_driver(freehold: RunningFreehold) -> None:
    session = await freehold.open("builtin")
    attempts = (
        "mknod /workspace/uvm-tools c $(awk '/nvidia-uvm/ {print $1}' /proc/devices || echo 510) 1",
        "mknod /tmp/nvidia1 c 195 1",
        "cat /proc/driver/nvidia/version",
        "ls /sys/bus/pci/devices",
        "ls /dev/dri",
    )
    script = "".join(f"RUN ({attempt}) && echo opened >> opened.txt\n" for attempt in attempts)
    async with freehold.watch(session) as watch:
        await freehold.run_turn(watch, session, f"{script}RUN echo tried > tried.txt\nSAY done")
    assert freehold.file("tried.txt").exists()
    assert not freehold.file("opened.txt").exists()


async def test_the_exception_with_its_devices_is_in_status_and_timeline(freehold: RunningFreehold) -> None:
    (one,) = (await freehold.call("GET", "/v1/programs"))["exceptions"]
    assert (one["name"], one["reason"]) == ("gpu", "agents train")
    assert f"Devices: {', '.join(DEVICES)}, to read and write" in one["adds"]
    said = freehold.harness.run("status").stdout
    assert "Exception gpu: agents train" in said
    assert all(device in said for device in DEVICES)
    with Timeline(freehold.home.timeline, readonly=True) as timeline:
        (event,) = timeline.read(kinds=("security.exception",))
    assert (event.data["name"], event.data["reason"]) == ("gpu", "agents train")
