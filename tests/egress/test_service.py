"""The running egress: requests, answers, changed rules."""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path
from unittest.mock import Mock

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

from freehold.egress import (
    EgressLimits,
    EgressRules,
    EgressService,
    EgressSettings,
    NetworkRequests,
    OwnerAnswer,
    parse_pattern,
)
from freehold.errors import FreeholdError
from freehold.timeline import Timeline


@pytest.fixture
def names() -> FakeResolver:
    known = FakeResolver()
    for name in ("example.org", "www.example.org", "other.example"):
        known.set(name, ["127.0.0.1"])
    return known


async def pending(proxy: RunningProxy) -> int:
    """The number of the one network request that waits."""
    async with asyncio.timeout(DEADLINE), aclosing(proxy.egress.changes()) as states:
        async for state in states:
            if state.pending:
                (request,) = state.pending
                return request.id
    raise AssertionError


def get(host: str, port: int) -> bytes:
    return f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("answer", "status"), [("once", b"200"), ("until_restart", b"200"), ("always", b"200"), ("never", b"403")]
)
async def test_a_connection_waits_for_the_owner(
    tmp_path: Path, names: FakeResolver, answer: OwnerAnswer, status: bytes
) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, mode="ask", names=names) as proxy:
        request = asyncio.ensure_future(proxy.send(get("example.org", server.port)))
        number = await pending(proxy)
        assert not request.done()
        assert names.asked == [], "no name is looked up before the owner allows it"
        await proxy.egress.answer(number, answer, who="owner:test")
        assert (await request).split()[1] == status
        (event,) = proxy.events("question_answered")
        assert (event["answer"], event["who"]) == (answer, "owner:test")


async def test_once_is_for_one_connection(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, mode="ask", names=names) as proxy:
        request = asyncio.ensure_future(proxy.send(get("example.org", server.port)))
        await proxy.egress.answer(await pending(proxy), "once")
        assert (await request).split()[1] == b"200"
        second = asyncio.ensure_future(proxy.send(get("example.org", server.port)))
        await proxy.egress.answer(await pending(proxy), "never")
        assert (await second).split()[1] == b"403"
        assert server.connected == 1


async def test_once_may_be_answered_later_and_is_kept(tmp_path: Path, names: FakeResolver) -> None:
    limits = EgressLimits(ask=0.1)
    async with run_server(respond_once(OK)) as server:
        async with run_proxy(tmp_path, mode="ask", names=names, limits=limits) as proxy:
            assert b"has not answered yet" in await proxy.send(get("example.org", server.port))
            number = await pending(proxy)
        with Timeline(tmp_path / "timeline.db") as timeline:
            NetworkRequests(timeline).answer(number, "once")
        async with run_proxy(tmp_path, mode="ask", names=names, limits=limits) as proxy:
            assert (await proxy.send(get("example.org", server.port))).split()[1] == b"200"
            assert (await proxy.send(get("example.org", server.port))).split()[1] == b"403"


