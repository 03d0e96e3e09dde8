"""The privacy filter is on every call that exists: refused, or stored as a pseudonym that only the owner sees through."""

import base64
import io
import types
import typing
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.slots.conftest import Mode, SlotBench
from tests.slots.test_contract import SAMPLES

from freehold.home import Home
from freehold.manifest.sections.slots import PrivacyMode, SlotSection
from freehold.observe.metrics import registry
from freehold.slots import Slot, SlotCall, SlotCaller, SlotError, SlotName
from freehold.slots.beads.contract import CreateBead, GetBead, ImportBeads, ListBeads
from freehold.slots.host import SlotPlace, list_built, load_contract, make_slot
from freehold.slots.memory.contract import ExportMemories, GetMemory, ListMemories, SearchMemories, StoreMemory
from freehold.slots.pods.contract import PutDocument
from freehold.slots.privacy.detectors import MachineUser
from freehold.slots.privacy.filter import PrivacyFilter
from freehold.slots.privacy.pseudonyms import KEY_FILE, Pseudonyms
from freehold.timeline import Timeline

pytestmark = pytest.mark.shared_processes
OWNER, AGENT, PROGRAM = SlotCaller("owner"), SlotCaller("session:s1", "claude"), SlotCaller("token:x")
SECRET, MAIL = "sk-abcdefghijklmnop1234", "anna.smith@example.com"


class Recorder:
    """An implementation that keeps what reaches it."""

    kind = "local"
    records_events = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def connect(self) -> None: ...

    async def health(self) -> None: ...

    async def close(self) -> None: ...

    async def call(self, request: Any, caller: Any) -> Any:
        self.seen.append(request)


