"""The edge of a slot: answers that nobody has thought of, keys that are refused in time, names that are not documents."""

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.support.condition import until

from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.slots import Slot, SlotCaller, SlotError, answers
from freehold.slots import slot as slot_module
from freehold.slots.events.contract import ImportEvents
from freehold.slots.host import SlotPlace, make_slot
from freehold.slots.memory.contract import CONTRACT, ExportMemories, ImportMemories, ListMemories, StoreMemory
from freehold.slots.pods.contract import CreateFolder, GetDocument, PutDocument
from freehold.slots.pods.solid import read_listing
from freehold.slots.pods.solid_sign_in import SignInFailed, SolidSignIn, _read_endpoint
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")
PROGRAM = SlotCaller("token:sync")


class SurprisingImplementation:
    """Raises what no implementation should."""

    kind: str = "external"
    records_events = True
    fails = True
    works = 0

    def _surprise(self) -> None:
        if self.fails:
            raise OverflowError("int too large")

    async def connect(self) -> None:
        self._surprise()

    async def health(self) -> str | None:
        self._surprise()
        return None

    async def close(self) -> None:
        """Nothing is open."""

    async def call(self, request: Any, caller: SlotCaller) -> Any:
        self._surprise()
        return "fine"

    async def work(self) -> None:
        self.works += 1
        self._surprise()


async def test_an_answer_that_nobody_has_thought_of_ends_neither_the_slot_nor_its_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_module, "MAX_RETRY_DELAY", 0.05)
    inner = SurprisingImplementation()
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = Slot(CONTRACT.name, lambda: CONTRACT, inner, timeline)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(slot.run())
            await until(lambda: slot.status.state == "unavailable" and inner.works > 1)
            assert "OverflowError" in (slot.status.error or "")
            inner.fails = False
            await until(lambda: slot.status.state == "ok")
            assert str(await slot.call(ListMemories(), OWNER)) == "fine"
            inner.fails = True
            with pytest.raises(SlotError) as caught:
                await slot.call(ListMemories(), OWNER)
            assert caught.value.problem == "unavailable"
            found = await slot.probe()
            assert found is not None
            assert found.state == "degraded"
            running.cancel()


def make(tmp_path: Path, timeline: Timeline, name: Literal["pods", "memory", "events"]) -> Slot:
    place = SlotPlace(Home(tmp_path, tmp_path), timeline, lambda name: Secret(""), {})
    return make_slot(name, SlotSection(mode="local"), place)


@pytest.mark.parametrize("key", ["x" * 300, "a\tb", ""])
async def test_a_key_that_cannot_be_used_is_refused_before_anything_happens(tmp_path: Path, key: str) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = make(tmp_path, timeline, "pods")
        await slot.connect()
        with pytest.raises(SlotError, match="idempotency key"):
            await slot.call(PutDocument("a.txt", "text/plain", "x", key=key), OWNER)
        with pytest.raises(SlotError) as caught:
            await slot.call(GetDocument("a.txt"), OWNER)
        assert caught.value.problem == "not-found"
        await slot.close()


async def test_an_old_answer_is_given_again_and_never_replaced_by_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "KEPT_SECONDS", -60)
    with Timeline(tmp_path / "timeline.db") as timeline:
        pods, events = make(tmp_path, timeline, "pods"), make(tmp_path, timeline, "events")
        for slot in (pods, events):
            await slot.connect()
        written = PutDocument("a.txt", "text/plain", "x", key="k")
        assert await pods.call(written, OWNER) == await pods.call(written, OWNER)
        record = {"specversion": "1.0", "id": "1", "source": "/x", "type": "a.b", "time": "2026-01-01T00:00:00Z"}
        brought = ImportEvents((record,), key="k")
        assert await events.call(brought, OWNER) == await events.call(brought, OWNER)
        for slot in (pods, events):
            await slot.close()


@pytest.mark.parametrize("name", [".acl", "a.txt.acl", "x.ACL", ".meta", "b.acr"])
async def test_who_may_reach_a_document_is_not_a_document(tmp_path: Path, name: str) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = make(tmp_path, timeline, "pods")
        await slot.connect()
        for request in (PutDocument(f"own/{name}", "text/turtle", "x"), GetDocument(f"{name}/x"), CreateFolder(name)):
            with pytest.raises(SlotError) as caught:
                await slot.call(request, OWNER)
            assert caught.value.problem == "invalid"
        await slot.close()


async def test_a_name_that_is_too_long_for_the_disk_is_a_mistake_and_not_a_lost_slot(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = make(tmp_path, timeline, "pods")
        await slot.connect()
        with pytest.raises(SlotError) as caught:
            await slot.call(PutDocument("x" * 200, f"application/{'y' * 80}", "x"), OWNER)
        assert caught.value.problem == "invalid"
        assert slot.status.state == "ok"
        await slot.close()


async def test_a_program_replaces_no_memory_of_others_and_writes_in_its_own_name(tmp_path: Path) -> None:
    with Timeline(tmp_path / "timeline.db") as timeline:
        slot = make(tmp_path, timeline, "memory")
        await slot.connect()
        mine = await slot.call(StoreMemory("The safe is behind the picture"), OWNER)
        forged = {"id": mine.id, "text": "Obey", "version": 99, "created_by": "owner", "pinned": True}
        with pytest.raises(SlotError) as caught:
            await slot.call(ImportMemories((forged,)), PROGRAM)
        assert caught.value.problem == "denied"
        assert (await slot.call(ListMemories(), OWNER)).memories == (mine,)
        await slot.call(ImportMemories(({"id": "new", "text": "Fine", "created_by": "owner"},)), PROGRAM)
        page = await slot.call(ExportMemories(), OWNER)
        assert {str(one["id"]): one["created_by"] for one in page.records} == {mine.id: "owner", "new": "token:sync"}
        await slot.close()


def test_the_numbers_of_a_solid_server_are_bounded() -> None:
    sign_in = SolidSignIn("https://pod.example/", "id", Secret("secret"))
    for life in (10**400, float("nan"), float("inf"), -5):
        sign_in._take({"access_token": "t", "expires_in": life})
        assert sign_in._ends < float("inf")
    base = "https://pod.example/a/"
    for size in ("²", "9" * 5000, "x", "-1"):
        graph = [
            {"@id": base, "http://www.w3.org/ns/ldp#contains": [{"@id": f"{base}f"}]},
            {"@id": f"{base}f", "http://www.w3.org/ns/posix/stat#size": [{"@value": size}]},
        ]
        (entry,) = read_listing(graph, base, "a/")
        assert entry.size is None


def test_credentials_for_a_server_elsewhere_are_not_sent_to_a_program_of_this_machine() -> None:
    for endpoint in ("http://127.0.0.1:8080/token", "https://localhost/token"):
        with pytest.raises(SignInFailed, match="this machine"):
            _read_endpoint({"token_endpoint": endpoint}, "https://pod.example/")
    assert _read_endpoint({"token_endpoint": "http://127.0.0.1:3/t"}, "http://127.0.0.1:3/") == "http://127.0.0.1:3/t"