async def test_two_waiters_do_not_share_one_permission(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(respond_once(OK)) as server, run_proxy(tmp_path, mode="ask", names=names) as proxy:
        requests = [asyncio.ensure_future(proxy.send(get("example.org", server.port))) for _ in range(2)]
        async with asyncio.timeout(DEADLINE), aclosing(proxy.egress.changes()) as states:
            async for state in states:
                if state.connections == 2:
                    break
        await proxy.egress.answer(await pending(proxy), "once")
        async with asyncio.timeout(DEADLINE):
            (allowed,), (other,) = await asyncio.wait(requests, return_when=asyncio.FIRST_COMPLETED)
        assert allowed.result().split()[1] == b"200"
        # The owner is asked again for the other one.
        await proxy.egress.answer(await pending(proxy), "never")
        assert (await other).split()[1] == b"403"
        assert server.connected == 1


async def test_until_restart_ends_at_a_restart_and_always_does_not(tmp_path: Path, names: FakeResolver) -> None:
    limits = EgressLimits(ask=0.1)
    async with run_server(respond_once(OK)) as server:
        async with run_proxy(tmp_path, mode="ask", names=names, limits=limits) as proxy:
            for host, answer in (("example.org", "until_restart"), ("other.example", "always")):
                await proxy.send(get(host, server.port))
                await proxy.egress.answer(await pending(proxy), answer)  # type: ignore[arg-type]
                assert (await proxy.send(get(host, server.port))).split()[1] == b"200"
        async with run_proxy(tmp_path, mode="ask", names=names, limits=limits) as proxy:
            assert (await proxy.send(get("example.org", server.port))).split()[1] == b"403"
            assert (await proxy.send(get("other.example", server.port))).split()[1] == b"200"


async def test_a_network_request_still_waits_after_a_restart(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(respond_once(OK)) as server:
        async with run_proxy(tmp_path, mode="ask", names=names, limits=EgressLimits(ask=0.1)) as proxy:
            await proxy.send(get("example.org", server.port))
            number = await pending(proxy)
        async with run_proxy(tmp_path, mode="ask", names=names) as proxy:
            assert await pending(proxy) == number
            request = asyncio.ensure_future(proxy.send(get("example.org", server.port)))
            await proxy.egress.answer(number, "always")
            assert (await request).split()[1] == b"200"


async def test_an_open_connection_is_cut_when_its_rule_is_removed(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(echo) as server, run_proxy(tmp_path, names=names) as proxy:
        target = f"example.org:{server.port}"
        await proxy.egress.add_rule("allow", target)
        _status, reader, writer = await proxy.connect(target)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        await proxy.egress.remove_rule(target)
        async with asyncio.timeout(DEADLINE):
            assert await reader.read() == b""
            await server.served.get()
        await hang_up(writer)
        assert (await proxy.event("connection_revoked"))["target"] == target
        assert proxy.egress.counters.revoked == 1


async def test_a_deny_cuts_connections_that_another_rule_or_a_once_allowed(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(echo) as server,
        run_proxy(tmp_path, mode="ask", allow=[f"*.example.org:{server.port}"], names=names) as proxy,
    ):
        _status, by_rule, writer = await proxy.connect(f"www.example.org:{server.port}")
        asking = asyncio.ensure_future(proxy.connect(f"example.org:{server.port}"))
        await proxy.egress.answer(await pending(proxy), "once")
        status, by_once, other = await asking
        assert status.startswith(b"HTTP/1.1 200")
        await proxy.egress.add_rule("deny", "other.example")
        for reader, sender in ((by_rule, writer), (by_once, other)):
            sender.write(b"still here")
            assert await reader.readexactly(10) == b"still here"
        await proxy.egress.add_rule("deny", "www.example.org")
        await proxy.egress.add_rule("deny", "example.org")
        async with asyncio.timeout(DEADLINE):
            assert await by_rule.read() == b""
            assert await by_once.read() == b""
        await hang_up(writer)
        await hang_up(other)


async def test_another_process_may_answer_and_revoke(tmp_path: Path, names: FakeResolver) -> None:
    async with run_server(echo) as server, run_proxy(tmp_path, mode="ask", names=names) as proxy:
        target = f"example.org:{server.port}"
        asking = asyncio.ensure_future(proxy.connect(target))
        number = await pending(proxy)
        await _elsewhere(tmp_path, f"NetworkRequests(timeline).answer({number}, 'always')")
        status, reader, writer = await asking
        assert status.startswith(b"HTTP/1.1 200")
        await _elsewhere(tmp_path, f"EgressRules(timeline).remove(parse_pattern({target!r}))")
        async with asyncio.timeout(DEADLINE):
            assert await reader.read() == b""
        await hang_up(writer)


async def _elsewhere(folder: Path, statement: str) -> None:
    code = (
        "from freehold.egress import EgressRules, NetworkRequests, parse_pattern\n"
        "from freehold.timeline import Timeline\n"
        f"with Timeline({str(folder / 'timeline.db')!r}) as timeline:\n    {statement}\n"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=environment)
    assert await process.wait() == 0


async def test_a_name_that_moves_to_a_private_address_is_looked_up_only_once(tmp_path: Path) -> None:
    """DNS rebinding: the first answer is public, every later one is the host's own loopback."""
    names = FakeResolver()
    names.set("rebind.example", ["127.77.3.4"], ["127.0.0.2"])
    async with (
        run_server(respond_once(OK), host="127.77.3.4") as server,
        run_proxy(tmp_path, allow=[f"rebind.example:{server.port}"], names=names) as proxy,
    ):
        assert (await proxy.send(get("rebind.example", server.port))).split()[1] == b"200"
        assert names.asked == ["rebind.example"]
        assert (await proxy.send(get("rebind.example", server.port))).split()[1] == b"403"
        assert server.connected == 1
        refused = await proxy.event("connection_refused")
        assert refused["address"] == "127.0.0.2"


async def test_the_client_is_not_told_where_a_refused_name_leads(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("inner.example", ["10.1.2.3"])
    async with run_proxy(tmp_path, mode="allow", names=names) as proxy:
        answer = await proxy.send(get("inner.example", 80))
    assert answer.split()[1] == b"403"
    assert b"10.1.2.3" not in answer


async def test_of_several_addresses_only_public_ones_are_dialled(tmp_path: Path) -> None:
    names = FakeResolver()
    names.set("mixed.example", ["10.1.2.3", "127.0.0.1", "::1"])
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"mixed.example:{server.port}"], names=names) as proxy,
    ):
        assert (await proxy.send(get("mixed.example", server.port))).split()[1] == b"200"


async def test_an_idle_connection_is_cut(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(echo) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names, limits=EgressLimits(idle=0.1)) as proxy,
    ):
        _status, reader, writer = await proxy.connect(f"example.org:{server.port}")
        async with asyncio.timeout(DEADLINE):
            assert await reader.read() == b""
        await hang_up(writer)


