"""The guide and the examples are run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guides" / "computer.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", GUIDE, re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_shows_what_it_prints() -> None:
    assert len(BLOCKS) == GUIDE.count("```python")


@pytest.mark.parametrize(("block", "output"), BLOCKS, ids=range(len(BLOCKS)))
def test_the_guide_is_true(block: str, output: str) -> None:
    assert run("-c", block) == output


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_and_is_short(example: Path) -> None:
    assert run(str(example))
    body = example.read_text().split("async def", 1)[1]
    assert len(body.splitlines()) <= 20
