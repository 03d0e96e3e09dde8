"""Egress as it runs: asking, answering, changing one's mind."""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.egress.street import OK, Door, Names, door, echo, hang_up, plain, upstream

from freehold.egress import Answer, Egress, EgressSettings, Limits, Questions, Rules, parse_pattern
from freehold.errors import FreeholdError
from freehold.timeline import Timeline


@pytest.fixture
def names() -> Names:
    known = Names()
    for name in ("example.org", "www.example.org", "other.example"):
        known.tell(name, ["127.0.0.1"])
    return known


async def pending(way: Door) -> int:
    """The number of the one question that waits."""
    async with asyncio.timeout(20), aclosing(way.egress.changes()) as states:
        async for state in states:
            if state.pending:
                (question,) = state.pending
                return question.id
    raise AssertionError


def get(host: str, port: int) -> bytes:
    return f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("answer", "status"), [("once", b"200"), ("session", b"200"), ("always", b"200"), ("never", b"403")]
)
async def test_a_connection_waits_for_the_owner(tmp_path: Path, names: Names, answer: Answer, status: bytes) -> None:
    async with upstream(plain(OK)) as server, door(tmp_path, mode="ask", names=names) as way:
        request = asyncio.ensure_future(way.say(get("example.org", server.port)))
        number = await pending(way)
        assert not request.done()
        assert names.asked == [], "a name is not even looked up before the owner has said yes"
        await way.egress.answer(number, answer, who="owner:test")
        assert (await request).split()[1] == status
        (event,) = way.events("question_answered")
        assert (event["answer"], event["who"]) == (answer, "owner:test")


async def test_once_is_for_one_connection(tmp_path: Path, names: Names) -> None:
    limits = Limits(ask=1.0)
    async with upstream(plain(OK)) as server, door(tmp_path, mode="ask", names=names, limits=limits) as way:
        request = asyncio.ensure_future(way.say(get("example.org", server.port)))
        await way.egress.answer(await pending(way), "once")
        assert (await request).split()[1] == b"200"
        second = await way.say(get("example.org", server.port))
        assert second.split()[1] == b"403"
        assert b"asked" in second
        assert server.connected == 1


async def test_once_may_be_said_while_nobody_waits_and_is_kept(tmp_path: Path, names: Names) -> None:
    limits = Limits(ask=0.1)
    async with upstream(plain(OK)) as server:
        async with door(tmp_path, mode="ask", names=names, limits=limits) as way:
            assert b"has not answered yet" in await way.say(get("example.org", server.port))
            number = await pending(way)
        with Timeline(tmp_path / "timeline.db") as timeline:
            Questions(timeline).answer(number, "once")
        async with door(tmp_path, mode="ask", names=names, limits=limits) as way:
            assert (await way.say(get("example.org", server.port))).split()[1] == b"200"
            assert (await way.say(get("example.org", server.port))).split()[1] == b"403"


async def test_two_waiters_do_not_share_one_permission(tmp_path: Path, names: Names) -> None:
    async with (
        upstream(plain(OK)) as server,
        door(tmp_path, mode="ask", names=names, limits=Limits(ask=2.0)) as way,
    ):
        requests = [asyncio.ensure_future(way.say(get("example.org", server.port))) for _ in range(2)]
        async with asyncio.timeout(20), aclosing(way.egress.changes()) as states:
            async for state in states:
                if state.connections == 2:
                    break
        await way.egress.answer(await pending(way), "once")
        answers = await asyncio.gather(*requests)
        assert sorted(answer.split()[1] for answer in answers) == [b"200", b"403"]
        assert server.connected == 1


async def test_a_session_ends_with_the_run_and_always_does_not(tmp_path: Path, names: Names) -> None:
    limits = Limits(ask=0.1)
    async with upstream(plain(OK)) as server:
        async with door(tmp_path, mode="ask", names=names, limits=limits) as way:
            for host, answer in (("example.org", "session"), ("other.example", "always")):
                await way.say(get(host, server.port))
                await way.egress.answer(await pending(way), answer)  # type: ignore[arg-type]
                assert (await way.say(get(host, server.port))).split()[1] == b"200"
        async with door(tmp_path, mode="ask", names=names, limits=limits) as way:
            assert (await way.say(get("example.org", server.port))).split()[1] == b"403"
            assert (await way.say(get("other.example", server.port))).split()[1] == b"200"


