"""`GET /v1/retention`: the owner sees what is kept, for how long and where."""

from pathlib import Path

from tests.gateway.running_gateway import RunningGateway, running_gateway


async def test_the_rules_of_the_manifest_are_shown_with_their_places(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, '[retention]\ntimeline = "40d"\n') as gateway:
        answer = await gateway.http.get("/v1/retention", headers=gateway.token("admin"))
        assert answer.status_code == 200, answer.text
        rules = {rule["name"]: rule for rule in answer.json()["rules"]}
        assert "older than 40 days" in rules["timeline"]["kept"]
        assert rules["timeline"]["where"] == [f"{tmp_path}/timeline.db", f"{tmp_path}/timeline-archive"]
        assert rules["timeline"]["last_archived"] is None
        assert rules["usage"]["setting"] == "retention.usage"
        assert rules["logs"]["where"] == [f"{tmp_path}/logs"]


async def test_only_the_owner_sees_them(gateway: RunningGateway) -> None:
    """They name folders of the host."""
    assert (await gateway.http.get("/v1/retention")).status_code == 401
    headers = gateway.token("read", "prompt", "files", "history", "terminal")
    assert (await gateway.http.get("/v1/retention", headers=headers)).status_code == 403
