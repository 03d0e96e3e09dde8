"""Budgets hold before a request, in the middle of a response, for many requests at once, and after a restart."""

import asyncio
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.egress.models.gateway_harness import PATHS, GatewayHarness, build_request, run_gateway
from tests.support.condition import DEADLINE

from freehold.egress.models import ALL, BudgetLimits, Ledger, billing
from freehold.egress.models.budget import Budgets, Spending
from freehold.egress.models.ledger import UsageRecord
from freehold.egress.models.model_request import limit_output
from freehold.egress.models.prices import Prices
from freehold.egress.models.usage import TokenCounts
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import BudgetSection
from freehold.testing import Api, ScriptedModel, ScriptedUsage
from freehold.testing.script import Say
from freehold.timeline import Timeline

APIS = pytest.mark.parametrize("api", list(PATHS))
LONG = Say("words and more words, " * 2_000, piece=400)


@APIS
async def test_a_used_up_budget_refuses_in_the_error_format_of_the_api(api: Api, tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=150)) as gateway:
        assert (await gateway.ask(api)).status_code == 200
        await gateway.models.usage_of("s1")
        answer = await gateway.ask(api, "SAY " + "again " * 40)
        assert answer.status_code == 402
        error = answer.json()["error"]
        assert "owner's budget is reached" in error["message"]
        assert "freehold usage lift" in error["message"]
        assert len(gateway.provider.requests) == 1


@APIS
async def test_a_response_that_exceeds_the_budget_is_cut_with_an_error_event(api: Api, tmp_path: Path) -> None:
    provider = ScriptedModel(lambda _conversation: LONG)
    async with run_gateway(tmp_path, provider=provider, budget=BudgetSection(day_tokens=2_000)) as gateway:
        answer = await gateway.ask(api, stream=True)
        assert answer.status_code == 200
        assert "owner's budget is reached" in answer.text
        assert len(answer.text) < 80_000
        for line in answer.text.splitlines():
            assert not line.startswith("data: {") or json.loads(line[6:])
        usage = await gateway.models.usage_of("s1")
        assert 2_000 <= usage.tokens.total < 4_000
        assert gateway.events("models.answered")[-1]["outcome"] == "budget-reached"
        assert (await gateway.ask(api)).status_code == 402


async def test_a_response_that_cannot_be_cut_must_fit_into_the_budget_at_its_most(tmp_path: Path) -> None:
    """Once a response that is not streamed has come, all of it is paid."""
    async with run_gateway(tmp_path, budget=BudgetSection(day_cost=1.0)) as gateway:
        path, body = build_request("chat", model="o1")
        body |= {"max_completion_tokens": 100_000, "n": 8}
        answer = await gateway.http.post(path, json=body, headers=gateway.headers())
        assert (answer.status_code, answer.headers["x-freehold-refused"]) == (402, "models.over-budget")
        message = answer.json()["error"]["message"]
        assert "up to 48" in message
        assert "1 US dollars are left for openai today" in message
        assert "Stream the response" in message
        assert not gateway.provider.requests
        assert not gateway.events("models.budget_reached")
        # A stream is cut in time, and a smaller one fits.
        streamed = await gateway.http.post(path, json=body | {"stream": True}, headers=gateway.headers())
        assert streamed.status_code == 200
        small = await gateway.http.post(path, json=body | {"max_completion_tokens": 1000}, headers=gateway.headers())
        assert small.status_code == 200


async def test_a_stream_of_gemini_that_is_one_list_must_fit_at_its_most(tmp_path: Path) -> None:
    """It is read when it has ended, so it cannot be cut."""
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=2_000)) as gateway:
        path, body = build_request("gemini", stream=True)
        for query, status in (("", 402), ("?alt=json", 402), ("?alt=sse&alt=json", 402), ("?alt=sse", 200)):
            target = path.partition("?")[0] + query
            answer = await gateway.http.post(target, json=body, headers=gateway.headers("gemini"))
            assert answer.status_code == status


async def test_money_counts_like_tokens(tmp_path: Path) -> None:
    usage = ScriptedUsage(100_000, 10_000)  # 0.35 dollars of gpt-4o
    async with run_gateway(tmp_path, usage=usage, budget=BudgetSection(day_cost=0.5)) as gateway:
        assert (await gateway.ask()).status_code == 200
        assert (await gateway.models.usage_of("s1")).cost == pytest.approx(0.35)
        assert (await gateway.ask()).status_code == 200
        await gateway.models.usage_of("s1")
        assert (await gateway.ask()).status_code == 402


async def test_a_model_without_a_price_counts_as_the_dearest_and_says_so(
    gateway: GatewayHarness, caplog: pytest.LogCaptureFixture
) -> None:
    dearest = Prices("https://api.openai.com").find("nobody-knows-me")
    assert dearest is not None
    for _ in range(2):
        await gateway.ask(model="nobody-knows-me")
    usage = await gateway.models.usage_of("s1")
    assert usage.cost == pytest.approx(2 * dearest.cost(TokenCounts(100, 20)).dollars)
    assert (usage.assumed, usage.tokens.total) == (2, 240)
    assert gateway.events("models.answered")[-1]["assumed"] is True
    (logged,) = [record.getMessage() for record in caplog.records if "no price" in record.getMessage()]
    assert "nobody-knows-me of openai" in logged


