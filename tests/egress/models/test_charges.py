"""A question that was sent counts at its most until the provider has said what it used."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.egress.models.forbidden_requests import harmless, submit
from tests.egress.models.gateway_harness import PATHS, PROVIDER_OF, GatewayHarness, build_request, run_gateway
from tests.egress.models.recording_provider import Answer, SeenRequest, gateway_to, recording_provider
from tests.support.condition import DEADLINE, until

from freehold.egress.models import ALL, BudgetLimits, Ledger, budget, relay
from freehold.egress.models.billing import MAX_OUTPUT, find_most
from freehold.egress.models.budget_state import list_budget_states
from freehold.egress.models.ledger import UsageRecord, ensure_tables
from freehold.egress.models.meter import Meter
from freehold.egress.models.model_request import ModelRequest
from freehold.egress.models.open_requests import FILE_NAME, MAX_BYTES, OpenRequests
from freehold.egress.models.paths import RequestForm
from freehold.egress.models.prices import Prices
from freehold.egress.models.schema import SCHEMA
from freehold.egress.models.usage import TokenCounts, TokenKinds
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import BudgetSection
from freehold.testing import Api, ScriptedUsage
from freehold.timeline import Timeline

APIS = pytest.mark.parametrize("api", list(PATHS))
LIMITS: dict[Api, dict[str, Any]] = {
    "chat": {"max_tokens": 500, "n": 2},
    "responses": {"max_output_tokens": 1000},
    "messages": {"max_tokens": 1000},
    "gemini": {"generationConfig": {"maxOutputTokens": 250, "candidateCount": 4}},
}
"""Each allows a thousand output tokens in all."""


async def post(gateway: GatewayHarness, api: Api, prompt: str, session: str = "s1", **more: Any) -> Any:
    path, body = build_request(api, prompt)
    headers = gateway.headers(PROVIDER_OF[api], session)
    return await gateway.http.post(path, json={**body, **LIMITS[api], **more}, headers=headers)


async def hang_up(gateway: GatewayHarness, count: int, api: Api = "chat") -> None:
    """Sends so many questions that are not answered yet, and closes their connections."""
    before = len(gateway.provider.requests)
    asking = [asyncio.ensure_future(post(gateway, api, "FAIL hang")) for _ in range(count)]
    async with asyncio.timeout(DEADLINE):
        await gateway.provider.wait_received(before + count)
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


async def recorded(gateway: GatewayHarness, count: int = 1) -> list[Any]:
    """The records of so many requests, once they are written."""
    await until(lambda: len(gateway.events("models.answered")) >= count)
    return list(gateway.events("models.answered"))


@pytest.fixture
def no_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a hang-up the response is not read on."""
    monkeypatch.setattr(relay, "DRAIN_TIMEOUT", 0.0)


@pytest.mark.usefixtures("no_drain")
async def test_forty_questions_closed_before_the_answer_count_at_their_most(gateway: GatewayHarness) -> None:
    await hang_up(gateway, 40)
    events = await recorded(gateway, 40)
    assert [event["output"] for event in events] == [1000] * 40
    assert all(event["estimated"] and event["outcome"] == "cancelled" for event in events)
    usage = await gateway.models.usage_of("s1")
    assert (usage.tokens.output, usage.estimated) == (40_000, 40)
    assert usage.cost is not None
    assert usage.cost >= 40_000 * 10 / 1_000_000  # the output price of gpt-4o


@APIS
@pytest.mark.usefixtures("no_drain")
async def test_a_hang_up_counts_at_the_most_in_every_api(api: Api, gateway: GatewayHarness) -> None:
    await hang_up(gateway, 1, api)
    (event,) = await recorded(gateway)
    assert event["output"] == 1000


