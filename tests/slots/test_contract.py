"""What holds for every implementation of every slot, off included."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.slots.conftest import SlotBench, Where
from tests.support.trace_receiver import receive_traces

from freehold.observe.metrics import registry
from freehold.observe.tracing import configure_tracing, shutdown_tracing
from freehold.slots import Slot, SlotCall, SlotCaller, SlotError, SlotName
from freehold.slots.beads.contract import (
    AddNeed,
    ClaimBead,
    CloseBead,
    CommentBead,
    CreateBead,
    ExportBeads,
    GetBead,
    ImportBeads,
    ListBeads,
    ReleaseBead,
    RemoveNeed,
    ReopenBead,
    UpdateBead,
)
from freehold.slots.contract import SlotWrite
from freehold.slots.events.contract import (
    AwaitEvents,
    DropDeadLetters,
    ExportEvents,
    GetDelivery,
    ImportEvents,
    ListDeadLetters,
    PublishEvent,
    ReadEvents,
    ResendDeadLetters,
)
from freehold.slots.host import list_built, load_contract
from freehold.slots.memory.contract import (
    ExportMemories,
    ForgetMemory,
    GetMemory,
    GetMemoryStatus,
    ImportMemories,
    ListMemories,
    SearchMemories,
    StoreMemory,
    UpdateMemory,
)
from freehold.slots.orchestrator.contract import (
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.pods.contract import (
    AwaitChange,
    CreateFolder,
    DeleteDocument,
    EndGrants,
    ExportPods,
    FindDocuments,
    GetDocument,
    GrantAccess,
    ImportPods,
    ListAccess,
    ListFolder,
    ListGrants,
    PatchDocument,
    PutDocument,
    RevokeAccess,
)
from freehold.typed_call import result_type

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")

SAMPLES: dict[SlotName, list[Callable[[], SlotCall[Any]]]] = {
    "beads": [
        lambda: GetBead("fh-1"),
        ListBeads,
        lambda: CreateBead("a title"),
        lambda: UpdateBead("fh-1", title="another"),
        lambda: ClaimBead("fh-1"),
        lambda: ReleaseBead("fh-1"),
        lambda: CloseBead("fh-1", "done"),
        lambda: ReopenBead("fh-1"),
        lambda: AddNeed("fh-1", "fh-2"),
        lambda: RemoveNeed("fh-1", "fh-2"),
        lambda: CommentBead("fh-1", "words"),
        ExportBeads,
        lambda: ImportBeads(()),
    ],
    "memory": [
        lambda: GetMemory("m-1"),
        ListMemories,
        lambda: SearchMemories("a question"),
        GetMemoryStatus,
        lambda: StoreMemory("a title"),
        lambda: UpdateMemory("m-1", text="another"),
        lambda: ForgetMemory("m-1"),
        ExportMemories,
        lambda: ImportMemories(()),
    ],
    "orchestrator": [
        lambda: SpawnRun("a title"),
        lambda: TerminateRun("none"),
        lambda: TakeChanges("none", "drop"),
        lambda: GetRun("none"),
        ListRuns,
        lambda: ReadRun("none"),
        lambda: GetChanges("none"),
    ],
    "pods": [
        lambda: GetDocument("notes/one"),
        ListFolder,
        lambda: FindDocuments("text/*"),
        lambda: AwaitChange("notes/one", "x", 0.0),
        lambda: PutDocument("notes/two.txt", "text/plain", "a title"),
        lambda: PatchDocument("notes/one", "[]"),
        lambda: CreateFolder("more/"),
        lambda: DeleteDocument("notes/one"),
        lambda: GrantAccess("claude", "notes/", "read"),
        lambda: RevokeAccess("codex", "notes/"),
        lambda: EndGrants("s1"),
        ListGrants,
        ListAccess,
        ExportPods,
        lambda: ImportPods(()),
    ],
    "events": [
        lambda: PublishEvent("com.example.told", {"words": "a title"}),
        ReadEvents,
        lambda: AwaitEvents(0, 0.0),
        GetDelivery,
        ListDeadLetters,
        ResendDeadLetters,
        DropDeadLetters,
        ExportEvents,
        lambda: ImportEvents(()),
    ],
}
"""One request of each call."""
CREATE: dict[SlotName, Callable[[str | None], SlotWrite[Any]]] = {
    "beads": lambda key: CreateBead("a title", key=key),
    "memory": lambda key: StoreMemory("a title", key=key),
    "events": lambda key: PublishEvent("com.example.told", {"words": "a title"}, key=key),
    "orchestrator": lambda key: SpawnRun("a title", key=key),
    "pods": lambda key: PutDocument(f"notes/{key or 'new'}.txt", "text/plain", "a title", key=key),
}
"""A write that makes something new."""
IMPORT: dict[SlotName, Callable[[str | None], SlotWrite[Any]]] = {
    "beads": lambda key: ImportBeads((), key=key),
    "memory": lambda key: ImportMemories((), key=key),
    "events": lambda key: ImportEvents((), key=key),
    "orchestrator": lambda key: SpawnRun("another title", key=key),
    "pods": lambda key: ImportPods((), key=key),
}
"""Another write."""
SLOTS = list_built()
KEPT: list[tuple[SlotName, Where]] = [
    *((name, mode) for name in SLOTS for mode in ("local", "external")),
    ("beads", "neighbour"),
]
"""Every implementation that keeps something."""
ALL: list[tuple[SlotName, Where]] = [*KEPT, *((name, "off") for name in SLOTS)]


@pytest.mark.parametrize("name", SLOTS)
def test_every_call_of_a_contract_has_a_sample_and_a_typed_reply(name: SlotName) -> None:
    contract = load_contract(name)
    assert {type(make()) for make in SAMPLES[name]} == set(contract.calls)
    assert len({call.method for call in contract.calls}) == len(contract.calls)
    for call in contract.calls:
        assert isinstance(result_type(call), type)


@pytest.mark.parametrize(("name", "mode"), ALL)
async def test_connect_and_close_are_idempotent_and_health_asks(bench: SlotBench, name: SlotName, mode: Where) -> None:
    async with bench.open(name, mode) as slot:
        await slot.connect()
        found = await slot.probe()
        assert (found.state if found else "ok") == ("off" if mode == "off" else "ok")
    await slot.close()


@pytest.mark.parametrize("name", SLOTS)
async def test_each_call_of_a_slot_that_is_off_says_so_and_how_to_switch_it_on(
    bench: SlotBench, name: SlotName
) -> None:
    async with bench.open(name, "off") as slot:
        for make in SAMPLES[name]:
            with pytest.raises(SlotError) as refused:
                await slot.call(make(), OWNER)
            assert refused.value.code == f"{name}.disabled"
            assert f'slots.{name} = "local"' in refused.value.hint


@pytest.mark.parametrize(("name", "mode"), KEPT)
async def test_each_call_answers_its_type_or_an_error_of_the_family(
    bench: SlotBench, name: SlotName, mode: Where
) -> None:
    async with bench.open(name, mode) as slot:
        for make in SAMPLES[name]:
            request = make()
            found = await reply_or_problem(slot, request)
            assert found == "not-found" or isinstance(found, result_type(type(request))), found


@pytest.mark.parametrize(("name", "mode"), ALL)
async def test_each_call_is_counted_with_its_outcome(bench: SlotBench, name: SlotName, mode: Where) -> None:
    async with bench.open(name, mode) as slot:
        request = CREATE[name](None)
        labels = f'slot="{name}",method="{request.method}",implementation="{slot.implementation}"'
        outcome = "disabled" if mode == "off" else "ok"
        before = read_metric(f'freehold_slot_calls_total{{{labels},outcome="{outcome}"}}')
        found = await reply_or_problem(slot, request)
        assert (found == "disabled") == (mode == "off")
        assert read_metric(f'freehold_slot_calls_total{{{labels},outcome="{outcome}"}}') == before + 1
        assert read_metric(f"freehold_slot_call_seconds_count{{{labels}}}") >= 1


@pytest.mark.parametrize("mode", ["local", "off"])
async def test_each_call_is_a_span_with_its_outcome(bench: SlotBench, mode: Where) -> None:
    with receive_traces() as receiver:
        configure_tracing(receiver.url, program="slots")
        try:
            async with bench.open("beads", mode) as slot:
                await reply_or_problem(slot, CREATE["beads"](None))
        finally:
            shutdown_tracing()
        (found,) = [one for one in receiver.spans if one.name == "slot.call"]
        outcome = "disabled" if mode == "off" else "ok"
        wanted = {"slot": "beads", "method": "create", "implementation": mode, "outcome": outcome}
        assert found.attributes.items() >= wanted.items()


async def reply_or_problem(slot: Slot, request: SlotCall[Any]) -> object:
    try:
        return await slot.call(request, OWNER)
    except SlotError as error:
        return error.problem


def read_metric(name: str) -> float:
    for line in registry.expose().splitlines():
        if line.startswith(f"{name} "):
            return float(line.rpartition(" ")[2])
    return 0.0


@pytest.mark.parametrize(("name", "mode"), KEPT)
async def test_a_change_is_in_the_timeline_and_a_read_is_not(bench: SlotBench, name: SlotName, mode: Where) -> None:
    async with bench.open(name, mode) as slot:
        request = CREATE[name](None)
        await slot.call(request, SlotCaller("token:script"))
        (event,) = bench.place.timeline.read(kinds=[f"{name}.*"])
        assert (event.kind, event.who) == (request.event, "token:script")
        assert "a title" not in str(event.data)
        for make in SAMPLES[name]:
            if not isinstance(make(), SlotWrite):
                await reply_or_problem(slot, make())
        assert len(bench.place.timeline.read(kinds=[f"{name}.*"])) == 1


@pytest.mark.parametrize(("name", "mode"), KEPT)
async def test_a_write_with_a_key_has_one_effect(bench: SlotBench, name: SlotName, mode: Where) -> None:
    async with bench.open(name, mode) as slot:
        first = await slot.call(CREATE[name]("k1"), OWNER)
        assert await slot.call(CREATE[name]("k1"), OWNER) == first
        assert await slot.call(CREATE[name]("k2"), OWNER) != first
        # A key belongs to its caller: nobody gets the answer of somebody else.
        await slot.call(CREATE[name]("k1"), SlotCaller("token:other"))
        assert [one.who for one in bench.place.timeline.read(kinds=[f"{name}.*"])].count("token:other") == 1
        with pytest.raises(SlotError) as refused:
            await slot.call(IMPORT[name]("k1"), OWNER)
        assert refused.value.problem == "conflict"
        with pytest.raises(SlotError) as refused:
            await slot.call(CREATE[name]("\n"), OWNER)
        assert refused.value.problem == "invalid"


@pytest.mark.parametrize(("name", "mode"), KEPT)
async def test_a_repeated_write_is_recorded_once(bench: SlotBench, name: SlotName, mode: Where) -> None:
    async with bench.open(name, mode) as slot:
        for _ in range(3):
            await slot.call(CREATE[name]("k1"), OWNER)
    assert len(bench.place.timeline.read(kinds=[f"{name}.*"])) == 1
