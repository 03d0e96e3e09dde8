"""`freehold login`. HTTP requests take the place of the browser of the owner."""

import asyncio
import json
import re
import stat
import sys
from pathlib import Path

import pytest
from tests.gateway.running_gateway import RunningGateway

from freehold import Freehold, FreeholdError
from freehold.client import device_login, stored_tokens
from freehold.client.device_login import _check_page, request_token
from freehold.client.problems import error_from_reply
from freehold.client.stored_tokens import (
    find_stored_token,
    list_stored_tokens,
    remove_stored_token,
    store_token,
    tokens_file,
)


async def freehold(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "freehold.cli.main",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def shown_code(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(30):
        while line := await process.stderr.readline():
            if found := re.fullmatch(r"\s+([A-Z]{4}-[A-Z]{4})\s*", line.decode()):
                return found[1]
    raise AssertionError("no code was shown")


async def test_the_owner_allows_a_login_in_the_browser(gateway: RunningGateway) -> None:
    login = await freehold("login", gateway.url, "--name", "laptop", "--scope", "read", "--no-browser", "--json")
    code = await shown_code(login)
    owner = gateway.browser()
    asked = await gateway.http.get(f"/v1/devices/{code}", headers=owner)
    assert (asked.json()["name"], asked.json()["scopes"]) == ("laptop", ["read"])
    assert (await gateway.http.post(f"/v1/devices/{code}", headers=owner, json={"allow": True})).status_code == 200
    stdout, _ = await login.communicate()
    assert login.returncode == 0
    assert json.loads(stdout) == {"url": gateway.url, "name": "laptop", "scopes": ["read"], "where": "file"}
    assert b"fh_" not in stdout
    assert stat.S_IMODE(tokens_file().stat().st_mode) == 0o600
    async with Freehold(gateway.url) as home:
        assert (await home.me()).who == "token:laptop"
    listed = await freehold("login", "--list")
    assert gateway.url.encode() in (await listed.communicate())[0]
    forgotten = await freehold("login", gateway.url, "--forget")
    assert b"revoked it there" in (await forgotten.communicate())[0]
    assert gateway.services.tokens.list() == []
    assert find_stored_token(gateway.url) is None


async def test_the_owner_refuses_a_login(gateway: RunningGateway) -> None:
    login = await freehold("login", gateway.url, "--no-browser")
    code = await shown_code(login)
    await gateway.http.post(f"/v1/devices/{code}", headers=gateway.browser(), json={"allow": False})
    _, stderr = await login.communicate()
    assert login.returncode == 1
    assert b"login.refused" in stderr
    assert not tokens_file().exists()
    assert gateway.services.tokens.list() == []


def test_the_page_must_belong_to_the_same_freehold() -> None:
    _check_page("https://device.example.com", "https://device.example.com/device#BCDF-GHJK")
    _check_page("http://localhost:3000", "http://127.0.0.1:3000/device#BCDF-GHJK")
    for page in ("https://evil.example/device#BCDF-GHJK", "javascript:alert(1)//device#x", "https://x/y/device#x"):
        with pytest.raises(FreeholdError):
            _check_page("https://agent.example.com", page)


@pytest.mark.parametrize("code", ["\x1b]0;taken\x07", "BCDF-GHJK\n", "bcdf-ghjk", "BCDF-GHJK&calc", ""])
def test_a_code_with_control_characters_is_refused(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    url = "https://agent.example.com"
    reply = {"code": code, "address": f"{url}/device#{code}", "device": "x", "interval": 1, "expires_in": 1e9}
    monkeypatch.setattr(device_login, "_post", lambda *_: reply)
    with pytest.raises(FreeholdError) as refused:
        request_token(url, "laptop", ["read"])
    assert refused.value.code == "client.odd-answer"
    reply.update(code="BCDF-GHJK", address=f"{url}/device#BCDF-GHJK")
    assert request_token(url, "laptop", ["read"]).expires_in == device_login.MAX_LOGIN_WAIT


def test_an_error_of_a_server_has_no_control_characters() -> None:
    words = "no\x1b[2J\r\nfreehold: all is well\x07"
    error = error_from_reply(
        "https://agent.example.com", 500, {"error": {"code": words, "message": words, "error_id": words}}
    )
    assert f"{error.code}{error.message}{error.hint}".isprintable()


async def test_a_token_can_be_collected_once(gateway: RunningGateway) -> None:
    pending = await asyncio.to_thread(request_token, gateway.url, "laptop", ["read"])
    await gateway.http.post(f"/v1/devices/{pending.code}", headers=gateway.browser(), json={"allow": True})
    collect = [await gateway.http.post("/v1/devices/answer/collect", json={"device": pending.secret}) for _ in range(2)]
    assert collect[0].json()["token"].startswith("fh_")
    assert collect[1].status_code == 404


async def test_the_requests_of_one_address_are_limited(gateway: RunningGateway) -> None:
    asks = [await gateway.http.post("/v1/devices", json={"name": "x", "scopes": ["read"]}) for _ in range(30)]
    assert {answer.status_code for answer in asks} == {201, 429}


async def test_a_token_cannot_allow_a_login(gateway: RunningGateway) -> None:
    pending = await asyncio.to_thread(request_token, gateway.url, "laptop", ["admin"])
    answer = await gateway.http.post(
        f"/v1/devices/{pending.code}", headers=gateway.token("admin"), json={"allow": True}
    )
    assert answer.status_code == 403


async def test_a_missing_address_is_a_usage_error() -> None:
    process = await freehold("login")
    _, stderr = await process.communicate()
    assert process.returncode == 2
    assert b"https://agent.example.com" in stderr


# Stored tokens


def test_each_address_has_its_own_token() -> None:
    assert store_token("https://Agent.example.com/", "one", "fh_1") == "file"
    store_token("http://localhost:3000", "two", "fh_2")
    store_token("https://agent.example.com", "three", "fh_3")
    assert find_stored_token("https://agent.example.com:443") == "fh_3"
    assert [(one.url, one.name) for one in list_stored_tokens()] == [
        ("http://localhost:3000", "two"),
        ("https://agent.example.com", "three"),
    ]
    assert remove_stored_token("http://localhost:3000")
    assert not remove_stored_token("http://localhost:3000")
    assert find_stored_token("http://localhost:3000") is None


def test_a_file_that_others_could_read_is_not_used() -> None:
    store_token("http://localhost:3000", "one", "fh_1")
    tokens_file().chmod(0o644)
    with pytest.raises(FreeholdError, match="0644"):
        find_stored_token("http://localhost:3000")


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    store_token("http://localhost:3000", "one", "fh_1")
    tokens_file().rename(tmp_path / "elsewhere.json")
    tokens_file().symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(FreeholdError, match=r"client\.stored-tokens"):
        find_stored_token("http://localhost:3000")


def test_a_keyring_is_used_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str], str] = {}

    class Ring:
        set_password = staticmethod(lambda service, name, value: kept.__setitem__((service, name), value))
        get_password = staticmethod(lambda service, name: kept.get((service, name)))
        delete_password = staticmethod(lambda service, name: kept.__delitem__((service, name)))

    monkeypatch.setattr(stored_tokens, "_keyring", lambda: Ring)
    assert store_token("http://localhost:3000", "one", "fh_1") == "keyring"
    assert "fh_1" not in tokens_file().read_text()
    assert find_stored_token("http://localhost:3000") == "fh_1"
    assert remove_stored_token("http://localhost:3000")
    assert kept == {}
