"""Budgets are kept: before a question, in the middle of an answer, by many at once, and through a restart."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.egress.models.doorway import PATHS, Doorway, doorway

from freehold.egress.models import ALL, Ledger, Limits
from freehold.egress.models.budget import Budgets, Spent
from freehold.egress.models.ledger import Spell
from freehold.egress.models.usage import Tokens
from freehold.errors import FreeholdError
from freehold.manifest.sections.minds import Budget
from freehold.testing import Api, ScriptedModel, Usage
from freehold.testing.script import Say
from freehold.timeline import Timeline

APIS = pytest.mark.parametrize("api", list(PATHS))
LONG = Say("words and more words, " * 2_000, piece=400)


@APIS
async def test_a_used_up_budget_refuses_in_the_words_of_the_api(api: Api, tmp_path: Path) -> None:
    async with doorway(tmp_path, budget=Budget(day_tokens=150)) as door:
        assert (await door.ask(api)).status_code == 200
        await door.models.usage_of("s1")
        answer = await door.ask(api, "SAY " + "again " * 40)
        assert answer.status_code == 402
        error = answer.json()["error"]
        assert "owner's budget is reached" in error["message"]
        assert "freehold usage lift" in error["message"]
        assert len(door.provider.requests) == 1


@APIS
async def test_an_answer_that_grows_too_long_is_cut_with_a_word(api: Api, tmp_path: Path) -> None:
    provider = ScriptedModel(lambda _conversation: LONG)
    async with doorway(tmp_path, provider=provider, budget=Budget(day_tokens=2_000)) as door:
        answer = await door.ask(api, stream=True)
        assert answer.status_code == 200
        assert "owner's budget is reached" in answer.text
        assert len(answer.text) < 80_000
        for line in answer.text.splitlines():
            assert not line.startswith("data: {") or json.loads(line[6:])
        usage = await door.models.usage_of("s1")
        assert 2_000 <= usage.tokens.total < 4_000
        assert door.events("models.answered")[-1]["outcome"] == "budget-reached"
        assert (await door.ask(api)).status_code == 402


async def test_money_counts_like_tokens(tmp_path: Path) -> None:
    usage = Usage(100_000, 10_000)  # 0.35 dollars of gpt-4o
    async with doorway(tmp_path, usage=usage, budget=Budget(day_cost=0.5)) as door:
        assert (await door.ask()).status_code == 200
        assert (await door.models.usage_of("s1")).cost == pytest.approx(0.35)
        assert (await door.ask()).status_code == 200
        await door.models.usage_of("s1")
        assert (await door.ask()).status_code == 402


async def test_a_model_without_a_price_says_so(door: Doorway) -> None:
    await door.ask(model="nobody-knows-me")
    usage = await door.models.usage_of("s1")
    assert usage.cost is None
    assert usage.tokens.total == 120
    assert door.events("models.answered")[-1]["cost"] is None


async def test_budgets_outlive_the_process(tmp_path: Path) -> None:
    for status in (200, 402):
        async with doorway(tmp_path, budget=Budget(month_tokens=120)) as door:
            assert (await door.ask()).status_code == status
            await door.models.usage_of("s1")


async def test_a_question_that_nobody_saw_the_end_of_stays_counted(tmp_path: Path) -> None:
    async with doorway(tmp_path) as door:
        spell = Spell("openai", "gpt-4o", "s1", None, Tokens(5_000, 1_000), 0.1, True, "open")
        await asyncio.to_thread(door.models.ledger.open, spell)
    async with doorway(tmp_path, budget=Budget(day_tokens=6_000)) as door:
        assert (await door.ask()).status_code == 402
        assert door.events("models.requests_lost") == [{"count": 1}]


async def test_the_owner_is_warned_once_and_told_once(tmp_path: Path) -> None:
    async with doorway(tmp_path, budget=Budget(day_tokens=450)) as door:
        for _ in range(6):
            await door.ask()
            await door.models.usage_of("s1")
        near, full = door.events("models.budget_neared"), door.events("models.budget_reached")
        assert [(event["scope"], event["limit"], event["spent"]) for event in near] == [("openai", "day_tokens", 360.0)]
        assert [event["spent"] for event in full] == [480.0]


async def test_a_question_that_is_too_big_for_what_is_left_is_told_and_can_be_lifted(tmp_path: Path) -> None:
    """The hint names `freehold usage lift`, which lifts what the ledger knows to have refused something."""
    async with doorway(tmp_path, budget=Budget(day_tokens=100)) as door:
        assert (await door.ask("chat", "SAY " + "word " * 200)).status_code == 402
        (event,) = door.events("models.budget_reached")
        assert (event["limit"], event["spent"]) == ("day_tokens", 0.0)
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        assert door.models.ledger.reached() == {("openai", "day_tokens", day)}


async def test_the_owner_lifts_it_for_the_day(tmp_path: Path) -> None:
    async with doorway(tmp_path, budget=Budget(day_tokens=100)) as door:
        await door.ask()
        await door.models.usage_of("s1")
        assert (await door.ask()).status_code == 402
        await door.models.lift("openai", "day_tokens")
        assert (await door.ask()).status_code == 200
    async with doorway(tmp_path, budget=Budget(day_tokens=100)) as door:
        assert (await door.ask()).status_code == 200


async def test_another_budget_applies_at_once_even_when_another_process_sets_it(tmp_path: Path) -> None:
    async with doorway(tmp_path) as door:
        await door.ask()
        await door.models.usage_of("s1")
        with Timeline(tmp_path / "timeline.db") as other:
            await asyncio.to_thread(Ledger(other).set_budget, ALL, Limits(day_tokens=100))
        async with asyncio.timeout(5):
            while (await door.ask("messages")).status_code != 402:
                pass
        await door.models.set_budget(ALL, None)
        assert (await door.ask()).status_code == 200


async def test_the_budget_of_all_counts_every_provider(tmp_path: Path) -> None:
    async with doorway(tmp_path, overall=Limits(day_tokens=240)) as door:
        for api in ("chat", "messages"):
            assert (await door.ask(api)).status_code == 200
            await door.models.usage_of("s1")
        assert (await door.ask("gemini")).status_code == 402


async def test_many_at_once_cannot_overshoot_without_bound(tmp_path: Path) -> None:
    """Each sets aside what it may need before it is sent, so that only the first few are."""
    async with doorway(tmp_path, budget=Budget(day_tokens=5_000)) as door:
        prompt = "FAIL hang " + "word " * 800
        asking = [asyncio.ensure_future(door.ask("chat", prompt, session=f"s{n}")) for n in range(40)]
        done = 0
        async with asyncio.timeout(20):
            while done < 35:
                finished, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                done = len(finished)
        refused = [task for task in asking if task.done()]
        assert all(task.result().status_code == 402 for task in refused)
        assert 1 <= len(door.provider.requests) <= 5
        door.provider.release()
        await asyncio.gather(*asking)


async def test_one_budget_used_up_leaves_the_others_alone(tmp_path: Path) -> None:
    async with doorway(tmp_path) as door:
        await door.models.set_budget("openai", Limits(day_tokens=10))
        assert (await door.ask("chat")).status_code == 402
        assert (await door.ask("messages")).status_code == 200


@pytest.mark.parametrize("value", [0, -1.0])
async def test_a_budget_of_nothing_is_refused(value: float, door: Doorway) -> None:
    with pytest.raises(FreeholdError) as refused:
        await door.models.set_budget("openai", Limits(day_cost=value))
    assert refused.value.code == "models.bad-budget"


def test_a_new_day_begins_with_nothing_spent_and_the_month_goes_on() -> None:
    budgets = Budgets()
    budgets.limits = {"openai": Limits(day_tokens=100, month_tokens=250)}
    first, second, third = (datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3))
    for day in (first, second):
        budgets.settle(budgets.reserve("openai", Spent(), Spent(), day), 100, None, day)
        with pytest.raises(FreeholdError):
            budgets.reserve("openai", Spent(), Spent(), day)
    budgets.settle(budgets.reserve("openai", Spent(), Spent(), third), 50, None, third)
    with pytest.raises(FreeholdError, match="this month"):
        budgets.reserve("openai", Spent(), Spent(), third)
