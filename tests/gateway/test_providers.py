"""Model providers are connected, tried, chosen and disconnected over the API, without a restart."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import until

from freehold.egress.models.provider import Provider
from freehold.manifest.overlay import OVERLAY_NAME
from freehold.testing import ScriptedModel

KEY = "sk-abcdefgh12345678"


async def models_of(gateway: RunningGateway, headers: dict[str, str]) -> dict[str, Any]:
    found = (await gateway.http.get("/v1/models", headers=headers)).json()
    return {row["name"]: row for row in found["models"]}


async def test_a_provider_is_tried_connected_and_disconnected_while_the_gateway_runs(gateway: RunningGateway) -> None:
    headers = gateway.token("admin", "read")
    async with ScriptedModel() as model:
        body: dict[str, Any] = {"kind": "openai-compatible", "base_url": f"{model.url}/v1", "key": KEY}
        tried = (await gateway.http.post("/v1/models/near/try", json=body, headers=headers)).json()
        assert (tried["ok"], [each["name"] for each in tried["offered"]]) == (True, ["scripted"])
        assert await models_of(gateway, headers) == {}
        body |= {"model": "scripted", "default": True}
        changed = await gateway.http.put("/v1/models/near", json=body, headers=headers)
        assert changed.json() == {"name": "near", "file": str(gateway.services.home.manifest), "overlay": False}
        row = (await models_of(gateway, headers))["near"]
        assert (row["key"], row["model"], row["default"], row["problem"]) == ("secret:near", "scripted", True, None)
        tested = (await gateway.http.post("/v1/models/near/test", headers=headers)).json()
        assert tested["ok"]
        assert model.requests[-1].key == KEY
    assert (await gateway.http.delete("/v1/models/near", headers=headers)).status_code == 200
    assert await models_of(gateway, headers) == {}
    assert (await gateway.http.get("/v1/secrets", headers=headers)).json() == []
    kinds = [
        event.kind
        for event in gateway.services.timeline.read(kinds=("models.provider_connected", "models.provider_removed"))
    ]
    assert kinds == ["models.provider_connected", "models.provider_removed"]
    assert KEY not in gateway.services.home.manifest.read_text()


async def test_the_default_is_changed_without_a_restart(gateway: RunningGateway) -> None:
    headers = gateway.token("admin", "read")
    for name in ("one", "two"):
        body = {"kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}
        assert (await gateway.http.put(f"/v1/models/{name}", json=body, headers=headers)).status_code == 200
    assert (await models_of(gateway, headers))["one"]["default"]
    assert (await gateway.http.post("/v1/models/two/default", json={}, headers=headers)).status_code == 200
    assert (await models_of(gateway, headers))["two"]["default"]
    agents = (await gateway.http.get("/v1/agents", headers=headers)).json()
    builtin = next(each for each in agents if each["name"] == "builtin")
    assert (builtin["models"], builtin["model"]) == (["one", "two"], "two")


def replace_file(path: Path, text: str) -> None:
    """Nobody reads half of it."""
    whole = path.with_name("whole.toml")
    whole.write_text(text)
    whole.replace(path)


async def test_an_edit_of_the_file_takes_effect_and_an_error_in_it_does_not(gateway: RunningGateway) -> None:
    headers = gateway.token("admin", "read")
    path = gateway.services.home.manifest
    before = path.read_text()
    replace_file(path, before + '[models.near]\nbase_url = "http://127.0.0.1:9/v1"\n[egress]\nmode = "deny"\n')

    async def is_applied() -> bool:
        return "near" in await models_of(gateway, headers)

    async def is_denied() -> bool:
        found = (await gateway.http.get("/v1/egress", headers=headers)).json()  # an error while egress starts
        return bool(found.get("mode") == "deny")

    await until(is_applied)
    await until(is_denied)
    replace_file(path, before + '[models.near]\ncolour = "green"\n')

    async def is_refused() -> bool:
        return gateway.context.manifest_follower.problem is not None

    await until(is_refused)
    assert "near" in await models_of(gateway, headers)
    assert "models.near.colour" in (await gateway.http.get("/v1/models", headers=headers)).json()["unapplied"]


async def test_agents_and_budgets_of_the_file_take_effect_without_a_restart(gateway: RunningGateway) -> None:
    headers = gateway.token("admin", "read")
    path = gateway.services.home.manifest
    replace_file(path, path.read_text() + '[agents.mine]\ncommand = "true"\n[budget]\nday_tokens = 1234\n')

    async def is_applied() -> bool:
        agents = (await gateway.http.get("/v1/agents", headers=headers)).json()
        budgets = (await gateway.http.get("/v1/budgets", headers=headers)).text
        return "mine" in [each["name"] for each in agents] and "1234" in budgets

    await until(is_applied)


async def test_a_provider_that_is_connected_while_the_list_is_made_harms_nothing(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = gateway.token("admin", "read")
    body = {"kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}
    assert (await gateway.http.put("/v1/models/near", json=body, headers=headers)).status_code == 200
    models = gateway.services.models

    def connect_another(provider: Provider) -> None:
        models.providers["later"] = replace(provider, name="later")

    monkeypatch.setattr(models, "problem_with", connect_another)
    assert set(await models_of(gateway, headers)) == {"near"}
    assert set(await models_of(gateway, headers)) == {"near", "later"}


async def test_a_change_of_a_generated_manifest_goes_into_the_overlay(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        headers = gateway.token("admin", "read")
        path = gateway.services.home.manifest
        replace_file(path, "# freehold: generated\n" + path.read_text())
        before = path.read_text()
        body = {"kind": "openai-compatible", "base_url": "http://127.0.0.1:9/v1"}
        changed = (await gateway.http.put("/v1/models/near", json=body, headers=headers)).json()
        assert (changed["overlay"], Path(changed["file"]).name) == (True, OVERLAY_NAME)
        assert path.read_text() == before
        assert "near" in await models_of(gateway, headers)


@pytest.mark.parametrize("scope", ["read", "prompt"])
async def test_only_an_admin_connects_or_looks_for_models(scope: Any, gateway: RunningGateway) -> None:
    headers = gateway.token(scope)
    body = {"kind": "openai", "key": KEY}
    answers = await asyncio.gather(
        gateway.http.get("/v1/model-offers", headers=headers),
        gateway.http.put("/v1/models/near", json=body, headers=headers),
        gateway.http.post("/v1/models/near/try", json=body, headers=headers),
        gateway.http.post("/v1/models/near/default", json={}, headers=headers),
        gateway.http.delete("/v1/models/near", headers=headers),
    )
    assert [answer.status_code for answer in answers] == [403] * 5


async def test_what_is_found_is_offered_and_connected_by_its_name(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    headers = gateway.token("admin", "read")
    offers = await gateway.http.get("/v1/model-offers", headers=headers)
    assert KEY not in offers.text
    (found,) = [each for each in offers.json()["found"] if each["name"] == "groq"]
    assert found["variable"] == "GROQ_API_KEY"
    assert await models_of(gateway, headers) == {}
    body = {"kind": "openai-compatible", "base_url": found["address"], "variable": "GROQ_API_KEY"}
    assert (await gateway.http.put("/v1/models/groq", json=body, headers=headers)).status_code == 200
    assert gateway.services.vault.get("groq").reveal() == KEY


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "openai-compatible", "base_url": "https://evil.example.net/v1", "variable": "GROQ_API_KEY"},
        {"kind": "openai-compatible", "base_url": "https://api.groq.com/openai/v1", "variable": "HOME"},
        {"kind": "openai", "variable": "GROQ_API_KEY"},
    ],
)
async def test_no_other_variable_and_no_other_address_can_be_named(
    body: dict[str, str], gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    headers = gateway.token("admin")
    for method, path in (("PUT", "/v1/models/x"), ("POST", "/v1/models/x/try")):
        answer = await gateway.http.request(method, path, json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "models.bad-choice")
    assert gateway.services.vault.list() == []


async def test_an_admin_token_cannot_send_a_key_to_another_host(gateway: RunningGateway) -> None:
    headers = gateway.token("admin")
    async with ScriptedModel() as mine, ScriptedModel() as theirs:
        body = {"kind": "openai-compatible", "base_url": f"{mine.url}/v1", "key": KEY}
        assert (await gateway.http.put("/v1/models/near", json=body, headers=headers)).status_code == 200
        stolen = {"kind": "openai-compatible", "base_url": f"{theirs.url}/v1"}
        answer = await gateway.http.put("/v1/models/near", json=stolen, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "models.key-needed")
        await gateway.http.post("/v1/models/near/try", json=stolen, headers=headers)
        await gateway.http.post("/v1/models/near/test", headers=headers)
        assert theirs.requests == []
        assert [each.key for each in mine.requests] == [KEY, KEY]