async def test_a_slow_watcher_sees_the_last_state(tmp_path: Path) -> None:
    async with run_proxy(tmp_path) as proxy, aclosing(proxy.egress.changes()) as states:
        assert (await anext(states)).rules == ()
        for number in range(50):
            await proxy.egress.add_rule("allow", f"host{number}.example")
        assert len((await anext(states)).rules) == 50
        assert proxy.egress.status().as_json()["mode"] == "deny"


async def test_a_decision_that_cannot_be_recorded_allows_nothing(
    tmp_path: Path, names: FakeResolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        full = FreeholdError("timeline.disk-full", f"There is no room left to write to {proxy.timeline.path}")
        with monkeypatch.context() as patch:
            patch.setattr(proxy.timeline, "transaction", Mock(side_effect=full))
            answer = await proxy.send(get("example.org", server.port))
        assert answer.split()[1] == b"503"
        assert str(tmp_path).encode() not in answer
        assert server.connected == 0


async def test_a_bad_rule_of_the_manifest_stops_egress_from_starting(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline, pytest.raises(FreeholdError):
        EgressService(timeline, EgressSettings("allow", deny=("10.0.0.0/8",)))


async def test_rules_survive_and_come_after_those_of_the_manifest(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        async with EgressService(timeline, EgressSettings("deny", deny=("example.org",))) as egress:
            await egress.add_rule("allow", "example.org")
            await egress.add_rule("allow", "other.example")
        async with EgressService(timeline, EgressSettings("deny", deny=("example.org",))) as egress:
            assert [str(rule) for rule in egress.status().rules] == [
                "deny example.org",
                "allow example.org",
                "allow other.example",
            ]
            assert EgressRules(timeline).remove(parse_pattern("other.example"))