async def test_a_question_still_waits_after_a_restart(tmp_path: Path, names: Names) -> None:
    async with upstream(plain(OK)) as server:
        async with door(tmp_path, mode="ask", names=names, limits=Limits(ask=0.1)) as way:
            await way.say(get("example.org", server.port))
            number = await pending(way)
        async with door(tmp_path, mode="ask", names=names) as way:
            assert await pending(way) == number
            request = asyncio.ensure_future(way.say(get("example.org", server.port)))
            await way.egress.answer(number, "always")
            assert (await request).split()[1] == b"200"


async def test_an_open_connection_is_cut_when_its_rule_is_taken_back(tmp_path: Path, names: Names) -> None:
    async with upstream(echo) as server, door(tmp_path, names=names) as way:
        target = f"example.org:{server.port}"
        await way.egress.add_rule("allow", target)
        _status, reader, writer = await way.connect(target)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        await way.egress.forget_rule(target)
        async with asyncio.timeout(10):
            assert await reader.read() == b""
            await server.served.get()
        await hang_up(writer)
        assert (await way.event("connection_revoked"))["target"] == target
        assert way.egress.counters.revoked == 1


async def test_a_deny_cuts_what_another_rule_and_a_once_let_out(tmp_path: Path, names: Names) -> None:
    async with (
        upstream(echo) as server,
        door(tmp_path, mode="ask", allow=[f"*.example.org:{server.port}"], names=names) as way,
    ):
        _status, by_rule, writer = await way.connect(f"www.example.org:{server.port}")
        asking = asyncio.ensure_future(way.connect(f"example.org:{server.port}"))
        await way.egress.answer(await pending(way), "once")
        status, by_once, other = await asking
        assert status.startswith(b"HTTP/1.1 200")
        await way.egress.add_rule("deny", "other.example")
        for reader, sender in ((by_rule, writer), (by_once, other)):
            sender.write(b"still here")
            assert await reader.readexactly(10) == b"still here"
        await way.egress.add_rule("deny", "www.example.org")
        await way.egress.add_rule("deny", "example.org")
        async with asyncio.timeout(10):
            assert await by_rule.read() == b""
            assert await by_once.read() == b""
        await hang_up(writer)
        await hang_up(other)


async def test_another_process_may_answer_and_revoke(tmp_path: Path, names: Names) -> None:
    async with upstream(echo) as server, door(tmp_path, mode="ask", names=names) as way:
        target = f"example.org:{server.port}"
        asking = asyncio.ensure_future(way.connect(target))
        number = await pending(way)
        await _elsewhere(tmp_path, f"Questions(timeline).answer({number}, 'always')")
        status, reader, writer = await asking
        assert status.startswith(b"HTTP/1.1 200")
        await _elsewhere(tmp_path, f"Rules(timeline).forget(parse_pattern({target!r}))")
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        await hang_up(writer)


async def _elsewhere(folder: Path, statement: str) -> None:
    code = (
        "from freehold.egress import Questions, Rules, parse_pattern\n"
        "from freehold.timeline import Timeline\n"
        f"with Timeline({str(folder / 'timeline.db')!r}) as timeline:\n    {statement}\n"
    )
    environment = {**os.environ, "PYTHONPATH": "src"}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, env=environment)
    assert await process.wait() == 0


async def test_a_changed_manifest_applies_at_once(tmp_path: Path, names: Names) -> None:
    async with upstream(echo) as server, door(tmp_path, allow=[f"example.org:{server.port}"], names=names) as way:
        _status, reader, writer = await way.connect(f"example.org:{server.port}")
        with pytest.raises(FreeholdError):
            await way.egress.configure(EgressSettings("deny", ("10.0.0.0/8",)))
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        await way.egress.configure(EgressSettings("deny"))
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        assert way.events("configured") == [{"mode": "deny", "allow": [], "deny": [], "who": "owner"}]
        await hang_up(writer)


