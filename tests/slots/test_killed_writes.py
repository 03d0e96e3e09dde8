"""Writes of documents with a key whose process is killed between the document and the answer. Sent again, they happen once."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from typing import Any, Literal

import pytest
from tests.slots.conftest import Mode, SlotBench

from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.pods.contract import DeleteDocument, GetDocument, PatchDocument, PutDocument
from freehold.strict_json import encode

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")
Moment = Literal["before the write", "after the write"]
LIST = "list.json"
APPEND = PatchDocument(LIST, '[{"op": "add", "path": "/-", "value": 1}]', key="k1")

DYING = """\
import asyncio, json, os, signal, sys
from pathlib import Path
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import SlotCaller
from freehold.slots.host import SlotPlace, make_slot
from freehold.slots.pods import contract
from freehold.slots.pods.store import PodStore
from freehold.strict_json import decode
from freehold.timeline import Timeline

folder, mode, settings, moment, kind, request = sys.argv[1:]

async def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    with Timeline(Path(folder) / "timeline.db") as timeline:
        place = SlotPlace(Home(Path(folder), Path(folder) / "run"), timeline, lambda _: None, os.environ)
        slot = make_slot("pods", SlotSection(mode=mode, settings=json.loads(settings)), place)
        await slot.connect()
        store = slot._inner
        if moment == "after the write":
            store._store_answer = die
        else:
            store.backend.write = store.backend.delete = store.backend.patch_n3 = die
        await slot.call(decode(getattr(contract, kind), json.loads(request)), SlotCaller("owner"))

asyncio.run(main())
"""


def kill_in(bench: SlotBench, mode: Mode, moment: Moment, request: Any) -> None:
    """Another process sends the request, and is killed."""
    settings = bench.settings_of("pods") if mode == "external" else {}
    environ = {**os.environ, **(bench.place_of("pods").environ if mode == "external" else {})}
    folder = str(bench.place.home.root)
    words = (folder, mode, json.dumps(settings), moment, type(request).__name__, json.dumps(encode(request)))
    done = subprocess.run([sys.executable, "-c", DYING, *words], env=environ, timeout=60)
    assert done.returncode == -signal.SIGKILL


async def read(slot: Slot, path: str = LIST) -> Any:
    content = (await slot.call(GetDocument(path), OWNER)).content
    assert content is not None
    return json.loads(content)


def count_events(bench: SlotBench, kind: str) -> int:
    return len(bench.place.timeline.read(kinds=[kind]))


@pytest.mark.parametrize("mode", ["local", "external"])
@pytest.mark.parametrize("moment", ["before the write", "after the write"])
async def test_a_patch_that_was_killed_and_sent_again_is_applied_once(
    bench: SlotBench, mode: Mode, moment: Moment
) -> None:
    async with bench.open("pods", mode) as slot:
        await slot.call(PutDocument(LIST, "application/json", "[]"), OWNER)
        kill_in(bench, mode, moment, APPEND)
        assert await read(slot) == ([] if moment == "before the write" else [1])
        done = await slot.call(APPEND, OWNER)
        assert await read(slot) == [1]
        assert await slot.call(APPEND, OWNER) == done
        assert await read(slot) == [1]
        assert (await slot.call(GetDocument(LIST), OWNER)).info.etag == done.etag
        assert count_events(bench, "pods.patched") == 1


async def test_a_killed_write_after_which_others_wrote_is_not_made_again_and_says_so(bench: SlotBench) -> None:
    async with bench.open("pods", "local") as slot:
        await slot.call(PutDocument(LIST, "application/json", "[]"), OWNER)
        kill_in(bench, "local", "after the write", APPEND)
        await slot.call(PatchDocument(LIST, '[{"op": "add", "path": "/-", "value": 2}]'), OWNER)
        with pytest.raises(SlotError, match="has changed since") as refused:
            await slot.call(APPEND, OWNER)
        assert refused.value.problem == "conflict"
        assert await read(slot) == [1, 2]
        with pytest.raises(SlotError, match="another request"):
            await slot.call(PatchDocument(LIST, '[{"op": "add", "path": "/-", "value": 3}]', key="k1"), OWNER)


async def test_killed_puts_and_deletions_leave_what_others_wrote(bench: SlotBench) -> None:
    put, delete = PutDocument("a.txt", "text/plain", "first", key="k2"), DeleteDocument("b.txt", key="k3")
    async with bench.open("pods", "local") as slot:
        await slot.call(PutDocument("b.txt", "text/plain", "old"), OWNER)
        for request in (put, delete):
            kill_in(bench, "local", "after the write", request)
        assert (await slot.call(put, OWNER)).path == "a.txt"
        assert (await slot.call(delete, OWNER)).path == "b.txt"
        known = (await slot.call(GetDocument("a.txt"), OWNER)).info.etag
        second, gone = PutDocument("a.txt", "text/plain", "second", if_match=known, key="k4"), replace(delete, key="k8")
        await slot.call(PutDocument("b.txt", "text/plain", "old"), OWNER)
        for request in (second, gone):
            kill_in(bench, "local", "after the write", request)
            await slot.call(PutDocument(request.path, "text/plain", "third"), OWNER)
            with pytest.raises(SlotError, match="has changed"):
                await slot.call(request, OWNER)
            assert (await slot.call(GetDocument(request.path), OWNER)).content == b"third"


async def test_what_was_refused_may_be_sent_again_with_its_key(bench: SlotBench) -> None:
    new = PutDocument("new.txt", "text/plain", "new", is_new=True, key="k7")
    async with bench.open("pods", "local") as slot:
        await slot.call(PutDocument("new.txt", "text/plain", "old"), OWNER)
        for _ in range(2):
            with pytest.raises(SlotError, match="is there already"):
                await slot.call(new, OWNER)
        await slot.call(DeleteDocument("new.txt"), OWNER)
        await slot.call(new, OWNER)
        assert (await slot.call(GetDocument("new.txt"), OWNER)).content == b"new"


async def test_an_n3_patch_whose_answer_was_lost_is_not_sent_again_in_doubt(bench: SlotBench) -> None:
    turtle = "@prefix ex: <http://example.org/>. ex:me ex:age 41."
    patch = (
        "@prefix solid: <http://www.w3.org/ns/solid/terms#>. @prefix ex: <http://example.org/>."
        ' _:p a solid:InsertDeletePatch; solid:inserts { ex:me ex:name "A". }.'
    )
    request = PatchDocument("me.ttl", patch, "n3", key="k5")
    async with bench.open("pods", "external") as slot:
        await slot.call(PutDocument("me.ttl", "text/turtle", turtle), OWNER)
        kill_in(bench, "external", "before the write", request)
        await slot.call(request, OWNER)
        assert await slot.call(request, OWNER) == await slot.call(request, OWNER)
        again = PatchDocument("me.ttl", patch.replace('"A"', '"B"'), "n3", key="k6")
        kill_in(bench, "external", "after the write", again)
        with pytest.raises(SlotError, match="has changed since"):
            await slot.call(again, OWNER)