@pytest.mark.usefixtures("no_drain")
async def test_a_hang_up_counts_the_dearest_model_that_may_have_responded(gateway: GatewayHarness) -> None:
    asking = asyncio.ensure_future(post(gateway, "chat", "FAIL hang", model="gpt-4o-mini", models=["o1-pro"]))
    await gateway.provider.wait_received()
    asking.cancel()
    (event,) = await recorded(gateway)
    assert event["cost"] >= 1000 * 600 / 1_000_000  # the output price of o1-pro


@pytest.mark.usefixtures("no_drain")
async def test_a_hang_up_counts_the_surcharge_of_a_chosen_region(gateway: GatewayHarness) -> None:
    costs = []
    for session, more in (("plain", {}), ("chosen", {"inference_geo": "us"})):
        before = len(gateway.provider.requests)
        asking = asyncio.ensure_future(post(gateway, "messages", "FAIL hang", session, **more))
        await gateway.provider.wait_received(before + 1)
        asking.cancel()
        costs.append((await recorded(gateway, before + 1))[-1]["cost"])
    assert costs[1] >= 1.09 * costs[0]


def answer_with(kind: str, body: bytes) -> Answer:
    async def answer(_request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    return answer


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"choices": []}'),
        ("application/x-protobuf", b"\x0a\x02hi"),
        ("text/event-stream", b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\ndata: [DONE]\n\n'),
        (
            "text/event-stream",
            b'data: {"choices": [{"delta": {}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}\n\n'
            b'data: {"error": {"message": "overloaded"}}\n\n',
        ),
    ],
    ids=["no counts", "not JSON", "stream without counts", "stream that ends with an error"],
)
async def test_an_answer_that_ends_without_its_counts_is_charged_at_its_most(
    kind: str, body: bytes, tmp_path: Path
) -> None:
    async with recording_provider(answer_with(kind, body)) as provider, gateway_to(tmp_path, provider.port) as gateway:
        sent = {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}
        path = "/openai/v1/chat/completions"
        assert (await gateway.http.post(path, json=sent, headers=gateway.headers())).status_code == 200
        (event,) = await recorded(gateway)
        assert (event["output"], event["estimated"]) == (1000, True)


@pytest.mark.parametrize(
    "ends", [b"", b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n']
)
async def test_a_stream_that_breaks_off_without_its_last_counts_is_charged_at_its_most(
    ends: bytes, tmp_path: Path
) -> None:
    """Anthropic sends the first counts with the first event: the whole prompt, and one token of output."""
    first = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 10, "output_tokens": 1}}}
    said = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "words " * 100}}
    answer = answer_with("text/event-stream", stream(first, said) + ends)
    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        sent = {"model": "m", "max_tokens": 1000, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        await gateway.http.post("/openai/v1/messages", json=sent, headers=gateway.headers())
        (event,) = await recorded(gateway)
        assert (event["output"], event["estimated"]) == (1000, True)


async def test_a_server_that_does_not_stream_although_it_was_asked_to_is_charged_what_it_reports(
    tmp_path: Path,
) -> None:
    body = json.dumps({"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    answer = answer_with("application/json", body.encode())
    async with recording_provider(answer) as provider, gateway_to(tmp_path, provider.port) as gateway:
        path, sent = build_request("chat", stream=True)
        await gateway.http.post(path, json=sent, headers=gateway.headers())
        (event,) = await recorded(gateway)
        assert (event["input"], event["output"], event["estimated"]) == (7, 3, False)


@APIS
async def test_after_a_hang_up_the_response_is_read_to_its_end_and_the_truth_counts(
    api: Api, gateway: GatewayHarness
) -> None:
    await hang_up(gateway, 1, api)
    gateway.provider.release()
    (event,) = await recorded(gateway)
    assert (event["outcome"], event["input"], event["output"], event["estimated"]) == ("cancelled", 100, 20, False)
    assert gateway.provider.disconnected == 0


async def test_until_the_truth_is_known_the_budget_holds_the_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "FREE_TIMEOUT", 0.0)
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=1_500)) as gateway:
        await hang_up(gateway, 1)
        refused = await post(gateway, "chat", "SAY " + "more " * 100)
        assert refused.status_code == 402
        assert "reserved by requests that still run" in refused.json()["error"]["message"]
        gateway.provider.release()
        await recorded(gateway)
        assert (await post(gateway, "chat", "SAY " + "more " * 100)).status_code == 200


