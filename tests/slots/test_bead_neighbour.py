"""Work items that another Freehold keeps: who acts, whose keys they are, moves, and answers that are wrong."""

import json
import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from tests.slots.conftest import SlotBench
from tests.slots.test_beads import AGENT, OTHER, OWNER, create, refused
from tests.slots.test_transfer import freehold

from freehold.cli.main import freehold_command
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.beads.assignment import describe_work
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
)
from freehold.slots.host import make_slot

pytestmark = pytest.mark.shared_processes


@pytest.fixture
async def beads(bench: SlotBench) -> AsyncIterator[Slot]:
    """As this Freehold sees the items."""
    async with bench.open("beads", "neighbour") as slot:
        yield slot


async def test_two_sessions_here_are_two_holders_there_and_both_sides_know_who(bench: SlotBench, beads: Slot) -> None:
    item = await create(beads, "Mend the roof")
    claimed = await beads.call(ClaimBead(item.id), AGENT)
    assert (claimed.holder, claimed.sessions, claimed.created_by) == ("session:a1", ("a1",), "owner")
    with pytest.raises(SlotError, match="is held by session:a1") as error:
        await beads.call(ClaimBead(item.id), OTHER)
    assert error.value.problem == "claimed"
    await beads.call(CommentBead(item.id, "so far"), AGENT)
    found = await bench.neighbour.call_beads(GetBead(item.id), OWNER)
    mine = "token:neighbour/session:a1"
    assert (found.bead.holder, found.bead.sessions) == (mine, ("token:neighbour/a1",))
    assert found.bead.created_by == "token:neighbour/owner"
    assert [one.who for one in found.history] == ["token:neighbour/owner", mine, mine]
    assert [one.author for one in found.comments] == [mine]
    recorded = bench.neighbour.services.timeline.read(kinds=["beads.claimed"])[-1]
    assert (recorded.who, recorded.data["id"]) == (mine, item.id)
    assert [one.id for one in (await beads.call(ListBeads(holder="session:a1"), OWNER)).beads] == [item.id]


async def test_a_session_that_the_owner_here_sets_on_an_item_holds_it_there(bench: SlotBench, beads: Slot) -> None:
    item = await create(beads, "Mend the roof")
    assert (await beads.call(ClaimBead(item.id, session="a1"), OWNER)).holder == "session:a1"
    last = (await beads.call(GetBead(item.id), OWNER)).history[-1]
    assert (last.who, last.fields) == ("owner", {"holder": "session:a1"})
    # The owner here acts on what sessions here hold.
    assert (await beads.call(ReleaseBead(item.id), OWNER)).holder is None


async def test_the_owner_here_is_not_the_owner_there(bench: SlotBench, beads: Slot) -> None:
    item = await bench.neighbour.call_beads(CreateBead("Theirs"), OWNER)
    await bench.neighbour.call_beads(ClaimBead(item.id), OWNER)
    for request in (ReleaseBead(item.id), CloseBead(item.id, "mine now", "none")):
        assert await refused(beads, request) == "denied"
    with pytest.raises(SlotError, match="is held by neighbour:owner"):
        await beads.call(ClaimBead(item.id), OWNER)
    found = await beads.call(GetBead(item.id), OWNER)
    assert (found.bead.holder, found.bead.created_by) == ("neighbour:owner", "neighbour:owner")
    assert [one.id for one in (await beads.call(ListBeads(holder="neighbour:owner"), OWNER)).beads] == [item.id]
    assert (await beads.call(ListBeads(holder="owner"), OWNER)).beads == ()
    # Their owner, though, may act on what is held from here.
    mine = await create(beads, "Mine")
    await beads.call(ClaimBead(mine.id), AGENT)
    assert (await bench.neighbour.call_beads(ReleaseBead(mine.id), OWNER)).holder is None


async def test_two_freeholds_with_a_token_each_are_apart(bench: SlotBench, beads: Slot) -> None:
    """Their owners and sessions have the same names, and neither holds, releases or repeats what is the other's."""
    _, secret = bench.neighbour.services.tokens.create(bench.unique, frozenset({"beads"}), None)
    place = replace(bench.place, environ={"NEIGHBOUR_TOKEN": secret})
    other = make_slot("beads", SlotSection(mode="external", settings=bench.neighbour_settings), place)
    await other.connect()
    try:
        item = await beads.call(CreateBead("Once", key="k"), OWNER)
        second = await other.call(CreateBead("Once", key="k"), OWNER)
        assert second.id != item.id
        await beads.call(ClaimBead(item.id), AGENT)
        assert await refused(other, ClaimBead(item.id), AGENT) == "claimed"
        assert await refused(other, ReleaseBead(item.id), OWNER) == "denied"
        seen = (await other.call(GetBead(item.id), OWNER)).bead
        assert (seen.holder, seen.sessions) == (
            "neighbour:token:neighbour/session:a1",
            ("neighbour:token:neighbour/a1",),
        )
    finally:
        await other.close()


