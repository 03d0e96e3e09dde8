"""A token that may only read sees what happens, and none of the words and commands of a conversation."""

import asyncio
import json
from pathlib import Path

import httpx2
from tests.gateway.running_gateway import next_message
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_freehold
from tests.support.session_watch import REPLY_TIMEOUT
from websockets.asyncio.client import connect

from freehold.history.calls import MarkFiles, RequestAuthor, TakeSnapshot
from freehold.identity.tokens import ApiTokens, Scope

FREEHOLD = FreeholdOptions(
    agents=("builtin",), manifest='[agents.builtin]\nmodel = "local"\n[history]\nrate = "1MiB"\n'
)
SECRET = "the-words-of-the-owner"


def make_headers(freehold: RunningFreehold, *scopes: Scope) -> dict[str, str]:
    with ApiTokens(freehold.home.identity, owner=None) as tokens:
        return {"authorization": f"Bearer {tokens.create('-'.join(scopes), scopes, None)[1]}"}


async def find_words(freehold: RunningFreehold, session: str, headers: dict[str, str]) -> set[str]:
    """The addresses whose answers contain the words."""
    found = set()
    paths = (await freehold.call("GET", "/v1/openapi.json"))["paths"]
    entries = [entry["id"] for entry in (await freehold.call("GET", "/v1/history"))["entries"]]
    async with httpx2.AsyncClient(
        base_url=freehold.url, headers=headers, trust_env=False, timeout=REPLY_TIMEOUT
    ) as http:
        for path in (path for path, item in paths.items() if "get" in item):
            for entry in entries if "{entry}" in path else [0]:
                address = path.replace("{session}", session).replace("{entry}", str(entry)).replace("{turn}", "1")
                answer = await http.get(address, params={"limit": 1000} if path == "/v1/timeline" else {})
                if SECRET in answer.text:
                    found.add(path)
    return found


async def refusal(freehold: RunningFreehold, topic: str, headers: dict[str, str]) -> str:
    address = f"ws://localhost:{freehold.harness.gateway_port}/v1/socket"
    async with connect(address, additional_headers=headers, proxy=None, open_timeout=REPLY_TIMEOUT) as socket:
        await socket.send(json.dumps({"type": "subscribe", "topic": topic, "after": 0}))
        return str((await next_message(socket, "error"))["code"])


async def follow_until(freehold: RunningFreehold, kind: str, headers: dict[str, str]) -> str:
    """The texts of the timeline's topic from the first event to one of this kind."""
    address = f"ws://localhost:{freehold.harness.gateway_port}/v1/socket"
    texts = ""
    async with (
        connect(address, additional_headers=headers, proxy=None, open_timeout=REPLY_TIMEOUT) as socket,
        asyncio.timeout(REPLY_TIMEOUT),
    ):
        await socket.send(json.dumps({"type": "subscribe", "topic": "timeline", "after": 0}))
        while True:
            message = await next_message(socket, "event")
            texts += json.dumps(message)
            if message["data"]["kind"] == kind:
                return texts


async def test_a_read_token_sees_no_words_of_a_conversation_but_every_notice(tmp_path: Path) -> None:
    async with run_freehold(tmp_path, FREEHOLD) as freehold:
        await until(freehold.is_connected)
        session = await freehold.open("builtin")
        async with freehold.watch(session) as watch:
            await freehold.run_turn(watch, session, f"RUN head -c 3000000 /dev/urandom > large; echo {SECRET}")
        rule = {"effect": "allow", "kind": "execute", "pattern": f"echo {SECRET}"}
        await freehold.call("PUT", "/v1/approvals/policy", rules=[rule])
        # A state that is recorded while a command runs over SSH has that command as its reason.
        over_ssh = RequestAuthor(by="ssh", connection="c1")
        await asyncio.to_thread(
            freehold.harness.call, MarkFiles("before", "command", over_ssh, f"echo {SECRET} > large")
        )
        freehold.file("large").write_text("small")
        recorded = await asyncio.to_thread(freehold.harness.call, TakeSnapshot())
        by_ssh = await freehold.call("GET", f"/v1/history/{recorded.entry}")
        assert by_ssh["entry"]["kind"] in ("snapshot", "quiet")
        assert by_ssh["entry"]["why"] == f"echo {SECRET} > large"
        reader = make_headers(freehold, "read")
        assert await find_words(freehold, session, reader) == set()
        prompter = make_headers(freehold, "read", "prompt")
        assert await find_words(freehold, session, prompter) >= {
            "/v1/history",
            "/v1/history/{entry}",
            "/v1/sessions",
            "/v1/sessions/{session}",
            "/v1/timeline",
        }
        for topic in ("sessions", "approvals", f"session:{session}"):
            assert await refusal(freehold, topic, reader) == "identity.wrong-scope", topic
        assert SECRET not in await follow_until(freehold, "turn.ended", reader)
        assert SECRET in await follow_until(freehold, "turn.ended", prompter)
        entry = next(one for one in (await freehold.call("GET", "/v1/history"))["entries"] if one["kind"] == "turn")
        async with httpx2.AsyncClient(
            base_url=freehold.url, headers=reader, trust_env=False, timeout=REPLY_TIMEOUT
        ) as http:
            shown = (await http.get(f"/v1/history/{entry['id']}")).json()["entry"]
            notices = {notice["code"]: notice for notice in (await http.get("/v1/history/notices")).json()}
        assert {**entry, "why": "", "who": {**entry["who"], "prompt": None}} == {
            **shown,
            "who": {**shown["who"], "prompt": None},
        }
        notice = notices["history.rate-exceeded"]
        assert "builtin" in notice["message"]
        assert "history.rate" in notice["hint"]