@APIS
@pytest.mark.parametrize("fault", ["disconnect", "cut"])
async def test_a_provider_that_fails_after_the_question_was_sent_may_charge_for_it(
    api: Api, fault: str, gateway: GatewayHarness
) -> None:
    path, body = build_request(api, f"FAIL {fault}", stream=api != "gemini" or fault == "cut")
    headers = gateway.headers(PROVIDER_OF[api])
    with contextlib.suppress(httpx2.HTTPError):  # the client may see that its response was cut
        await gateway.http.post(path, json={**body, **LIMITS[api]}, headers=headers)
    (event,) = await recorded(gateway)
    assert (event["output"], event["estimated"]) == (1000, True)


@pytest.mark.parametrize("fault", ["429", "500", "overflow"])
async def test_a_provider_that_refuses_charges_nothing(fault: str, gateway: GatewayHarness) -> None:
    await post(gateway, "chat", f"FAIL {fault}")
    (event,) = await recorded(gateway)
    assert (event["input"], event["output"], event["cost"]) == (0, 0, 0.0)


async def test_the_kill_switch_leaves_a_running_question_at_its_most(gateway: GatewayHarness) -> None:
    asking = asyncio.ensure_future(post(gateway, "chat", "FAIL hang"))
    await gateway.provider.wait_received()
    await gateway.models.stop()
    assert (await asking).status_code == 403
    (event,) = await recorded(gateway)
    assert (event["outcome"], event["output"]) == ("stopped", 1000)


async def test_a_question_is_recorded_at_its_most_before_it_is_sent(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        asking = asyncio.ensure_future(post(gateway, "chat", "FAIL hang"))
        await gateway.provider.wait_received()
        (record,) = OpenRequests(tmp_path / FILE_NAME).load()
        assert (record.tokens.output, record.estimated, record.outcome) == (1000, True, "open")
        assert (await gateway.models.usage_of("s1")).tokens.output == 0  # a report shows what was seen so far
        gateway.provider.release()
        await asking


async def test_a_question_whose_cost_cannot_be_recorded_is_not_sent(
    gateway: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: OpenRequests, record: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(OpenRequests, "begin", full)
    answer = await post(gateway, "chat", "SAY hello")
    assert answer.status_code == 503
    assert "its cost cannot be recorded: No space left" in answer.json()["error"]["message"]
    assert not gateway.provider.requests


_VICTIM = """
import asyncio, sys
from pathlib import Path
from tests.egress.models.gateway_harness import run_gateway
from tests.egress.models.test_charges import post

async def main():
    async with run_gateway(Path(sys.argv[1])) as gateway:
        asking = [asyncio.ensure_future(post(gateway, "chat", "FAIL hang", session=f"s{n}")) for n in range(3)]
        await gateway.provider.wait_received(3)
        print("sent", flush=True)
        await asyncio.gather(*asking)

asyncio.run(main())
"""


async def test_questions_that_ran_when_the_gateway_was_killed_count_at_their_most(tmp_path: Path) -> None:
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _VICTIM, str(tmp_path), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    try:
        assert victim.stdout is not None
        async with asyncio.timeout(DEADLINE):
            assert await victim.stdout.readline() == b"sent\n"
        victim.send_signal(signal.SIGKILL)
    finally:
        await victim.wait()
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=3_000)) as gateway:
        assert gateway.events("models.requests_lost") == [{"count": 3}]
        assert (await gateway.models.usage_of("s1")).tokens.output == 1000
        assert (await post(gateway, "chat", "SAY hello")).status_code == 402


