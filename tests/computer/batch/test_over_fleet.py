"""A batch whose computers run on the nodes of a fleet: the same words, the same results."""

import asyncio
from pathlib import Path

from tests.support.fleet import RunningFleet

from freehold.computer import Computer, Limits
from freehold.computer.contract.spec import MIB

SMALL = Limits(memory=96 * MIB, cpus=0.2, tmp=16 * MIB)
FILES, AT_ONCE = 48, 24


def test_a_script_over_files_with_24_computers_at_once_on_two_nodes(fleet: RunningFleet, tmp_path: Path) -> None:
    (tmp_path / "work.sh").write_text('wc -c < "$1"; cp "$1" "$FREEHOLD_RESULTS/copy"\n')
    inputs = [tmp_path / f"{number}.txt" for number in range(FILES)]
    for number, path in enumerate(inputs):
        path.write_text("x" * number)
    out = tmp_path / "out"
    batch = Computer.map(tmp_path / "work.sh", inputs, into=out, parallel=AT_ONCE, limits=SMALL, on=fleet.place)
    summary = asyncio.run(batch.run())
    assert summary.is_done, [one for one in summary.tasks if one.state != "done"]
    for number, task in enumerate(summary.tasks):
        assert task.folder is not None
        assert (out / task.folder / "stdout").read_text() == f"{number}\n"
        assert (out / task.folder / "results/copy").read_text() == "x" * number
