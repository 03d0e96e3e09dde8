"""Rules that hold for one session: who may use them, and when they end."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.egress.proxy_harness import (
    OK,
    FakeResolver,
    RunningProxy,
    echo,
    hang_up,
    respond_once,
    run_proxy,
    run_server,
)
from tests.support.condition import DEADLINE

from freehold.egress import EgressLimits, EgressRules, EgressService, NetworkRequest, NetworkRequests, OwnerAnswer
from freehold.egress.credentials import ProxyCredentials, read_credentials_key
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

SOON = EgressLimits(ask=0.1)


@pytest.fixture
def names() -> FakeResolver:
    known = FakeResolver()
    known.set("example.org", ["127.0.0.1"])
    return known


async def get(proxy: RunningProxy, port: int, session: str | None) -> bytes:
    """The status of one plain request to example.org, by a program of this session or of none."""
    credentials = "" if session is None else proxy.authorization_for(session)
    return (await proxy.send(f"GET http://example.org:{port}/ HTTP/1.1\r\n{credentials}\r\n".encode())).split()[1]


async def statuses(proxy: RunningProxy, port: int) -> dict[str | None, bytes]:
    return {session: await get(proxy, port, session) for session in ("one", "another", None)}


async def wait_for_request(proxy: RunningProxy, session: str | None) -> NetworkRequest:
    async with asyncio.timeout(DEADLINE), aclosing(proxy.egress.changes()) as states:
        async for state in states:
            for request in state.pending:
                if request.session == session:
                    return request
    raise AssertionError


async def wait_until_removed(proxy: RunningProxy) -> None:
    """Until no rule is stored for a conversation."""
    async with asyncio.timeout(DEADLINE), aclosing(proxy.egress.changes()) as states:
        async for state in states:
            if all(rule.reach != "conversation" for rule in state.rules):
                return


@pytest.mark.parametrize("mode", ["deny", "ask"])
async def test_what_one_conversation_may_reach_no_other_may(tmp_path: Path, names: FakeResolver, mode: str) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, mode=mode, names=names, limits=SOON) as proxy,  # type: ignore[arg-type]
    ):
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        assert await statuses(proxy, server.port) == {"one": b"200", "another": b"403", None: b"403"}
        proxy.egress.end_conversation("one")
        assert await get(proxy, server.port, "one") == b"403"
        await wait_until_removed(proxy)
        assert await statuses(proxy, server.port) == {"one": b"403", "another": b"403", None: b"403"}
        assert server.connected == 1
        removed = await proxy.event("rule_removed")
        assert (removed["session"], removed["reason"]) == ("one", "the conversation ended")


@pytest.mark.parametrize(
    ("answer", "allowed"),
    [
        ("once", {"one": b"200", "another": b"403", None: b"403"}),
        ("conversation", {"one": b"200", "another": b"403", None: b"403"}),
        ("until_restart", {"one": b"200", "another": b"200", None: b"200"}),
        ("always", {"one": b"200", "another": b"200", None: b"200"}),
        ("never", {"one": b"403", "another": b"403", None: b"403"}),
    ],
)
async def test_an_answer_reaches_as_far_as_it_says(
    tmp_path: Path, names: FakeResolver, answer: OwnerAnswer, allowed: dict[str | None, bytes]
) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, mode="ask", names=names, limits=SOON) as proxy,
    ):
        assert await get(proxy, server.port, "one") == b"403"
        request = await wait_for_request(proxy, "one")
        assert request.as_json()["session"] == "one"
        assert request.who == "session:one"
        await proxy.egress.answer(request.id, answer)
        assert await statuses(proxy, server.port) == allowed
        # `once` is used up; nobody else could use it.
        assert await get(proxy, server.port, "one") == (b"403" if answer in ("once", "never") else b"200")


async def test_each_session_has_its_own_request_and_only_one_of_them_is_answered(
    tmp_path: Path, names: FakeResolver
) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, mode="ask", names=names) as proxy:
        waiting = {session: asyncio.ensure_future(get(proxy, server.port, session)) for session in ("one", "another")}
        requests = {session: await wait_for_request(proxy, session) for session in waiting}
        await proxy.egress.answer(requests["one"].id, "conversation")
        assert await waiting["one"] == b"200"
        assert not waiting["another"].done()
        assert [request.session for request in proxy.egress.status().pending] == ["another"]
        await proxy.egress.answer(requests["another"].id, "always")
        assert await waiting["another"] == b"200"


async def test_a_request_of_no_session_is_not_allowed_for_a_conversation(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, mode="ask", names=names, limits=SOON) as proxy,
    ):
        await get(proxy, server.port, None)
        request = await wait_for_request(proxy, None)
        with pytest.raises(FreeholdError) as refused:
            await proxy.egress.answer(request.id, "conversation")
        assert refused.value.code == "egress.no-session"
        assert proxy.egress.status().pending == (request,)


@pytest.mark.parametrize("end", ["end_conversation", "end_all_conversations", "forget_session", "remove_rule"])
async def test_open_tunnels_of_a_conversation_end_with_it(tmp_path: Path, names: FakeResolver, end: str) -> None:
    async with run_server(echo) as server, run_proxy(tmp_path, names=names) as proxy:
        target = f"example.org:{server.port}"
        await proxy.egress.allow_session("one", target, "conversation", who="session:one")
        _status, reader, writer = await proxy.connect(target, proxy.authorization_for("one"))
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        if end == "remove_rule":
            await proxy.egress.remove_rule(target)
        elif end == "end_all_conversations":
            proxy.egress.end_all_conversations()
        else:
            getattr(proxy.egress, end)("one")
        async with asyncio.timeout(DEADLINE):
            assert await reader.read() == b""
        await hang_up(writer)
        assert (await proxy.event("connection_revoked"))["target"] == target


async def test_a_tunnel_that_everyone_may_open_outlives_the_conversation(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(echo) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        credentials = proxy.authorization_for("one")
        _status, reader, writer = await proxy.connect(f"example.org:{server.port}", credentials)
        proxy.egress.end_conversation("one")
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        await hang_up(writer)


async def test_a_server_that_an_agent_left_running_keeps_the_rules_of_everyone(
    tmp_path: Path, names: FakeResolver
) -> None:
    """Also after a restart of the gateway: its old credentials are genuine, and belong to no session."""
    credentials = ProxyCredentials(read_credentials_key(tmp_path / "vault"))
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names, credentials=credentials) as proxy,
    ):
        left = proxy.authorization_for("one")
        proxy.egress.end_conversation("one")
        request = f"GET http://example.org:{server.port}/ HTTP/1.1\r\n{left}\r\n".encode()
        assert (await proxy.send(request)).split()[1] == b"200"
        renewed = proxy.authorization_for("one")
        assert renewed != left
    again = ProxyCredentials(read_credentials_key(tmp_path / "vault"))
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, credentials=again, names=names) as proxy:
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        for old in (left, renewed):
            request = f"GET http://example.org:{server.port}/ HTTP/1.1\r\n{old}\r\n".encode()
            assert (await proxy.send(request)).split()[1] == b"403"


async def test_a_restart_ends_every_conversation(tmp_path: Path, names: FakeResolver) -> None:
    async with run_proxy(tmp_path, names=names) as proxy:
        await proxy.egress.allow_session("one", "example.org:443", "conversation", who="session:one")
    async with run_proxy(tmp_path, names=names) as proxy:
        assert proxy.egress.status().rules == ()


async def test_a_deleted_session_leaves_no_rule_and_no_request(tmp_path: Path, names: FakeResolver) -> None:
    async with run_proxy(tmp_path, mode="ask", names=names, limits=SOON) as proxy:
        await proxy.egress.allow_session("one", "a.example:443", "conversation", who="session:one")
        await proxy.egress.allow_session("one", "b.example:443", "once", who="session:one")
        assert await get(proxy, 80, "one") == b"403"
        await wait_for_request(proxy, "one")
        proxy.egress.forget_session("one")
        async with asyncio.timeout(DEADLINE), aclosing(proxy.egress.changes()) as states:
            async for state in states:
                if not state.pending and not state.rules:
                    break
        assert EgressRules(proxy.timeline).all() == []
        assert NetworkRequests(proxy.timeline).all() == []


async def test_a_conversations_yes_neither_replaces_nor_beats_a_deny_for_everyone(
    tmp_path: Path, names: FakeResolver
) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, names=names) as proxy:
        target = f"example.org:{server.port}"
        await proxy.egress.add_rule("deny", target)
        assert str(proxy.egress.find_deny_rule(target, "one")) == f"deny {target}"
        await proxy.egress.allow_session("one", target, "conversation", who="session:one")
        assert await get(proxy, server.port, "one") == b"403"
        assert f"deny {target}" in [str(rule) for rule in proxy.egress.status().rules]


VERSION_1 = """
    CREATE TABLE egress_rule (
      pattern TEXT NOT NULL, verdict TEXT NOT NULL CHECK (verdict IN ('allow', 'deny')),
      scope TEXT NOT NULL CHECK (scope IN ('always', 'session', 'once')), who TEXT NOT NULL,
      PRIMARY KEY (pattern, scope)
    ) STRICT;
    CREATE TABLE egress_question (
      id INTEGER PRIMARY KEY AUTOINCREMENT, pattern TEXT NOT NULL UNIQUE, family TEXT NOT NULL, who TEXT NOT NULL,
      first_seen TEXT NOT NULL, last_seen TEXT NOT NULL, count INTEGER NOT NULL
    ) STRICT;
    INSERT INTO egress_rule VALUES ('a.example', 'allow', 'always', 'owner'), ('b.example', 'allow', 'session', 'owner'),
      ('c.example:443', 'allow', 'once', 'owner');
    INSERT INTO egress_question VALUES (7, 'd.example:443', 'd.example', 'computer', 'x', 'y', 3),
      (9, 'e.example:443', 'e.example', 'computer', 'x', 'y', 1);
    DELETE FROM egress_question WHERE id = 9;
"""


async def test_rules_and_requests_of_version_0_1_are_read(tmp_path: Path) -> None:
    """Their scope `session` meant until restart. A number is not used again."""
    from freehold.egress.names import parse_host
    from freehold.egress.rules import ensure_tables

    with Timeline(tmp_path / "timeline.db") as timeline:
        timeline.ensure_schema("egress", VERSION_1)
        ensure_tables(timeline)
        rules = EgressRules(timeline).all()
        assert [(str(rule.pattern), rule.reach, rule.session) for rule in rules] == [
            ("a.example", "always", None),
            ("c.example:443", "once", None),
            ("b.example", "until_restart", None),
        ]
        (request,) = NetworkRequests(timeline).all()
        assert (request.id, request.session, request.count) == (7, None, 3)
        NetworkRequests(timeline).add(parse_host("f.example"), 443, "computer")
        assert [found.id for found in NetworkRequests(timeline).all()] == [7, 10]
        async with EgressService(timeline) as egress:
            assert [str(rule.pattern) for rule in egress.status().rules] == ["a.example"]