async def test_fifty_questions_at_once_cannot_pass_a_budget_that_holds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "FREE_TIMEOUT", 0.0)
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=1_200)) as gateway:
        asking = [asyncio.ensure_future(post(gateway, "chat", "FAIL hang " + "x" * 200, f"s{n}")) for n in range(50)]
        await until(lambda: sum(task.done() for task in asking) == 49)
        assert {task.result().status_code for task in asking if task.done()} == {402}
        assert len(gateway.provider.requests) == 1
        gateway.provider.release()
        await asyncio.gather(*asking)


async def test_questions_at_once_wait_for_each_other_when_the_budget_holds_all(tmp_path: Path) -> None:
    """Each reserves a thousand tokens and uses 120, so all fit one after the other."""
    async with run_gateway(tmp_path, overall=BudgetLimits(day_tokens=1_800)) as gateway:
        answers = await asyncio.gather(*(post(gateway, "chat", "SAY hello", f"s{n}") for n in range(6)))
        assert [answer.status_code for answer in answers] == [200] * 6


async def test_a_question_that_waits_for_its_budget_is_not_sent_after_the_kill_switch(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=1_200)) as gateway:
        asking = [asyncio.ensure_future(post(gateway, "chat", "FAIL hang " + "x" * 200, f"s{n}")) for n in range(2)]
        await gateway.provider.wait_received()
        await gateway.models.stop()
        assert [answer.status_code for answer in await asyncio.gather(*asking)] == [403, 403]
        assert len(gateway.provider.requests) == 1


async def test_a_question_that_waits_is_not_sent_after_its_session_has_ended(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, budget=BudgetSection(day_tokens=1_200)) as gateway:
        prompt = "FAIL hang " + "x" * 200
        first = asyncio.ensure_future(post(gateway, "chat", prompt, "s1"))
        await gateway.provider.wait_received()
        second = asyncio.ensure_future(post(gateway, "chat", prompt, "s2"))
        await until(lambda: len(gateway.models._server._running) == 2)
        gateway.models.end_session("s2")
        assert (await second).status_code == 403
        gateway.provider.release()
        assert (await first).status_code == 200
        assert len(gateway.provider.requests) == 1


async def test_a_dearer_tier_costs_more(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, usage=ScriptedUsage(1_000_000, 100_000)) as gateway:
        await post(gateway, "chat", "SAY hello", "plain")
        await post(gateway, "chat", "SAY hello", "fast", service_tier="priority")
        assert (await gateway.models.usage_of("plain")).cost == pytest.approx(3.5)
        assert (await gateway.models.usage_of("fast")).cost == pytest.approx(5.95)


