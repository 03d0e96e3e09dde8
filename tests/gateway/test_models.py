"""Models, budgets, secrets and the kill switch over the API."""

from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway

from freehold.testing import ScriptedModel

PROVIDER = """
[models.local]
kind = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
key = "secret:local"
budget = { day_tokens = 1000 }
"""


async def test_without_a_model_it_explains_how_to_connect_one(gateway: RunningGateway) -> None:
    found = (await gateway.http.get("/v1/models", headers=gateway.token("read"))).json()
    assert found["models"] == []
    assert "freehold models add anthropic" in found["help"]
    assert "freehold models add ollama" in found["help"]


async def test_a_provider_reports_its_missing_key(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, PROVIDER) as gateway:
        headers = gateway.token("read", "admin")
        (row,) = (await gateway.http.get("/v1/models", headers=headers)).json()["models"]
        assert "freehold secret set local" in row["problem"]
        assert row["inside"] == "http://127.0.0.1:3129/local/v1"
        await gateway.http.put("/v1/secrets/local", json={"value": "sk-abcdefgh12345678"}, headers=headers)
        (row,) = (await gateway.http.get("/v1/models", headers=headers)).json()["models"]
        assert row["problem"] is None


async def test_a_secret_can_be_set_and_never_read(gateway: RunningGateway) -> None:
    headers, value = gateway.token("admin"), "sk-abcdefgh12345678"
    answers = [
        await gateway.http.put("/v1/secrets/openai", json={"value": value}, headers=headers),
        await gateway.http.get("/v1/secrets", headers=headers),
        await gateway.http.get("/v1/timeline?limit=100", headers=gateway.token("read", name="reader")),
        await gateway.http.put("/v1/secrets/openai", json={"value": f" {value}"}, headers=headers),
        await gateway.http.put("/v1/secrets/openai", json={"value": value, value: 1}, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 422]
    assert [row["name"] for row in answers[1].json()] == ["openai"]
    assert all(value not in answer.text for answer in answers)
    assert (await gateway.http.delete("/v1/secrets/openai", headers=headers)).status_code == 200
    assert (await gateway.http.delete("/v1/secrets/openai", headers=headers)).status_code == 404


async def test_budgets_are_set_lifted_and_reset(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, PROVIDER) as gateway:
        headers = gateway.token("admin")
        (row,) = (await gateway.http.get("/v1/budgets", headers=headers)).json()["budgets"]
        assert (row["scope"], row["limit"], row["of"], row["lifted"]) == ("local", "day_tokens", 1000.0, False)
        body = {"scope": "*", "day_cost": 5.0}
        rows = (await gateway.http.put("/v1/budgets", json=body, headers=headers)).json()["budgets"]
        assert [(row["scope"], row["limit"]) for row in rows] == [("*", "day_cost"), ("local", "day_tokens")]
        lift = {"scope": "local", "limit": "day_tokens"}
        rows = (await gateway.http.post("/v1/budgets/lift", json=lift, headers=headers)).json()["budgets"]
        assert [row["lifted"] for row in rows] == [False, True]
        rows = (await gateway.http.put("/v1/budgets", json={"scope": "*"}, headers=headers)).json()["budgets"]
        assert [row["scope"] for row in rows] == ["local"]


@pytest.mark.parametrize(
    "body", [{"scope": "nobody", "day_cost": 1}, {"scope": "*", "day_cost": 0}, {"scope": "*", "daily": 1}, {}]
)
async def test_an_invalid_budget_is_refused(body: dict[str, object], gateway: RunningGateway) -> None:
    answer = await gateway.http.put("/v1/budgets", json=body, headers=gateway.token("admin"))
    assert 400 <= answer.status_code < 500


async def test_a_prompt_token_may_stop_and_only_an_admin_lifts(gateway: RunningGateway) -> None:
    prompt, admin = gateway.token("prompt", name="p"), gateway.token("admin", "read", name="a")
    stopped = (await gateway.http.post("/v1/stop", json={"why": "enough"}, headers=prompt)).json()
    assert stopped["stopped"] is True
    assert (await gateway.http.post("/v1/stop/lift", headers=prompt)).status_code == 403
    assert (await gateway.http.get("/v1/stop", headers=admin)).json()["why"] == "enough"
    assert (await gateway.http.get("/v1/models", headers=admin)).json()["stopped"] is True
    assert (await gateway.http.post("/v1/stop/lift", headers=admin)).json()["stopped"] is False


async def test_usage_is_reported_by_every_grouping(gateway: RunningGateway) -> None:
    headers = gateway.token("read")
    for by in ("day", "day_model", "model", "provider", "session", "turn"):
        assert (await gateway.http.get(f"/v1/usage?by={by}", headers=headers)).json() == {"by": by, "rows": []}
    assert (await gateway.http.get("/v1/usage?by=owner", headers=headers)).status_code == 422
    assert (await gateway.http.get("/v1/usage?since=yesterday", headers=headers)).status_code == 422


async def test_a_provider_names_its_key_and_never_shows_it(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, PROVIDER) as gateway:
        (row,) = (await gateway.http.get("/v1/models", headers=gateway.token("read"))).json()["models"]
        assert (row["key"], row["default"]) == ("secret:local", True)


async def test_an_admin_can_test_a_provider(tmp_path: Path) -> None:
    async with ScriptedModel() as provider:
        models = PROVIDER.replace("http://127.0.0.1:9", provider.url)
        async with running_gateway(tmp_path, models) as gateway:
            reader, admin = gateway.token("read", name="r"), gateway.token("admin", name="a")
            assert (await gateway.http.post("/v1/models/local/test")).status_code == 401
            assert (await gateway.http.post("/v1/models/local/test", headers=reader)).status_code == 403
            keyless = await gateway.http.post("/v1/models/local/test", headers=admin)
            assert keyless.json()["error"]["code"] == "models.no-key"
            assert provider.requests == []
            await gateway.http.put("/v1/secrets/local", json={"value": "sk-abcdefgh12345678"}, headers=admin)
            trial = (await gateway.http.post("/v1/models/local/test", headers=admin)).json()
            assert (trial["ok"], trial["models"]) == (True, ["scripted"])
            assert (await gateway.http.post("/v1/models/nobody/test", headers=admin)).status_code == 404
