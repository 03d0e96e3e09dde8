"""Settings by the API: seen all, changed where it is safe, without losing what the owner wrote."""

from pathlib import Path
from typing import Any

import pytest
from tests.gateway.running_gateway import RunningGateway, running_gateway


async def find(gateway: RunningGateway, key: str) -> Any:
    answer = await gateway.http.get("/v1/settings", headers=gateway.browser())
    return next(one for section in answer.json()["sections"] for one in section["settings"] if one["key"] == key)


async def change(gateway: RunningGateway, key: str, value: object) -> None:
    body = {"key": key, "value": value}
    answer = await gateway.http.put("/v1/settings", headers=gateway.browser(), json=body)
    assert answer.status_code == 200, answer.text


async def test_a_setting_is_changed_and_taken_back_and_comments_stay(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, '# my words\n[history]\nquota = "2GiB" # enough\n') as gateway:
        await change(gateway, "history.quota", "3GiB")
        text = gateway.services.loaded.path.read_text()
        assert 'quota = "3GiB"' in text
        assert "# my words" in text
        found = await find(gateway, "history.quota")
        assert (found["value"], found["waits"], found["is_live"]) == ('"3GiB"', True, False)
        await change(gateway, "history.quota", None)
        assert "quota" not in gateway.services.loaded.path.read_text()
        assert (await find(gateway, "history.quota"))["place"] == "default"


async def test_a_live_setting_takes_effect_at_once(gateway: RunningGateway) -> None:
    await change(gateway, "egress.allow", ["api.example.org"])
    assert gateway.services.manifest.egress.allow == ("api.example.org",)


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("history.quota", "many", "manifest."),
        ("history.quota", True, "manifest."),
        ("gateway.public_url", "https://evil.example", "manifest.read-only"),
        ("owner.did", "did:plc:abc", "manifest.read-only"),
        ("computer.backend", "docker", "manifest.read-only"),
    ],
)
async def test_a_wrong_or_dangerous_change_writes_nothing(
    gateway: RunningGateway, key: str, value: object, code: str
) -> None:
    path = gateway.services.loaded.path
    before = path.read_text() if path.exists() else None
    answer = await gateway.http.put("/v1/settings", headers=gateway.browser(), json={"key": key, "value": value})
    assert answer.status_code in (400, 409, 422), answer.text
    assert answer.json()["error"]["code"].startswith(code)
    assert (path.read_text() if path.exists() else None) == before


async def test_only_an_admin_sees_or_changes_settings(gateway: RunningGateway) -> None:
    for scope in ("read", "files", "prompt"):
        headers = gateway.token(scope, name=scope)
        assert (await gateway.http.get("/v1/settings", headers=headers)).status_code == 403
        body = {"key": "history.quota", "value": "3GiB"}
        assert (await gateway.http.put("/v1/settings", headers=headers, json=body)).status_code == 403