async def test_the_ledger_of_an_older_freehold_gains_the_new_column(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("models", *SCHEMA[:2])
        with timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO models_usage (at, provider, model, session, input, output, cached, written, cost, estimated,"
                " outcome) VALUES ('2026-11-01T00:00:00Z', 'p', 'm', 's', 1, 2, 0, 0, 0.5, 0, 'answered')"
            )
        ensure_tables(timeline)
        usage = Ledger(timeline).usage("s")
        assert (usage.cost, usage.assumed) == (0.5, 0)


def open_record(session: str) -> UsageRecord:
    return UsageRecord(
        "openai", "gpt-4o", session, None, TokenCounts(5, 1_000), 0.1, True, "open", f"2026-11-01T{session}"
    )


def test_requests_that_have_not_ended_survive_in_their_file(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    requests = OpenRequests(path)
    requests.clear()
    numbers = {session: requests.begin(open_record(session)) for session in ("a", "b", "c")}
    requests.end(numbers["b"])
    requests.end(numbers["b"])
    assert OpenRequests(path).load() == [open_record("a"), open_record("c")]
    with path.open("ab") as file:
        file.write(b'[9, {"provider": "openai", "mod')  # the process was killed while it wrote
    assert OpenRequests(path).load() == [open_record("a"), open_record("c")]
    requests.end(numbers["a"])
    requests.end(numbers["c"])
    assert path.read_bytes() == b""
    requests.close()


def test_the_file_of_open_requests_stays_small(tmp_path: Path) -> None:
    requests = OpenRequests(tmp_path / FILE_NAME)
    requests.clear()
    requests.begin(open_record("stays"))
    for number in range(MAX_BYTES // 200):
        requests.end(requests.begin(open_record(str(number))))
    assert (tmp_path / FILE_NAME).stat().st_size <= MAX_BYTES
    assert OpenRequests(tmp_path / FILE_NAME).load() == [open_record("stays")]
    requests.close()


def test_a_lost_request_is_counted_once(tmp_path: Path) -> None:
    """The process may be killed again before the file is emptied, or after a request was recorded."""
    with Timeline(tmp_path / "timeline.db") as timeline:
        ensure_tables(timeline)
        ledger = Ledger(timeline)
        ledger.close(replace(open_record("a"), outcome="answered"), 1, [])
        assert ledger.close_lost([open_record("a"), open_record("b")]) == 1
        assert ledger.close_lost([open_record("a"), open_record("b")]) == 0
        assert ledger.usage("b").tokens.output == 1_000


# What a request allows


@pytest.mark.parametrize(
    ("form", "change", "output", "responses"),
    [
        ("chat", {"max_completion_tokens": 70}, 70, 1),
        ("chat", {"max_completion_tokens": None}, None, 1),
        ("chat", {"max_tokens": 700, "max_completion_tokens": 70}, 700, 1),
        ("chat", {"n": 5}, 100, 5),
        ("chat", {"n": 0}, 100, 1),
        ("completion", {"best_of": 4, "n": 2}, 5, 4),
        ("completion", {"prompt": ["a", "b", "c"], "n": 2}, 5, 6),
        ("completion", {"prompt": [1, 2, 3]}, 5, 1),
        ("completion", {"prompt": [[1, 2], [3]]}, 5, 2),
        ("embedding", {}, 0, 1),
        ("responses", {"max_output_tokens": 9}, 9, 1),
        ("messages", {"max_tokens": 8}, 8, 1),
        ("generate", {"generationConfig": {"maxOutputTokens": 6, "candidateCount": 3}}, 6, 3),
        ("generate", {"generationConfig": {"max_output_tokens": 6, "candidate_count": 3}}, 6, 3),
        ("embed", {}, 0, 1),
    ],
)
def test_the_most_is_read_from_the_request(
    form: RequestForm, change: dict[str, Any], output: int | None, responses: int
) -> None:
    request = submit(form, json.dumps(harmless(form) | change).encode())
    assert (request.max_output, request.responses) == (output, responses)


def test_gemini_settings_under_their_other_name_count_too() -> None:
    content = harmless("generate")
    content["generation_config"] = content.pop("generationConfig") | {"maxOutputTokens": 77}
    assert submit("generate", json.dumps(content).encode()).max_output == 77


@pytest.mark.parametrize(
    ("request_", "output"),
    [
        (ModelRequest(b"", "gpt-4o", True, 10, 50, 3), 150),
        (ModelRequest(b"", "gpt-4o", True, 10, None), 128_000),
        (ModelRequest(b"", "gpt-4", True, 10, None), 8_192),
        (ModelRequest(b"", "gpt-4", True, 10, 10**12), 8_192),
        (ModelRequest(b"", "nobody-knows-me", True, 10, None, 2), 2 * MAX_OUTPUT),
    ],
)
def test_without_a_limit_of_its_own_a_request_can_have_the_models_most(request_: ModelRequest, output: int) -> None:
    assert find_most(request_, Prices("https://api.openai.com")).tokens == TokenCounts(10, output)


def test_of_several_models_the_dearest_is_reserved() -> None:
    prices = Prices("https://api.openai.com")
    alone = find_most(ModelRequest(b"", "gpt-4o-mini", True, 10, 100), prices)
    both = find_most(ModelRequest(b"", "gpt-4o-mini", True, 10, 100, alternatives=("o1-pro",)), prices)
    assert alone.cost is not None
    assert both.cost is not None
    assert both.cost.dollars > 100 * alone.cost.dollars


def test_auto_and_a_chosen_region_are_reserved_at_their_dearest() -> None:
    prices = Prices("https://api.openai.com")
    most = [
        find_most(ModelRequest(b"", "gpt-4o", True, 0, 1_000_000, tiers=tiers), prices).cost
        for tiers in ((), ("auto",))
    ]
    assert [cost.dollars if cost else None for cost in most] == [pytest.approx(1.28), pytest.approx(2.176)]
    content = harmless("messages") | {"inference_geo": "us", "speed": "fast"}
    request = submit("messages", json.dumps(content).encode())
    assert (request.surcharge, request.tiers, request.long_cache) == (1.1, ("fast",), True)


def test_of_two_tiers_the_dearer_is_reserved() -> None:
    prices = Prices("https://api.openai.com")
    content = harmless("messages") | {"service_tier": "standard_only", "speed": "fast", "model": "gpt-4o"}
    request = submit("messages", json.dumps(content).encode())
    both, plain = (find_most(each, prices).cost for each in (request, replace(request, tiers=())))
    assert both is not None
    assert plain is not None
    assert both.dollars > plain.dollars


def test_a_long_cache_costs_more_however_it_is_spelled() -> None:
    plain = json.dumps(harmless("messages")).encode()
    assert b'"1h"' in plain
    assert submit("messages", plain.replace(b'"1h"', rb'"\u0031h"')).long_cache


TEXT = "A" * 400_000
HIDDEN = "data:image/png;base64," + TEXT


@pytest.mark.parametrize(
    "content",
    [
        {"messages": [{"role": "user", "content": TEXT + " base64 data:"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": HIDDEN}]}]},
        {"messages": [{"role": "user", "content": "漢" * 134_000 + "data:"}]},
        {"messages": [{"role": "user", "content": "x"}], "metadata": {"url": HIDDEN}},
        {
            "messages": [
                {"role": "user", "content": [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": TEXT}}]}
            ]
        },
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "1", "name": "x", "input": {"type": "base64", "data": TEXT}}],
                }
            ]
        },
    ],
    ids=["marker", "data URL as text", "three bytes a character", "metadata", "text document", "tool input"],
)  # fmt: skip
def test_no_text_counts_as_a_picture(content: dict[str, Any]) -> None:
    """Nobody reads the truth when the agent hangs up: then the prompt counts as it was estimated."""
    form: RequestForm = "messages" if "source" in str(content) or "tool_use" in str(content) else "chat"
    body = {"model": "m", "max_tokens": 1, **content}
    assert submit(form, json.dumps(body).encode()).estimate >= 100_000


def test_a_prompt_of_token_numbers_counts_each() -> None:
    body = {"model": "m", "prompt": [[1] * 50_000, [2] * 50_000], "user": "data:"}
    assert submit("completion", json.dumps(body).encode()).estimate >= 100_000


@pytest.mark.parametrize(("kind", "tokens"), [("image/png", 1_600), ("application/pdf", 12_500)])
def test_media_are_estimated_by_their_kind(kind: str, tokens: int) -> None:
    block = {"type": "image" if "image" in kind else "document"}
    source = {"type": "base64", "media_type": kind, "data": TEXT}
    content = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [{**block, "source": source}]}]}
    assert tokens <= submit("messages", json.dumps(content).encode()).estimate < tokens + 100


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("responses", {"input": [{"type": "local_shell_call", "action": {"env": {"data": TEXT, "url": HIDDEN}}}]}),
        (
            "chat",
            {
                "messages": [],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"url": HIDDEN, "file_data": TEXT}},
                },
            },
        ),
    ],
)
def test_text_under_the_name_of_a_picture_counts_as_text(form: RequestForm, content: dict[str, Any]) -> None:
    assert submit(form, json.dumps({"model": "m", **content}).encode()).estimate >= 200_000


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ("messages", {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}),
        ("chat", {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}),
        ("chat", {"type": "input_audio", "input_audio": {"format": "mp3", "data": "AAAA"}}),
        ("chat", {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,AAAA"}}),
        ("chat", {"type": "image_url", "image_url": "data:video/mp4;base64,AAAA"}),
    ],
)  # fmt: skip
def test_a_small_document_may_fill_the_window_of_its_model(form: RequestForm, part: dict[str, Any]) -> None:
    """A PDF of 14 kB can hold 600,000 words."""
    body = {"model": "gpt-4o", "max_tokens": 1, "messages": [{"role": "user", "content": [part]}]}
    request = submit(form, json.dumps(body).encode())
    assert request.estimate < 2_000
    assert find_most(request, Prices("https://api.openai.com")).tokens == TokenCounts(128_000, 1)


