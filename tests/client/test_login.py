"""`freehold login`: as its user types it, with the owner's browser played by requests."""

import asyncio
import json
import re
import stat
import sys
from pathlib import Path

import pytest
from tests.gateway.running import Running

from freehold import Freehold, FreeholdError
from freehold.client import device, stored
from freehold.client.device import _check_page, ask_for_token
from freehold.client.problems import refusal
from freehold.client.stored import (
    credentials_file,
    find_credentials,
    forget_credentials,
    list_credentials,
    store_credentials,
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


async def test_the_owner_allows_a_program_in_the_browser(gateway: Running) -> None:
    login = await freehold("login", gateway.origin, "--name", "laptop", "--scope", "read", "--no-browser", "--json")
    code = await shown_code(login)
    owner = gateway.browser()
    asked = await gateway.http.get(f"/v1/devices/{code}", headers=owner)
    assert (asked.json()["name"], asked.json()["scopes"]) == ("laptop", ["read"])
    assert (await gateway.http.post(f"/v1/devices/{code}", headers=owner, json={"allow": True})).status_code == 200
    said, _ = await login.communicate()
    assert login.returncode == 0
    assert json.loads(said) == {"url": gateway.origin, "name": "laptop", "scopes": ["read"], "where": "file"}
    assert b"fh_" not in said
    assert stat.S_IMODE(credentials_file().stat().st_mode) == 0o600
    async with Freehold(gateway.origin) as home:
        assert (await home.me()).who == "token:laptop"
    listed = await freehold("login", "--list")
    assert gateway.origin.encode() in (await listed.communicate())[0]
    forgotten = await freehold("login", gateway.origin, "--forget")
    assert b"ended there" in (await forgotten.communicate())[0]
    assert gateway.house.tokens.list() == []
    assert find_credentials(gateway.origin) is None


async def test_the_owner_refuses(gateway: Running) -> None:
    login = await freehold("login", gateway.origin, "--no-browser")
    code = await shown_code(login)
    await gateway.http.post(f"/v1/devices/{code}", headers=gateway.browser(), json={"allow": False})
    _, said = await login.communicate()
    assert login.returncode == 1
    assert b"login.refused" in said
    assert not credentials_file().exists()
    assert gateway.house.tokens.list() == []


def test_the_page_to_open_must_be_the_same_freeholds() -> None:
    _check_page("https://device.example.com", "https://device.example.com/device#BCDF-GHJK")
    _check_page("http://localhost:3000", "http://127.0.0.1:3000/device#BCDF-GHJK")
    for page in ("https://evil.example/device#BCDF-GHJK", "javascript:alert(1)//device#x", "https://x/y/device#x"):
        with pytest.raises(FreeholdError):
            _check_page("https://agent.example.com", page)


@pytest.mark.parametrize("code", ["\x1b]0;taken\x07", "BCDF-GHJK\n", "bcdf-ghjk", "BCDF-GHJK&calc", ""])
def test_a_code_that_would_speak_to_the_terminal_is_not_shown(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    url = "https://agent.example.com"
    told = {"code": code, "address": f"{url}/device#{code}", "device": "x", "interval": 1, "expires_in": 1e9}
    monkeypatch.setattr(device, "_post", lambda *_: told)
    with pytest.raises(FreeholdError) as refused:
        ask_for_token(url, "laptop", ["read"])
    assert refused.value.code == "client.odd-answer"
    told.update(code="BCDF-GHJK", address=f"{url}/device#BCDF-GHJK")
    assert ask_for_token(url, "laptop", ["read"]).expires_in == device.LONGEST_WAIT


def test_a_refusal_from_elsewhere_cannot_speak_to_the_terminal() -> None:
    words = "no\x1b[2J\r\nfreehold: all is well\x07"
    error = refusal("https://agent.example.com", 500, {"error": {"code": words, "message": words, "error_id": words}})
    assert f"{error.code}{error.message}{error.hint}".isprintable()


async def test_a_token_is_handed_over_once(gateway: Running) -> None:
    waiting = await asyncio.to_thread(ask_for_token, gateway.origin, "laptop", ["read"])
    await gateway.http.post(f"/v1/devices/{waiting.code}", headers=gateway.browser(), json={"allow": True})
    collect = [await gateway.http.post("/v1/devices/answer/collect", json={"device": waiting.secret}) for _ in range(2)]
    assert collect[0].json()["token"].startswith("fh_")
    assert collect[1].status_code == 404


async def test_one_address_cannot_take_every_place_in_the_queue(gateway: Running) -> None:
    asks = [await gateway.http.post("/v1/devices", json={"name": "x", "scopes": ["read"]}) for _ in range(6)]
    assert [answer.status_code for answer in asks] == [201] * 5 + [429]


async def test_no_token_can_answer_for_the_owner(gateway: Running) -> None:
    waiting = await asyncio.to_thread(ask_for_token, gateway.origin, "laptop", ["admin"])
    answer = await gateway.http.post(
        f"/v1/devices/{waiting.code}", headers=gateway.token("admin"), json={"allow": True}
    )
    assert answer.status_code == 403


async def test_what_is_missing_is_wrong_usage() -> None:
    process = await freehold("login")
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"https://agent.example.com" in said


# Where tokens are kept


def test_each_address_has_its_own_token() -> None:
    assert store_credentials("https://Agent.example.com/", "one", "fh_1") == "file"
    store_credentials("http://localhost:3000", "two", "fh_2")
    store_credentials("https://agent.example.com", "three", "fh_3")
    assert find_credentials("https://agent.example.com:443") == "fh_3"
    assert [(one.url, one.name) for one in list_credentials()] == [
        ("http://localhost:3000", "two"),
        ("https://agent.example.com", "three"),
    ]
    assert forget_credentials("http://localhost:3000")
    assert not forget_credentials("http://localhost:3000")
    assert find_credentials("http://localhost:3000") is None


def test_a_file_that_others_could_read_is_not_used() -> None:
    store_credentials("http://localhost:3000", "one", "fh_1")
    credentials_file().chmod(0o644)
    with pytest.raises(FreeholdError, match="0644"):
        find_credentials("http://localhost:3000")


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    store_credentials("http://localhost:3000", "one", "fh_1")
    credentials_file().rename(tmp_path / "elsewhere.json")
    credentials_file().symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(FreeholdError, match=r"client\.stored-tokens"):
        find_credentials("http://localhost:3000")


def test_a_keyring_is_used_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[tuple[str, str], str] = {}

    class Ring:
        set_password = staticmethod(lambda service, name, value: kept.__setitem__((service, name), value))
        get_password = staticmethod(lambda service, name: kept.get((service, name)))
        delete_password = staticmethod(lambda service, name: kept.__delitem__((service, name)))

    monkeypatch.setattr(stored, "_keyring", lambda: Ring)
    assert store_credentials("http://localhost:3000", "one", "fh_1") == "keyring"
    assert "fh_1" not in credentials_file().read_text()
    assert find_credentials("http://localhost:3000") == "fh_1"
    assert forget_credentials("http://localhost:3000")
    assert kept == {}