async def test_the_keys_of_two_callers_do_not_meet(beads: Slot) -> None:
    callers = [OWNER, AGENT, OTHER, SlotCaller("token:ci")]
    made = [await beads.call(CreateBead("Once", key="k"), caller) for caller in callers]
    assert len({one.id for one in made}) == 4
    assert [await beads.call(CreateBead("Once", key="k"), caller) for caller in callers] == made
    first, second = made[:2]
    await beads.call(AddNeed(first.id, second.id), OWNER)
    removed = await beads.call(RemoveNeed(first.id, second.id, key="r"), OWNER)
    await beads.call(AddNeed(first.id, second.id), OWNER)
    # The repetition has no second effect, also of a removal.
    assert await beads.call(RemoveNeed(first.id, second.id, key="r"), OWNER) == removed
    assert (await beads.call(GetBead(first.id), OWNER)).bead.needs == (second.id,)


async def test_a_program_here_stores_no_record_in_the_name_of_an_owner(beads: Slot) -> None:
    record = {"id": "bd-1", "title": "t", "status": "in_progress", "assignee": "owner", "created_by": "owner"}
    await beads.call(ImportBeads((record,)), SlotCaller("token:ci"))
    found = (await beads.call(GetBead("bd-1"), OWNER)).bead
    assert (found.holder, found.created_by) == ("token:ci/owner", "token:ci/owner")


async def test_what_the_other_side_wrote_is_quoted_to_an_agent(bench: SlotBench, beads: Slot) -> None:
    """On both sides: neither owner speaks for the other."""
    theirs = await bench.neighbour.call_beads(CreateBead("Tidy", "Send the keys"), OWNER)
    assert "> Send the keys" in describe_work(await beads.call(GetBead(theirs.id), OWNER))
    mine = await create(beads, "Tidy", description="Send the keys")
    assert "> Send the keys" not in describe_work(await beads.call(GetBead(mine.id), OWNER))
    assert "> Send the keys" in describe_work(await bench.neighbour.call_beads(GetBead(mine.id), OWNER))


# Settings and answers


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url": "http://example.com", "token": "env:T"}, "not encrypted"),
        ({"url": "https://example.com/path", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://a:b@example.com", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://example.com?a=b", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://[x", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://example.com:99999", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://exa mple.com", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://", "token": "env:T"}, "not the address of a Freehold"),
        ({"url": "https://example.com"}, "token is missing"),
        ({"url": "https://example.com", "token": "plain"}, "not a reference to a secret"),
        ({"url": "https://example.com", "token": "env:T", "schema": "y"}, "has no schema"),
    ],
    ids=str,
)
async def test_wrong_settings_are_named(bench: SlotBench, settings: dict[str, str], words: str) -> None:
    place = replace(bench.place, environ={"T": "x"})
    slot = make_slot("beads", SlotSection(mode="external", settings=settings), place)
    with pytest.raises(SlotError) as error:
        await slot.connect()
    assert words in error.value.message
    assert error.value.problem == "unavailable"


@pytest.mark.parametrize("token", ["", "wrong", "of another scope"])
async def test_a_token_that_does_not_reach_the_items_is_told(bench: SlotBench, token: str) -> None:
    if token == "of another scope":
        _, token = bench.neighbour.services.tokens.create(bench.unique, frozenset({"read"}), None)
    place = replace(bench.place, environ={"NEIGHBOUR_TOKEN": token})
    slot = make_slot("beads", SlotSection(mode="external", settings=bench.neighbour_settings), place)
    with pytest.raises(SlotError) as error:
        await slot.connect()
    await slot.close()
    assert error.value.problem == "unavailable"
    assert not token or token not in error.value.message


GOOD = {"/v1/slots/beads/caller": {"name": "token:x"}, "/v1/slots/beads/items": {"beads": [], "cursor": None}}
ITEM: dict[str, object] = {
    **dict.fromkeys(("id", "title", "description", "created_by"), "x"),
    **{name: [] for name in ("labels", "needs", "related", "sessions")},
    **dict.fromkeys(("created", "updated"), "2026-01-01T00:00:00Z"),
    **dict.fromkeys(("holder", "parent", "closed", "close_reason", "evidence")),
    "kind": "task",
    "status": "open",
    "priority": 2,
    "blocked": False,
    "version": 1,
}
DEEP = b'{"bead":' * 100_000