async def test_a_name_that_moves_to_a_private_address_is_looked_up_only_once(tmp_path: Path) -> None:
    """DNS rebinding: the first answer is public, every later one is the host's own loopback."""
    names = Names()
    names.tell("rebind.example", ["127.77.3.4"], ["127.0.0.2"])
    async with (
        upstream(plain(OK), host="127.77.3.4") as server,
        door(tmp_path, allow=[f"rebind.example:{server.port}"], names=names) as way,
    ):
        assert (await way.say(get("rebind.example", server.port))).split()[1] == b"200"
        assert names.asked == ["rebind.example"]
        assert (await way.say(get("rebind.example", server.port))).split()[1] == b"403"
        assert server.connected == 1
        refused = await way.event("connection_refused")
        assert refused["address"] == "127.0.0.2"


async def test_the_client_is_not_told_where_a_refused_name_leads(tmp_path: Path) -> None:
    names = Names()
    names.tell("inner.example", ["10.1.2.3"])
    async with door(tmp_path, mode="allow", names=names) as way:
        answer = await way.say(get("inner.example", 80))
    assert answer.split()[1] == b"403"
    assert b"10.1.2.3" not in answer


async def test_of_several_addresses_only_public_ones_are_dialled(tmp_path: Path) -> None:
    names = Names()
    names.tell("mixed.example", ["10.1.2.3", "127.0.0.1", "::1"])
    async with (
        upstream(plain(OK)) as server,
        door(tmp_path, allow=[f"mixed.example:{server.port}"], names=names) as way,
    ):
        assert (await way.say(get("mixed.example", server.port))).split()[1] == b"200"


async def test_silence_ends_a_connection(tmp_path: Path, names: Names) -> None:
    async with (
        upstream(echo) as server,
        door(tmp_path, allow=[f"example.org:{server.port}"], names=names, limits=Limits(idle=0.1)) as way,
    ):
        _status, reader, writer = await way.connect(f"example.org:{server.port}")
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        await hang_up(writer)


async def test_a_slow_watcher_sees_the_last_state(tmp_path: Path) -> None:
    async with door(tmp_path) as way, aclosing(way.egress.changes()) as states:
        assert (await anext(states)).rules == ()
        for number in range(50):
            await way.egress.add_rule("allow", f"host{number}.example")
        assert len((await anext(states)).rules) == 50
        assert way.egress.snapshot().as_json()["mode"] == "deny"


async def test_what_cannot_be_recorded_is_not_let_out(
    tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with upstream(plain(OK)) as server, door(tmp_path, allow=[f"example.org:{server.port}"], names=names) as way:
        full = FreeholdError("timeline.disk-full", f"There is no room left to write to {way.timeline.path}")
        with monkeypatch.context() as patch:
            patch.setattr(way.timeline, "transaction", Mock(side_effect=full))
            answer = await way.say(get("example.org", server.port))
        assert answer.split()[1] == b"503"
        assert str(tmp_path).encode() not in answer
        assert server.connected == 0


async def test_a_bad_rule_of_the_manifest_stops_egress_from_starting(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline, pytest.raises(FreeholdError):
        Egress(timeline, EgressSettings("allow", deny=("10.0.0.0/8",)))


async def test_rules_survive_and_come_after_those_of_the_manifest(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        async with Egress(timeline, EgressSettings("deny", deny=("example.org",))) as egress:
            await egress.add_rule("allow", "example.org")
            await egress.add_rule("allow", "other.example")
        async with Egress(timeline, EgressSettings("deny", deny=("example.org",))) as egress:
            assert [str(rule) for rule in egress.snapshot().rules] == [
                "deny example.org",
                "allow example.org",
                "allow other.example",
            ]
            assert Rules(timeline).forget(parse_pattern("other.example"))