def test_a_picture_does_not_fill_the_window() -> None:
    for form in ("chat", "messages", "responses", "generate"):
        assert not submit(form, json.dumps(harmless(form)).encode()).fills_window


@pytest.mark.parametrize("value", ["128", 128.0, 1.5, True, [128], {"a": 1}])
@pytest.mark.parametrize(
    ("form", "name"),
    [("chat", "n"), ("chat", "max_tokens"), ("chat", "max_completion_tokens"), ("completion", "best_of")]
    + [("responses", "max_output_tokens"), ("messages", "max_tokens")]
    + [("generate", name) for name in ("maxOutputTokens", "max_output_tokens", "candidateCount", "candidate_count")],
)
def test_a_count_that_is_not_a_whole_number_is_refused(form: RequestForm, name: str, value: object) -> None:
    """A lenient server reads "128" as 128."""
    content = harmless(form)
    content |= {"generationConfig": {name: value}} if form == "generate" else {name: value}
    with pytest.raises(FreeholdError) as refused:
        submit(form, json.dumps(content).encode())
    assert refused.value.code == "models.malformed"
    assert name in refused.value.message


@pytest.mark.parametrize(("name", "most"), [("max_completion_tokens", None), ("n", 100)])
def test_below_zero_means_no_limit(name: str, most: int | None) -> None:
    request = submit("chat", json.dumps(harmless("chat") | {"max_tokens": 100, name: -1}).encode())
    assert (request.max_output, request.responses) == (most, 1)


