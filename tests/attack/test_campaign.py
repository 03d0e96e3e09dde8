"""`make attack`: every target runs, a failure names its seed, and an interrupted run goes on."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
from tests.attack.__main__ import main
from tests.attack.campaign import Campaign, CampaignState
from tests.attack.target import AttackTarget, RunRound, list_target_names, load_target


@pytest.mark.parametrize("name", list_target_names())
async def test_a_target_is_attacked_and_nothing_gets_through(name: str, tmp_path: Path) -> None:
    target = load_target(name)
    async with target.open(tmp_path) as run_round:
        assert await run_round(target.random_for(1, 0)) > 0


def make_target(failing_round: int, seen: list[float]) -> AttackTarget:
    rounds = [0]

    @asynccontextmanager
    async def open_target(_folder: Path) -> AsyncIterator[RunRound]:
        async def run_round(random: Random) -> int:
            seen.append(random.random())
            rounds[0] += 1
            assert rounds[0] != failing_round, "something got through"
            return 10

        yield run_round

    return AttackTarget("double", open_target)


async def test_a_failure_prints_its_seed_and_round_and_can_be_repeated(tmp_path: Path) -> None:
    lines: list[str] = []
    seen: list[float] = []
    state = CampaignState(7)
    campaign = Campaign([make_target(3, seen)], state, tmp_path / "state.json", lines.append)
    await campaign.run(0.05)
    assert state.failed
    assert state.targets["double"].failures == [2]
    assert any("--only double --seed 7 --round 2" in line and "something got through" in line for line in lines)
    again: list[float] = []
    assert await Campaign([], state, tmp_path / "state.json", lines.append).repeat_round(make_target(0, again), 2)
    assert again == [seen[2]]


async def test_an_interrupted_run_goes_on_with_the_next_round(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    seen: list[float] = []
    state = CampaignState(7)
    await Campaign([make_target(0, seen)], state, file, print).run(0.02)
    loaded = CampaignState.load(file)
    assert loaded == state
    await Campaign([make_target(0, seen)], loaded, file, print).run(loaded.elapsed + 0.02)
    assert loaded.targets["double"].next_round == len(seen)
    assert len(set(seen)) == len(seen)
    assert json.loads(file.read_text())["targets"]["double"]["tried"] == 10 * len(seen)


@pytest.mark.parametrize("words", [["--round", "1"], ["--resume", "--seed", "1"], ["--only", "nothing"]])
def test_wrong_arguments_are_explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert "error:" in capsys.readouterr().err