async def test_a_provider_without_any_price_has_an_unknown_cost(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, prices=lambda _address: Prices("http://127.0.0.1:11434")) as gateway:
        await gateway.ask()
        usage = await gateway.models.usage_of("s1")
        assert (usage.cost, usage.assumed) == (None, 0)


async def test_budgets_survive_a_restart(tmp_path: Path) -> None:
    for status in (200, 402):
        async with run_gateway(tmp_path, budget=BudgetSection(month_tokens=120)) as gateway:
            assert (await gateway.ask()).status_code == status
            await gateway.models.usage_of("s1")


async def test_a_request_whose_end_was_lost_stays_counted(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        spell = UsageRecord("openai", "gpt-4o", "s1", None, TokenCounts(5_000, 1_000), 0.1, True, "open")
        gateway.models.ledger.close(spell, 0, [])
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=6_000)) as gateway:
        assert (await gateway.ask()).status_code == 402
        assert gateway.events("models.requests_lost") == [{"count": 1}]


async def test_a_budget_is_reported_once_when_near_and_once_when_reached(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=450)) as gateway:
        for _ in range(6):
            await gateway.ask()
            await gateway.models.usage_of("s1")
        near, full = gateway.events("models.budget_neared"), gateway.events("models.budget_reached")
        assert [(event["scope"], event["limit"], event["spent"]) for event in near] == [("openai", "day_tokens", 360.0)]
        assert [event["spent"] for event in full] == [480.0]


async def test_a_request_larger_than_the_remaining_budget_is_refused_and_the_limit_can_be_lifted(
    tmp_path: Path,
) -> None:
    """The hint names `freehold usage lift`, which lifts the limits that have refused something."""
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=100)) as gateway:
        assert (await gateway.ask("chat", "SAY " + "word " * 200)).status_code == 402
        (event,) = gateway.events("models.budget_reached")
        assert (event["limit"], event["spent"]) == ("day_tokens", 0.0)
        day = datetime.now(UTC).strftime("%Y-%m-%d")
        assert gateway.models.ledger.reached() == {("openai", "day_tokens", day)}


async def test_the_owner_lifts_it_for_the_day(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=100)) as gateway:
        await gateway.ask()
        await gateway.models.usage_of("s1")
        assert (await gateway.ask()).status_code == 402
        await gateway.models.lift("openai", "day_tokens")
        assert (await gateway.ask()).status_code == 200
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=100)) as gateway:
        assert (await gateway.ask()).status_code == 200


async def test_a_budget_that_another_process_sets_applies_at_once(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        await gateway.ask()
        await gateway.models.usage_of("s1")
        with Timeline(tmp_path / "timeline.db") as other:
            await asyncio.to_thread(Ledger(other).set_budget, ALL, BudgetLimits(day_tokens=100))
        async with asyncio.timeout(DEADLINE):
            while (await gateway.ask("messages")).status_code != 402:
                pass
        await gateway.models.set_budget(ALL, None)
        assert (await gateway.ask()).status_code == 200


async def test_the_budget_of_all_counts_every_provider(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, overall=BudgetLimits(day_tokens=240)) as gateway:
        for api in ("chat", "messages"):
            assert (await gateway.ask(api)).status_code == 200
            await gateway.models.usage_of("s1")
        assert (await gateway.ask("gemini")).status_code == 402


async def test_one_budget_used_up_leaves_the_others_alone(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        await gateway.models.set_budget("openai", BudgetLimits(day_tokens=10))
        assert (await gateway.ask("chat")).status_code == 402
        assert (await gateway.ask("messages")).status_code == 200


@pytest.mark.parametrize("value", [0, -1.0])
async def test_a_budget_of_zero_or_less_is_refused(value: float, gateway: GatewayHarness) -> None:
    with pytest.raises(FreeholdError) as refused:
        await gateway.models.set_budget("openai", BudgetLimits(day_cost=value))
    assert refused.value.code == "models.bad-budget"


async def test_a_new_day_begins_with_nothing_spent_and_the_month_goes_on() -> None:
    budgets = Budgets()
    budgets.limits = {"openai": BudgetLimits(day_tokens=100, month_tokens=250)}
    first, second, third = (datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3))
    for day in (first, second):
        budgets.settle(
            await budgets.reserve("openai", Spending(), Spending(), day, short=Spending()), Spending(100), day
        )
        with pytest.raises(FreeholdError):
            await budgets.reserve("openai", Spending(), Spending(), day, short=Spending())
    budgets.settle(
        await budgets.reserve("openai", Spending(), Spending(), third, short=Spending()), Spending(50), third
    )
    with pytest.raises(FreeholdError, match="this month"):
        await budgets.reserve("openai", Spending(), Spending(), third, short=Spending())


LIMIT_FIELDS: dict[Api, tuple[str, ...]] = {
    "chat": ("max_completion_tokens",),
    "responses": ("max_output_tokens",),
    "messages": ("max_tokens",),
    "gemini": ("generationConfig", "maxOutputTokens"),
}
"""Where a request without a limit gets one."""


def read_sent(gateway: GatewayHarness) -> Any:
    return json.loads(gateway.provider.requests[-1].body)


def find_limit(gateway: GatewayHarness, api: Api) -> int:
    found = read_sent(gateway)
    for name in LIMIT_FIELDS[api]:
        found = found[name]
    assert isinstance(found, int)
    return found


@APIS
async def test_a_stream_may_have_no_more_tokens_than_the_budget_leaves(api: Api, tmp_path: Path) -> None:
    """What a model thinks without sending it is known at the end: only the provider can stop it in time."""
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=5_000)) as gateway:
        assert (await gateway.ask(api, stream=True)).status_code == 200
        allowed = find_limit(gateway, api)
        assert 4_900 < allowed < 5_000
        await gateway.models.usage_of("s1")
        (used,) = gateway.events("models.answered")
        assert (used["input"], used["output"], used["estimated"]) == (100, 20, False)
        assert (await gateway.ask(api, stream=True)).status_code == 200
        # What was used is known now. What was reserved and not used is free again.
        assert find_limit(gateway, api) == allowed - 120