def test_a_huge_number_of_responses_is_refused() -> None:
    with pytest.raises(FreeholdError, match="at most 1024"):
        submit("chat", json.dumps(harmless("chat") | {"n": 2**62}).encode())


# What a response reports


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


@pytest.mark.parametrize(
    ("api", "early"),
    [
        ("chat", {"choices": [{"delta": {"content": "a"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}),
        ("responses", {"type": "response.in_progress", "response": {"usage": {"input_tokens": 9, "output_tokens": 1}}}),
        ("messages", {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}),
        ("messages", {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 1}}),
        (
            "gemini",
            {"candidates": [{"content": {}}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}},
        ),
    ],
)
@pytest.mark.parametrize("after", [b"", b'data: {"type": "error", "error": {"message": "overloaded"}}\n\n'])
def test_a_report_in_the_middle_is_not_the_last_word(api: Api, early: dict[str, Any], after: bytes) -> None:
    """Otherwise a stream that the provider breaks off costs its first words only."""
    meter = Meter(api, streamed=True, estimate=3)
    meter.feed(stream(early) + after)
    meter.end()
    assert not meter.final


USAGE = {"prompt_tokens": 9, "completion_tokens": 1}
LAST_EVENTS: list[tuple[Api, bytes]] = [
    ("chat", stream({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": USAGE})),
    ("chat", stream({"choices": [{"delta": {}, "finish_reason": None}], "usage": USAGE}) + b"data: [DONE]\n\n"),
    (
        "gemini",
        stream(
            {
                "candidates": [{"finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1},
            }
        ),
    ),
    (
        "gemini",
        stream({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 1}}),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("api", "last"), LAST_EVENTS)
def test_the_counts_of_a_response_that_is_complete_hold_once_it_has_ended(api: Api, last: bytes) -> None:
    meter = Meter(api, streamed=True, estimate=3)
    meter.feed(last)
    assert not meter.final
    meter.end()
    assert (meter.final, meter.seen) == (True, TokenCounts(9, 1))


@pytest.mark.parametrize(("api", "last"), LAST_EVENTS)
def test_counts_before_an_error_or_an_event_that_is_too_long_are_not_final(
    api: Api, last: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.egress.models.meter.MAX_READ", 1_000)
    for more in (b'data: {"error": {"code": 500}}\n\n', b"data: " + b"x" * 2_000 + b"\n\n"):
        meter = Meter(api, streamed=True, estimate=3)
        meter.feed(last)
        for start in range(0, len(more), 100):
            meter.feed(more[start : start + 100])
        meter.end()
        assert not meter.final


def test_the_events_of_gemini_in_one_list_are_counted_like_a_stream() -> None:
    counts = {"promptTokenCount": 9, "candidatesTokenCount": 5}
    whole = {"candidates": [{"finishReason": "STOP"}], "usageMetadata": counts}
    for events, is_final in (([whole], True), ([whole, {"error": {"code": 500}}], False)):
        meter = Meter("gemini", streamed=False, estimate=3)
        meter.feed(json.dumps(events).encode())
        meter.end()
        assert meter.final is is_final


def test_the_kinds_of_tokens_and_the_tier_are_read() -> None:
    meter = Meter("messages", streamed=False, estimate=0)
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 50,
        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30},
        "output_tokens": 5,
        "server_tool_use": {"web_search_requests": 2},
        "service_tier": "priority",
    }
    meter.feed(json.dumps({"type": "message", "usage": usage}).encode())
    meter.end()
    assert meter.kinds == TokenKinds(written_1h=30, searches=2)
    assert (meter.tier, meter.seen) == ("priority", TokenCounts(60, 5, 0, 50))

    meter = Meter("chat", streamed=False, estimate=0)
    details = {"audio_tokens": 4, "reasoning_tokens": 3}
    usage = {"prompt_tokens": 9, "completion_tokens": 8, "completion_tokens_details": details}
    meter.feed(json.dumps({"service_tier": "flex", "usage": usage}).encode())
    meter.end()
    assert (meter.tier, meter.kinds) == ("flex", TokenKinds(output_audio=4, reasoning=3))

    meter = Meter("gemini", streamed=False, estimate=0)
    usage = {
        "promptTokenCount": 9,
        "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 7}, {"modality": "TEXT", "tokenCount": 2}],
        "trafficType": "ON_DEMAND_PRIORITY",
    }
    meter.feed(json.dumps({"usageMetadata": usage}).encode())
    meter.end()
    assert (meter.tier, meter.kinds) == ("priority", TokenKinds(input_audio=7))


def test_what_the_provider_did_on_the_way_counts() -> None:
    """Anthropic reports the summing up of a long conversation apart from the answer."""
    meter = Meter("messages", streamed=False, estimate=0)
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "iterations": [
            {"type": "compaction", "input_tokens": 900, "output_tokens": 90},
            {"type": "message", "input_tokens": 10, "output_tokens": 5},
        ],
    }
    meter.feed(json.dumps({"type": "message", "usage": usage}).encode())
    meter.end()
    assert meter.seen == TokenCounts(910, 95)


async def test_usage_and_budgets_say_that_a_price_was_assumed(tmp_path: Path) -> None:
    async with run_gateway(tmp_path, overall=BudgetLimits(day_cost=100.0)) as gateway:
        await gateway.ask(model="nobody-knows-me")
        await recorded(gateway)
        (row,) = gateway.models.ledger.report("day")
        assert (row.usage.assumed, row.usage.cost is not None) == (1, True)
        (state,) = list_budget_states(gateway.models.budgets)
        assert (state.scope, state.assumed, state.unpriced) == (ALL, 1, 0)
        assert state.spent > 0