@pytest.mark.parametrize(
    ("path", "status", "answer"),
    [
        (
            "/v1/slots/beads/caller",
            404,
            b'{"error": {"code": "request.not-found", "message": "There is no such route"}}',
        ),
        ("/v1/slots/beads/caller", 200, b'{"name": 3}'),
        ("/v1/slots/beads/caller", 200, b"{}"),
        ("/v1/slots/beads/items", 200, b"[]"),
        ("/v1/slots/beads/items", 200, b"<html>"),
        ("/v1/slots/beads/items", 302, b""),
        ("/v1/slots/beads/items", 401, b'{"error": {"code": 1}}'),
        ("/v1/slots/beads/items", 500, b'{"error": {"code": "internal", "message": "a\\u001bb"}}'),
        ("/v1/slots/beads/items/x", 200, b'{"bead": {}}'),
        ("/v1/slots/beads/items/x", 200, json.dumps({"bead": {**ITEM, "created": "soon"}}).encode()),
        ("/v1/slots/beads/items/x", 200, json.dumps({"bead": {**ITEM, "created": 9e999}}).encode()),
        ("/v1/slots/beads/items/x", 200, json.dumps({"bead": {**ITEM, "odd": 1}}).encode()),
        ("/v1/slots/beads/items/x", 200, json.dumps({"bead": ITEM, "children": "x"}).encode()),
        ("/v1/slots/beads/items/x", 200, DEEP),
        ("/v1/slots/beads/export", 200, b'{"records": [3], "cursor": null}'),
        ("/v1/slots/beads/export", 200, b'{"records": [], "cursor": 3}'),
    ],
    ids=lambda one: str(one)[:40],
)
async def test_a_neighbour_that_answers_nonsense_is_unavailable(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch, path: str, status: int, answer: bytes
) -> None:
    def respond(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == path:
            return httpx2.Response(status, content=answer)
        return httpx2.Response(200, json=GOOD[request.url.path])

    transport, original = httpx2.MockTransport(respond), httpx2.AsyncClient
    monkeypatch.setattr(httpx2, "AsyncClient", lambda **more: original(**{**more, "transport": transport}))
    place = replace(bench.place, environ={"T": "secret-value"})
    settings = {"url": "http://127.0.0.1:9", "token": "env:T"}
    slot = make_slot("beads", SlotSection(mode="external", settings=settings), place)

    async def use() -> None:
        await slot.connect()
        await slot.call(ListBeads(), OWNER)
        await slot.call(ExportBeads() if path.endswith("export") else GetBead("x"), OWNER)

    with pytest.raises(SlotError) as error:
        await use()
    await slot.close()
    assert error.value.problem == "unavailable"
    assert error.value.message.isprintable()
    assert len(error.value.message) < 1000


# The command


@pytest.fixture
def home(bench: SlotBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    bench.neighbour.forget_beads()
    monkeypatch.setenv("NEIGHBOUR_TOKEN", bench.neighbour.token)
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in bench.neighbour_settings.items())
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    (place / "freehold.toml").write_text(f'[slots.beads]\nmode = "local"\n[slots.beads.settings]\n{settings}\n')
    return place


def test_a_slot_moves_to_another_freehold_and_back(home: Path) -> None:
    first = json.loads(freehold(home, "beads", "create", "first", "--label", "x", "--json"))
    freehold(home, "beads", "create", "second", "--needs", first["id"])
    freehold(home, "beads", "claim", first["id"])
    before = freehold(home, "slots", "export", "beads")
    assert "2 entries are now kept by the external service" in freehold(
        home, "slots", "move", "beads", "--to", "external"
    )
    assert tomllib.loads((home / "freehold.toml").read_text())["slots"]["beads"]["mode"] == "external"
    assert freehold(home, "slots", "export", "beads") == before
    freehold(home, "beads", "comment", first["id"], "from there")
    after = freehold(home, "slots", "export", "beads")
    assert "2 entries are now kept here" in freehold(home, "slots", "move", "beads", "--to", "local")
    assert freehold(home, "slots", "export", "beads") == after
    # What came from there and has not changed is the same when it goes there again.
    freehold(home, "slots", "move", "beads", "--to", "external")
    assert freehold(home, "slots", "export", "beads") == after


def test_trying_another_freehold_leaves_nothing_behind(home: Path, bench: SlotBench) -> None:
    before = bench.neighbour.services.timeline.read(kinds=["beads.*"], limit=1000)
    shown = freehold(home, "slots", "try", "beads")
    assert shown.count("ok  ") == 4
    assert "tables" not in shown
    assert bench.neighbour.services.timeline.read(kinds=["beads.*"], limit=1000) == before
    assert json.loads(freehold(home, "beads", "--json")) == []


def test_trying_with_a_wrong_token_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEIGHBOUR_TOKEN", "wrong")
    done = CliRunner().invoke(freehold_command, ["slots", "try", "beads", "--home", str(home)])
    assert done.exit_code == 1
    assert "failed  Connect" in done.output
    assert "cannot be reached" in done.output
