"""A Ray that was taken over, or one of its tasks, says whatever it likes. The head answers with an error and goes on."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fleet.test_machine_limits import running
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.fleet import placer as placer_module
from freehold.fleet import ray_inside
from freehold.fleet.placer import RayPlacer
from freehold.fleet.ray_answers import read_amounts, read_answer
from freehold.fleet.ray_sandbox import RayKeys

NAMES = ["do", "kind", "count", "request", "name", "ready", "placed", "number", "node", "asked", "nodes", "error"]
WORDS = ["list", "launch", "terminate", "small", "shed", "", "\x1b[2J", "\ud800"]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
JUNK = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=8) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), below),
    max_leaves=20,
)
ASKED = st.fixed_dictionaries(
    {"do": st.sampled_from(["list", "launch", "terminate"])},
    optional=dict.fromkeys(("kind", "count", "request", "name"), LEAVES),
)
BAD_LINES = [
    b"[]\n",
    b"{}\n",
    b"7\n",
    b"{\n",
    b'{"placed": "a"}\n',
    b'{"nodes": 1}\n',
    b"\xff\n",
    b"[" * 100_000 + b"\n",
]


@settings(max_examples=300, deadline=None)
@given(JUNK)
@example({"nodes": [["shed", 1, 2, 3, 4, 5, 6]]})
def test_what_is_no_answer_is_a_bad_message_and_nothing_else(value: Any) -> None:
    with contextlib.suppress(FreeholdError):
        read_answer(json.dumps(value).encode())
    for row in value if isinstance(value, list) else [value]:
        found = read_amounts(row)
        assert found is None or all(0 <= one < 2**63 for one in found[1])


@settings(max_examples=10, deadline=None)
@given(st.lists(JUNK | ASKED, min_size=20, max_size=100))
@example([[], 7, None, {"do": []}, {"do": "launch"}, {"do": "launch", "kind": [], "count": 1, "request": "r"}])
async def test_junk_that_is_asked_for_gets_an_error_and_starts_nothing_that_is_not_allowed(
    tmp_path_factory: pytest.TempPathFactory, asked: list[Any]
) -> None:
    async with running(tmp_path_factory.mktemp("junk")) as (autoscaler, _, _):
        for one in asked:
            answer = autoscaler.answer(one)
            json.dumps(answer)
            assert answer == {} or answer.keys() in ({"error"}, {"machines"})
        kinds = [machine.kind for machine in autoscaler.machines.values()]
        assert kinds.count("small") <= 2
        assert kinds.count("big") <= 1
        await asyncio.sleep(0)


class JunkRay(RayPlacer):
    """Instead of a sandbox, one line at each start, until none is left."""

    def __init__(self, lines: list[bytes]) -> None:
        keys, nothing = cast(RayKeys, None), lambda *_: None
        super().__init__(Path("/"), keys, "", 0, 0, nothing, nothing, dict, nothing)
        self.lines = lines

    @contextlib.asynccontextmanager
    async def _started(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader = asyncio.StreamReader(placer_module.MAX_LINE)
        if self.lines:
            reader.feed_data(self.lines.pop(0))
            reader.feed_eof()
        yield reader, cast(asyncio.StreamWriter, None)


async def test_a_ray_that_says_junk_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placer_module, "RESTART_PAUSE", 0)
    ray = JunkRay([*BAD_LINES, b"x" * (placer_module.MAX_LINE + 1)])
    running = asyncio.ensure_future(ray.run())
    await until(lambda: running.done() or not ray.lines)
    assert not running.done(), running.exception()
    running.cancel()
    await asyncio.wait({running})


async def test_a_node_that_lies_about_what_it_has_is_no_room_and_others_are() -> None:
    ray = JunkRay([])
    rows = [["shed", 4, 8, 4, 8, 0, 0], ["liar", 1e300, 8, 4, 8, 0, 0], ["liar", -1, 8, 4, 8, 0, 0], ["liar"], 7]
    answers = asyncio.StreamReader()
    answers.feed_data(json.dumps({"nodes": rows}).encode() + b"\n")
    answers.feed_eof()
    await ray._serve(answers, cast(asyncio.StreamWriter, None))
    assert list(ray.nodes) == ["shed"]


@pytest.mark.parametrize("line", [b"[]", b"7", b'{"do": [[[[]]]]}', b'{"do": null}'])
def test_a_request_that_is_no_flat_object_does_not_reach_the_head(
    line: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[Any] = []
    monkeypatch.setattr(ray_inside, "say", said.append)
    near, far = socket.socketpair()
    talking = threading.Thread(target=ray_inside.MachineDoor()._talk, args=(far,))
    talking.start()
    with near, near.makefile("rwb") as stream:
        stream.write(line + b"\n")
        stream.flush()
        assert "error" in json.loads(stream.readline())
    talking.join()
    assert said == []
