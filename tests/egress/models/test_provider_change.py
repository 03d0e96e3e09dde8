"""Providers change while requests run: nothing goes to the former place, and each subscription is sent as its vendor wants."""

from dataclasses import replace
from pathlib import Path

from tests.egress.models.gateway_harness import KEY, GatewayHarness, build_request, run_gateway

from freehold.egress.models import BudgetLimits, read_providers
from freehold.manifest.sections.models import BudgetSection, ModelSection
from freehold.testing import ScriptedModel


async def ask(gateway: GatewayHarness, headers: dict[str, str]) -> int:
    path, body = build_request("chat")
    return (await gateway.http.post(path, json=body, headers=headers)).status_code


async def test_after_a_change_of_the_address_the_key_goes_to_the_new_place_only(tmp_path: Path) -> None:
    async with ScriptedModel() as other, run_gateway(tmp_path) as gateway:
        headers = gateway.headers()
        assert await ask(gateway, headers) == 200
        moved = {"openai": ModelSection(kind="openai", base_url=f"{other.url}/v1", key="secret:real")}
        await gateway.models.set_providers(read_providers(moved), BudgetLimits())
        assert await ask(gateway, headers) == 200
        assert (len(gateway.provider.requests), len(other.requests)) == (1, 1)
        assert other.requests[0].key == KEY


async def test_a_provider_that_is_gone_is_refused_and_one_that_is_new_is_served(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        headers = gateway.headers()
        before = gateway.models.providers["openai"]
        await gateway.models.set_providers({"second": replace(before, name="second")}, BudgetLimits())
        assert await ask(gateway, headers) == 404
        path, body = build_request("chat")
        answer = await gateway.http.post(
            path.replace("/openai/", "/second/"), json=body, headers=gateway.headers("second", "s2")
        )
        assert answer.status_code == 200
        assert len(gateway.provider.requests) == 1


async def test_budgets_of_the_manifest_follow_it(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        assert await ask(gateway, gateway.headers()) == 200
        url = f"{gateway.provider.url}/v1"
        small = ModelSection(kind="openai", base_url=url, key="secret:real", budget=BudgetSection(day_tokens=1))
        await gateway.models.set_providers(read_providers({"openai": small}), BudgetLimits())
        assert await ask(gateway, gateway.headers()) == 402
        await gateway.models.set_providers(
            read_providers({"openai": small.model_copy(update={"budget": BudgetSection()})}), BudgetLimits()
        )
        assert await ask(gateway, gateway.headers()) == 200


async def test_the_token_of_a_claude_subscription_is_a_bearer_with_its_beta(tmp_path: Path) -> None:
    async with run_gateway(tmp_path) as gateway:
        plain = gateway.models.providers["anthropic"]
        await gateway.models.set_providers({"anthropic": replace(plain, auth="claude-code")}, BudgetLimits())
        path, body = build_request("messages")
        betas: tuple[dict[str, str], ...] = ({}, {"anthropic-beta": "fast-mode-1,oauth-2025-04-20"})
        for stated in betas:
            headers = gateway.headers("anthropic") | {"anthropic-version": "2023-06-01"} | stated
            assert (await gateway.http.post(path, json=body, headers=headers)).status_code == 200
            received = gateway.provider.requests[-1].headers
            assert received["authorization"] == f"Bearer {KEY}"
            assert "x-api-key" not in received
            assert received["anthropic-beta"].count("oauth-2025-04-20") == 1
