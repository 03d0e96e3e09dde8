"""The sign-in of Codex is renewed on the host, once, and its tokens are never shown."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from freehold.egress.models.codex_sign_in import SIGN_IN, CodexRefresher, CodexSignIn, read_account, read_sign_in
from freehold.egress.models.keys import Keys, key_fields
from freehold.egress.models.provider import Provider, read_provider
from freehold.egress.models.upstream import UpstreamPool
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.manifest.sections.models import ModelSection

DAY = 24 * 3600.0


def make_token(expires: float, account: str = "acct-1") -> str:
    claims = {"exp": int(expires), "https://api.openai.com/auth": {"chatgpt_account_id": account}}
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{middle}.signature"


@asynccontextmanager
async def sign_in_server(answer: dict[str, Any], status: int = 200) -> AsyncIterator[tuple[Provider, list[Any]]]:
    """A server that answers every renewal with this, and what it was asked."""
    asked: list[Any] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        asked.append(json.loads(await reader.readexactly(length)))
        body = json.dumps(answer).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield replace(SIGN_IN, scheme="http", host="127.0.0.1", port=port), asked


CODEX = read_provider("codex", ModelSection(kind="openai", auth="codex", key="secret:codex"))


def keep(folder: Path, sign_in: CodexSignIn) -> Vault:
    vault = Vault(folder / "vault")
    vault.set("codex", sign_in.as_text())
    return vault


def test_the_file_of_codex_is_read_and_nothing_else_is() -> None:
    auth = {
        "OPENAI_API_KEY": None,
        "tokens": {"id_token": "i", "access_token": "a", "refresh_token": "r", "account_id": "x"},
    }
    found = read_sign_in(json.dumps(auth, indent=2))
    assert (found.access_token, found.refresh_token) == ("a", "r")
    assert read_sign_in(found.as_text()) == found
    assert "•••" in repr(found)
    for text in (
        "",
        "[]",
        "{}",
        '{"tokens": {"access_token": "a"}}',
        '{"tokens": {"access_token": 5, "refresh_token": "r"}}',
    ):
        with pytest.raises(FreeholdError) as refused:
            read_sign_in(text)
        assert refused.value.code == "models.bad-sign-in"


def test_the_account_is_read_from_the_token_and_a_strange_one_is_left_out() -> None:
    assert read_account(make_token(1.0)) == "acct-1"
    assert read_account(make_token(1.0, "a\r\nx: y")) is None
    assert [read_account(token) for token in ("", "a.b.c", "a.!!.c", "one")] == [None] * 4


async def test_a_token_that_is_about_to_end_is_renewed_once_and_kept(tmp_path: Path) -> None:
    fresh = make_token(time.time() + 10 * DAY)
    vault = keep(tmp_path, CodexSignIn(make_token(time.time() + 60), "refresh-1"))
    async with sign_in_server({"access_token": fresh, "refresh_token": "refresh-2"}) as (server, asked):
        keys = Keys(vault, {}, CodexRefresher(vault, UpstreamPool(), server))
        found = await asyncio.gather(*(keys.fetch(CODEX) for _ in range(5)))
    assert {each.reveal() for each in found if each is not None} == {fresh}
    assert [each["refresh_token"] for each in asked] == ["refresh-1"]
    assert read_sign_in(vault.get("codex").reveal()) == CodexSignIn(fresh, "refresh-2")


async def test_a_token_that_lasts_is_not_renewed(tmp_path: Path) -> None:
    vault = keep(tmp_path, CodexSignIn(make_token(time.time() + 5 * DAY), "refresh-1"))
    async with sign_in_server({}, 500) as (server, asked):
        found = await Keys(vault, {}, CodexRefresher(vault, UpstreamPool(), server)).fetch(CODEX)
    assert found is not None
    assert asked == []


async def test_a_sign_in_that_was_revoked_says_what_to_do(tmp_path: Path) -> None:
    vault = keep(tmp_path, CodexSignIn(make_token(time.time() + 60), "used"))
    async with sign_in_server({"error": "refresh_token_reused"}, 401) as (server, _asked):
        with pytest.raises(FreeholdError) as refused:
            await Keys(vault, {}, CodexRefresher(vault, UpstreamPool(), server)).fetch(CODEX)
    assert refused.value.code == "models.signed-out"
    assert "codex login" in refused.value.hint
    assert "used" not in refused.value.message


async def test_a_valid_token_is_used_while_the_sign_in_server_is_away(tmp_path: Path) -> None:
    token = make_token(time.time() + 3600)
    vault = keep(tmp_path, CodexSignIn(token, "refresh-1"))
    away = replace(SIGN_IN, scheme="http", host="127.0.0.1", port=9)
    found = await Keys(vault, {}, CodexRefresher(vault, UpstreamPool(), away)).fetch(CODEX)
    assert found is not None
    assert found.reveal() == token


def test_only_the_access_token_is_sent_with_its_account(tmp_path: Path) -> None:
    token = make_token(time.time() + 5 * DAY)
    key = Keys(keep(tmp_path, CodexSignIn(token, "refresh-1")), {}).find(CODEX)
    assert key is not None
    assert key_fields(CODEX, key, []) == [("authorization", f"Bearer {token}"), ("chatgpt-account-id", "acct-1")]