def plant(hint: Any, value: str) -> Iterator[Any]:
    """A value of this type with the text in each place where it can have one."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is str:
        yield value
    elif hint is bytes:
        yield value.encode()
    elif hint in (int, float, bool, types.NoneType) or origin is typing.Literal:
        return
    elif hint is object or hint is Any:
        yield value
        yield [{"deep": {"deeper": value}}]
        yield {value: value}
    elif origin in (typing.Union, types.UnionType):
        for one in args:
            yield from plant(one, value)
    elif origin in (tuple, list):
        for one in plant(args[0], value):
            yield (one,) if origin is tuple else [one]
    elif origin is not None and issubclass(origin, Mapping):
        for one in plant(args[1], value):
            yield {"a": one}
        yield {value: "x"}
    elif isinstance(hint, type) and is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        given = {one.name: next(iter(plant(hints[one.name], "x")), 1) for one in fields(hint)}
        for one in fields(hint):
            for planted in plant(hints[one.name], value):
                yield hint(**{**given, one.name: planted})
    else:
        raise AssertionError(f"this test does not know how to put text into {hint}")


def planted_requests(sample: SlotCall[Any], value: str) -> Iterator[tuple[str, SlotCall[Any]]]:
    hints = typing.get_type_hints(type(sample))
    for one in fields(sample):  # type: ignore[arg-type]
        if typing.get_origin(hints[one.name]) is ClassVar:
            continue
        for planted in plant(hints[one.name], value):
            yield one.name, replace(sample, **{one.name: planted})  # type: ignore[type-var]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SlotPlace]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        yield SlotPlace(Home(tmp_path, tmp_path), timeline, lambda name: None, {})  # type: ignore[arg-type, return-value]


async def recorded(place: SlotPlace, name: SlotName, mode: str) -> tuple[Slot, Recorder]:
    contract, recorder = load_contract(name), Recorder()
    privacy = PrivacyFilter(name, mode, Pseudonyms(place.home.root, place.timeline), MachineUser())  # type: ignore[arg-type]
    slot = Slot(contract.name, lambda: contract, recorder, place.timeline, privacy=privacy)
    await slot.connect()
    return slot, recorder


@pytest.mark.parametrize("name", list_built())
@pytest.mark.parametrize("private", [SECRET, MAIL], ids=["secret", "mail"])
async def test_strict_refuses_every_text_of_every_call(place: SlotPlace, name: SlotName, private: str) -> None:
    """A call or a field that is added later is covered, or this fails."""
    slot, recorder = await recorded(place, name, "strict")
    contract = load_contract(name)
    calls = {type(make()): make for make in SAMPLES[name]}
    assert calls.keys() == set(contract.calls)
    tried = 0
    for make in calls.values():
        for field, request in planted_requests(make(), private):
            tried += 1
            with pytest.raises(SlotError) as refused:
                await slot.call(request, AGENT)
            assert refused.value.problem == "denied", (request, field)
            assert private not in f"{refused.value.message} {refused.value.hint}"
    assert recorder.seen == []
    assert tried > 0
    assert private not in str(place.timeline.read())


@pytest.mark.parametrize("name", list_built())
async def test_soft_lets_no_text_of_any_call_through(place: SlotPlace, name: SlotName) -> None:
    slot, recorder = await recorded(place, name, "soft")
    for make in SAMPLES[name]:
        for _, request in planted_requests(make(), f"write to {MAIL} soon"):
            await slot.call(request, AGENT)
        for _, request in planted_requests(make(), SECRET):
            with suppress(SlotError):  # a name cannot be replaced, so it is refused
                await slot.call(request, AGENT)
    assert recorder.seen
    assert MAIL not in str(recorder.seen)
    assert MAIL.encode() not in b"".join(str(one).encode() for one in recorder.seen)
    assert SECRET not in str(recorder.seen)


async def test_pages_go_on_with_the_filter_on(place: SlotPlace) -> None:
    """A cursor is random, and is not a secret."""
    slot = make_slot("memory", SlotSection(mode="local", privacy="strict"), place)
    await slot.connect()
    for n in range(5):
        await slot.call(StoreMemory(f"note {n}"), AGENT)
    seen, cursor = 0, None
    while True:
        page = await slot.call(ListMemories(limit=2, cursor=cursor), AGENT)
        seen, cursor = seen + len(page.memories), page.cursor
        if cursor is None:
            break
    assert seen == 5
    await slot.close()


async def test_documents_are_read_as_what_they_stand_for(place: SlotPlace) -> None:
    """Text in base64 is read and replaced within; an image is left alone."""
    slot, recorder = await recorded(place, "beads", "soft")
    text, image = base64.b64encode(f"to {MAIL}".encode()).decode(), base64.b64encode(bytes(range(256))).decode()
    for content in (text, image):
        record = {"id": "x", "title": "t", "more": {"encoding": "base64", "content": content}}
        await slot.call(ImportBeads((record,)), OWNER)
    first, second = (one.records[0]["more"]["content"] for one in recorder.seen)
    assert base64.b64decode(first).startswith(b"to [mail ")
    assert second == image


async def test_a_number_can_be_private_and_a_secret_is_found_in_what_is_not_text(place: SlotPlace) -> None:
    slot, recorder = await recorded(place, "beads", "soft")
    await slot.call(ImportBeads(({"id": "x", "title": "t", "n": [4111111111111111, 1731729600123]},)), OWNER)
    card, moment = recorder.seen[0].records[0]["n"]
    assert (str(card)[:6], moment) == ("[card ", 1731729600123)
    for content in (f"\0{SECRET}".encode(), SECRET.encode("utf-16"), b"\xff\xfe" + SECRET.encode()):
        record = {
            "id": "x",
            "title": "t",
            "more": {"encoding": "base64", "content": base64.b64encode(content).decode()},
        }
        with pytest.raises(SlotError, match="a secret in content"):
            await slot.call(ImportBeads((record,)), OWNER)


async def test_what_is_nested_too_deep_is_refused(place: SlotPlace) -> None:
    slot, recorder = await recorded(place, "beads", "soft")
    deep: Any = MAIL
    for _ in range(100):
        deep = [deep]
    with pytest.raises(SlotError, match="nested deeper"):
        await slot.call(ImportBeads(({"id": "x", "title": "t", "more": deep},)), OWNER)
    assert recorder.seen == []


def open_with(bench: SlotBench, name: SlotName, mode: Mode, privacy: str) -> Slot:
    settings = bench.settings_of(name) if mode == "external" else {}
    return make_slot(name, SlotSection(mode=mode, privacy=privacy, settings=settings), bench.place)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["local", "external"])
async def test_a_pseudonym_is_stable_and_only_the_owner_sees_through_it(bench: SlotBench, mode: Mode) -> None:
    slot = open_with(bench, "memory", mode, "soft")
    await slot.connect()
    first = await slot.call(StoreMemory(f"Anna is {MAIL}, her key {SECRET}"), AGENT)
    assert MAIL not in first.text
    assert "Anna is [mail " in first.text
    second = await slot.call(StoreMemory(f"Write to {MAIL}"), OWNER)
    assert second.text == f"Write to {MAIL}"
    assert (await slot.call(GetMemory(first.id), OWNER)).text == f"Anna is {MAIL}, her key {SECRET}"
    for caller in (AGENT, PROGRAM):
        shown = (await slot.call(GetMemory(second.id), caller)).text
        assert shown.removeprefix("Write to ") in first.text
    # A search for the address itself finds both: the question has the same pseudonym.
    matches = (await slot.call(SearchMemories(MAIL), OWNER)).matches
    assert {one.memory.id for one in matches} == {first.id, second.id}
    assert SECRET in str((await slot.call(ExportMemories(), OWNER)).records)
    assert SECRET not in str((await slot.call(ExportMemories(), PROGRAM)).records)
    await slot.close()
    # Without the filter the store shows what it really holds.
    plain = bench.make("memory", mode)
    await plain.connect()
    assert MAIL not in str(await plain.call(ListMemories(), OWNER))
    await plain.close()
    assert MAIL not in str(bench.place.timeline.read())


@pytest.mark.parametrize("mode", ["local", "external"])
async def test_strict_says_what_it_saw_and_stores_nothing(bench: SlotBench, mode: Mode) -> None:
    slot = open_with(bench, "beads", mode, "strict")
    await slot.connect()
    with pytest.raises(SlotError) as refused:
        await slot.call(CreateBead("Call Anna", f"at +49 171 2345678 or {MAIL}"), AGENT)
    assert "a phone number in description, a mail address in description" in refused.value.message
    assert 'slots.beads.privacy = "soft"' in refused.value.hint
    assert (await slot.call(ListBeads(), OWNER)).beads == ()
    made = await slot.call(CreateBead("Call Anna"), AGENT)
    assert (await slot.call(GetBead(made.id), OWNER)).bead.title == "Call Anna"
    (event,) = bench.place.timeline.read(kinds=["slot.private_found"])
    assert event.data == {"slot": "beads", "method": "create", "outcome": "refused", "found": {"phone": 1, "mail": 1}}
    assert event.who == AGENT.name
    line = 'freehold_slot_private_total{slot="beads",kind="mail",outcome="refused"}'
    assert line in registry.expose()
    await slot.close()


async def test_the_key_is_private_and_another_home_cannot_turn_pseudonyms_back(
    place: SlotPlace, tmp_path: Path
) -> None:
    ours = Pseudonyms(place.home.root, place.timeline)
    (name,) = ours.replace([("mail", MAIL)], 0.0)
    assert ours.restore(f"to {name}.") == f"to {MAIL}."
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    again = Pseudonyms(place.home.root, place.timeline)
    assert again.restore(name) == MAIL
    assert again.replace([("mail", MAIL)], 0.0) == [name]
    assert MAIL.encode() not in (tmp_path / "timeline.db").read_bytes()
    (tmp_path / "other").mkdir()
    theirs = Pseudonyms(tmp_path / "other", place.timeline)
    assert theirs.restore(name) == name
    assert theirs.replace([("mail", MAIL)], 0.0) != [name]
    assert ours.restore("[mail aaaaaaaaaaaa] [nothing here]") == "[mail aaaaaaaaaaaa] [nothing here]"


async def test_events_of_the_timeline_pass_the_filter_and_what_it_finds_is_counted(bench: SlotBench) -> None:
    from freehold.slots.events.contract import ReadEvents

    for privacy, seen, outcome in (("soft", "[mail ", "replaced"), ("strict", "privacy", "refused")):
        section = SlotSection(mode="local", privacy=privacy, settings={"kinds": "test.*"})  # type: ignore[arg-type]
        slot = make_slot("events", section, bench.place)
        await slot.connect()
        before = count_private("events", "mail", outcome)
        for _ in range(2):
            bench.place.timeline.append("test.said", {"words": f"write to {MAIL}", "number": 3})
        bench.place.timeline.append("test.said", {"words": "nothing private"})
        page = await slot.call(ReadEvents(), PROGRAM)
        assert seen in str(page.events[-2].data)
        assert MAIL not in str(page)
        assert count_private("events", "mail", outcome) == before + 2
        event = bench.place.timeline.read(kinds=["slot.private_found"])[-1]
        assert event.data == {"slot": "events", "method": "leave", "outcome": outcome, "found": {"mail": 2}}
        await slot.call(ReadEvents(), PROGRAM)
        assert count_private("events", "mail", outcome) == before + 2
        await slot.close()


def count_private(slot: SlotName, kind: str, outcome: str) -> float:
    line = f'freehold_slot_private_total{{slot="{slot}",kind="{kind}",outcome="{outcome}"}} '
    found = [one for one in registry.expose().splitlines() if one.startswith(line)]
    return float(found[0].removeprefix(line)) if found else 0.0


N3 = """@prefix solid: <http://www.w3.org/ns/solid/terms#>. @prefix ex: <http://example.org/>.
_:p a solid:InsertDeletePatch; solid:inserts { ex:me ex:reach %s }."""


@pytest.mark.parametrize(
    "term",
    [f'"{MAIL}"', f"<mailto:{MAIL}>", '"anna.smith\\u0040example.com"', "<mailto:anna.smith%40example.com>"],
    ids=["text", "address", "escaped", "quoted"],
)
async def test_an_n3_patch_is_read_in_every_spelling(place: SlotPlace, term: str) -> None:
    from freehold.slots.pods.contract import PatchDocument

    slot, recorder = await recorded(place, "pods", "strict")
    with pytest.raises(SlotError, match="a mail address in patch"):
        await slot.call(PatchDocument("me.ttl", N3 % term, "n3"), OWNER)
    assert recorder.seen == []
    slot, recorder = await recorded(place, "pods", "soft")
    await slot.call(PatchDocument("me.ttl", N3 % term, "n3"), OWNER)
    assert "[mail " in recorder.seen[0].patch
    assert "anna" not in recorder.seen[0].patch


async def test_a_solid_server_gets_the_pseudonym_of_an_n3_patch_and_the_owner_sees_through_it(bench: SlotBench) -> None:
    from freehold.slots.pods.contract import GetDocument, PatchDocument

    section = SlotSection(mode="external", privacy="soft", settings=bench.settings_of("pods"))
    slot = make_slot("pods", section, bench.place_of("pods"))
    await slot.connect()
    await slot.call(PutDocument("me.ttl", "text/turtle", "@prefix ex: <http://example.org/>. ex:me ex:age 41."), OWNER)
    await slot.call(PatchDocument("me.ttl", N3 % f'"{MAIL}"', "n3"), OWNER)
    theirs, ours = [(await slot.call(GetDocument("me.ttl"), caller)).content or b"" for caller in (PROGRAM, OWNER)]
    assert b"[mail " in theirs
    assert MAIL.encode() not in theirs
    assert MAIL.encode() in ours
    await slot.close()


@pytest.mark.parametrize("mode", ["strict", "soft"])
async def test_a_document_that_is_not_text_is_kept_as_it_is_unless_a_secret_shows_in_it(
    place: SlotPlace, mode: PrivacyMode
) -> None:
    """As docs/guides/slots.md says: what is packed is not read."""
    from freehold.slots.pods.contract import GetDocument, ListFolder

    slot = make_slot("pods", SlotSection(mode="local", privacy=mode), place)
    await slot.connect()
    image = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("letter.txt", f"write to {MAIL} " * 50)
    for name, content in (("a.png", image), ("a.zip", packed.getvalue())):
        encoded = base64.b64encode(content).decode()
        await slot.call(PutDocument(name, "application/octet-stream", encoded, "base64"), OWNER)
        assert (await slot.call(GetDocument(name), OWNER)).content == content
    hidden = base64.b64encode(image + SECRET.encode() + image).decode()
    with pytest.raises(SlotError, match="a secret in content") as refused:
        await slot.call(PutDocument("b.png", "image/png", hidden, "base64"), OWNER)
    assert refused.value.hint == "It is not text, so it cannot be replaced: leave it out"
    assert [one.path for one in (await slot.call(ListFolder(), OWNER)).entries] == ["a.png", "a.zip"]
    await slot.close()


@pytest.mark.parametrize(
    "content",
    [b"\xff mail anna.smith@example.com", "mail anna.smith@example.com".encode("utf-16")],
    ids=["byte", "utf-16"],
)
async def test_text_in_a_strange_encoding_is_read_and_refused(place: SlotPlace, content: bytes) -> None:
    slot = make_slot("pods", SlotSection(mode="local", privacy="strict"), place)
    await slot.connect()
    encoded = base64.b64encode(content).decode()
    with pytest.raises(SlotError) as caught:
        await slot.call(PutDocument("a.bin", "application/octet-stream", encoded, "base64"), OWNER)
    assert caught.value.problem == "denied"
    await slot.close()


@pytest.mark.parametrize("mode", ["strict", "soft"])
async def test_the_name_of_a_document_is_read_too(place: SlotPlace, mode: PrivacyMode) -> None:
    slot = make_slot("pods", SlotSection(mode="local", privacy=mode), place)
    await slot.connect()
    for path in ("people/+49-170-1234567.md", "cards/4111111111111111.txt", "DE89370400440532013000.txt"):
        with pytest.raises(SlotError) as caught:
            await slot.call(PutDocument(path, "text/plain", "x"), OWNER)
        assert caught.value.problem == "denied"
    await slot.close()
