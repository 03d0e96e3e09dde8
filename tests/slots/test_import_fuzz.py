"""Files of strangers: whatever a record or a patch contains, it is stored or refused by name, and the slot works on."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.slots.conftest import SlotBench

from freehold.slots import Slot, SlotCaller, SlotError, SlotName
from freehold.slots.pods.contract import PatchDocument, PutDocument
from freehold.slots.transfer import digest_records, import_lines

OWNER = SlotCaller("owner")
RECORDS: dict[SlotName, dict[str, Any]] = {
    "beads": {
        "id": "bd-1",
        "title": "item",
        "status": "open",
        "priority": 1,
        "labels": ["a"],
        "created_at": "2025-01-01T00:00:00Z",
        "dependencies": [{"depends_on_id": "bd-2", "type": "blocks"}],
        "comments": [{"id": 1, "author": "x", "text": "y", "created_at": "2025-01-01T00:00:00Z"}],
        "freehold": {"sessions": ["s"]},
    },
    "memory": {"id": "m-1", "text": "note", "namespace": "shared", "created": 1.0, "origin": {"kind": "owner"}},
    "pods": {"id": "a/b.txt", "media": "text/plain", "content": "x", "encoding": "text"},
    "events": {
        "specversion": "1.0",
        "id": "1",
        "source": "urn:x",
        "type": "com.example.told",
        "time": "2025-01-01T00:00:00Z",
        "data": {"n": 1},
    },
}
ODD = some.sampled_from(
    [
        None,
        True,
        -1,
        2**63,
        2**70,
        1e308,
        -0.0,
        "",
        "\0",
        "\ud800",
        "x" * 100_000,
        "../../x",
        "$.",
        "9999-99-99T99:99:99Z",
    ]
)
VALUES = some.recursive(
    ODD | some.text(max_size=20) | some.integers() | some.floats(),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("name", list(RECORDS))
async def test_any_record_is_stored_or_refused_by_name_and_the_slot_works_on(bench: SlotBench, name: SlotName) -> None:
    async with bench.open(name, "local") as slot:
        loop = asyncio.get_running_loop()

        @settings(max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(
            changes=some.dictionaries(some.sampled_from([*RECORDS[name], "more"]), VALUES, max_size=3),
            gone=some.sets(some.sampled_from(list(RECORDS[name])), max_size=2),
        )
        def attack(changes: dict[str, Any], gone: set[str]) -> None:
            record = {key: value for key, value in {**RECORDS[name], **changes}.items() if key not in gone}
            asyncio.run_coroutine_threadsafe(try_line(slot, json.dumps(record)), loop).result(60)

        await asyncio.to_thread(attack)
        for line in ("[]", "1", "null", '"x"', "{", '{"a":' * 5_000, "\ud800", "nan", '{"id": NaN}', "\x00"):
            await try_line(slot, line)
        await digest_records(slot)


async def try_line(slot: Slot, line: str) -> None:
    refused: SlotError | None = None
    try:
        await import_lines(slot, [line])
    except SlotError as error:
        refused = error
    assert refused is None or refused.problem in ("invalid", "conflict", "not-found"), refused
    assert refused is None or len(refused.message) < 2_000


async def test_any_patch_changes_the_document_or_is_refused(bench: SlotBench) -> None:
    async with bench.open("pods", "local") as slot:
        loop = asyncio.get_running_loop()
        paths = some.sampled_from(["", "/", "/a", "/a/0", "/a/-", "/a/01", "/~", "/~2", "/\0", "/b/c/d", "a", None, 1])
        steps = some.fixed_dictionaries(
            {"op": some.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", None]), "path": paths},
            optional={"value": VALUES, "from": paths},
        )

        async def patch(text: str) -> None:
            await slot.call(PutDocument("d.json", "application/json", '{"a": [1, 2], "b": {"c": null}}'), OWNER)
            problem = "none"
            try:
                await slot.call(PatchDocument("d.json", text), OWNER)
            except SlotError as error:
                problem = error.problem
            assert problem in ("none", "invalid", "conflict")

        @settings(max_examples=150, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(some.lists(steps, max_size=4) | VALUES)
        def attack(given_patch: Any) -> None:
            asyncio.run_coroutine_threadsafe(patch(json.dumps(given_patch)), loop).result(60)

        await asyncio.to_thread(attack)
        for text in ("", "{", "[" * 5_000, "\ud800", '[{"op":"add","path":"/a","value":NaN}]'):
            await patch(text)