async def test_the_dearest_hidden_thinking_does_not_exceed_a_budget(tmp_path: Path) -> None:
    """An agent asked for 48 dollars of thinking under a budget of one, and got it."""
    async with run_gateway(tmp_path, budget=BudgetSection(day_cost=1.0)) as gateway:
        path, body = build_request("chat", model="o1", stream=True)
        asked = {"max_completion_tokens": 100_000, "max_tokens": 500, "n": 8}
        assert (await gateway.http.post(path, json=body | asked, headers=gateway.headers())).status_code == 200
        sent = read_sent(gateway)
        rates = Prices("https://api.openai.com").find("o1")
        assert rates is not None
        assert 0.98 < rates.cost(TokenCounts(0, 8 * sent["max_completion_tokens"])).dollars <= 1.0
        assert sent["max_tokens"] == 500


async def test_what_fits_is_sent_as_the_agent_wrote_it(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=200_000)) as gateway:
        path, body = build_request("messages", stream=True)
        thinking = {"type": "enabled", "budget_tokens": 31_999}
        limits: dict[str, Any]
        for limits in ({"max_tokens": 32_000, "thinking": thinking}, {}):
            await gateway.http.post(path, json=body | limits, headers=gateway.headers("anthropic"))
            sent = read_sent(gateway)
            assert sent == body | limits


async def test_thinking_keeps_its_place_in_a_smaller_output_or_is_refused(tmp_path: Path) -> None:
    """Anthropic refuses a request whose thinking is not smaller than its output, or smaller than 1,024 tokens."""
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=2_000)) as gateway:
        path, body = build_request("messages", stream=True)
        body |= {"max_tokens": 32_000, "thinking": {"type": "enabled", "budget_tokens": 31_999}}
        headers = gateway.headers("anthropic")
        assert (await gateway.http.post(path, json=body, headers=headers)).status_code == 200
        sent = read_sent(gateway)
        assert 1_024 <= sent["thinking"]["budget_tokens"] < sent["max_tokens"] < 2_000
        await gateway.models.usage_of("s1")
        await gateway.models.set_budget("anthropic", BudgetLimits(day_tokens=1_000))
        refused = await gateway.http.post(path, json=body, headers=headers)
        assert (refused.status_code, refused.headers["x-freehold-refused"]) == (402, "models.budget-reached")
        assert (await gateway.ask("messages", stream=True)).status_code == 200


async def test_streams_at_once_share_what_is_left(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=6_000)) as gateway:
        path, body = build_request("chat", "FAIL hang", stream=True)
        first = asyncio.ensure_future(
            gateway.http.post(path, json=body | {"max_tokens": 4_000}, headers=gateway.headers())
        )
        await gateway.provider.wait_received()
        assert (await gateway.ask(stream=True, session="s2")).status_code == 200
        assert 1_024 < read_sent(gateway)["max_completion_tokens"] < 2_000
        gateway.provider.release()
        await first


async def test_a_stream_whose_agent_is_stopped_while_it_is_fitted_reserves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go = threading.Event(), threading.Event()

    def slow(*args: Any) -> Any:
        reached.set()
        assert go.wait(DEADLINE)
        return limit_output(*args)

    monkeypatch.setattr(billing, "limit_output", slow)
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=5_000)) as gateway:
        asking = asyncio.ensure_future(gateway.ask(stream=True))
        try:
            assert await asyncio.to_thread(reached.wait, DEADLINE)
            await gateway.models.stop()
        finally:
            go.set()
        assert (await asking).status_code == 403
        assert not gateway.provider.requests
        assert not gateway.models.budgets._running
