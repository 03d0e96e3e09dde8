"""Personal data: the same promises for files of the home and for a real Solid server; agents reach only what is granted."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.slots.conftest import Mode, SlotBench
from tests.support.condition import until
from tests.support.solid import SolidPod

from freehold.cli.main import freehold_command
from freehold.manifest.sections.slots import SlotSection
from freehold.slots import Slot, SlotCaller, SlotError
from freehold.slots.host import make_slot
from freehold.slots.pods import grants as pod_grants
from freehold.slots.pods import solid as solid_store
from freehold.slots.pods.contract import (
    AwaitChange,
    CreateFolder,
    DeleteDocument,
    DocumentInfo,
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
from freehold.slots.pods.files import join_name, split_name

pytestmark = pytest.mark.shared_processes
OWNER = SlotCaller("owner")
CLAUDE = SlotCaller("session:s1", agent="claude")
CODEX = SlotCaller("session:s2", agent="codex")
both = pytest.mark.parametrize("mode", ["local", "external"])


async def put(slot: Slot, path: str, content: str = "words", media: str = "text/plain", **more: Any) -> DocumentInfo:
    return await slot.call(PutDocument(path, media, content, **more), OWNER)


async def problem_of(slot: Slot, request: Any, caller: SlotCaller = OWNER) -> str:
    try:
        await slot.call(request, caller)
    except SlotError as error:
        return error.problem
    return "none"


async def paths(slot: Slot, folder: str = "") -> list[str]:
    return [one.path for one in (await slot.call(ListFolder(folder), OWNER)).entries]


@both
async def test_a_document_is_read_as_it_was_written_with_any_media_type(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        raw = base64.b64encode(bytes(range(256))).decode()
        written = {
            "a.json": ("application/json", '{"a": 1}', "text"),
            "notes/plain": ("text/plain", "grüße", "text"),
            "notes/Wörter & mehr.txt": ("text/plain", "", "text"),
            "bytes.bin": ("application/octet-stream", raw, "base64"),
            "odd": ("application/x-freehold-own", "?", "text"),
        }
        for path, (media, content, encoding) in written.items():
            made = await put(slot, path, content, media, encoding=encoding)
            found = await slot.call(GetDocument(path), OWNER)
            expected = base64.b64decode(content) if encoding == "base64" else content.encode()
            assert (found.content, found.info.media) == (expected, media)
            assert found.info.etag == made.etag is not None
            assert (await slot.call(GetDocument(path, known=made.etag), OWNER)).content is None
        assert await paths(slot) == ["a.json", "bytes.bin", "notes/", "odd"]
        assert await paths(slot, "notes") == ["notes/Wörter & mehr.txt", "notes/plain"]
        listed = {one.path: one.media for one in (await slot.call(ListFolder(), OWNER)).entries}
        assert listed["a.json"] == "application/json"
        assert await problem_of(slot, GetDocument("not/there")) == "not-found"


@both
async def test_conditions_let_one_of_many_writers_win(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        first = await put(slot, "n.txt", "0", is_new=True)
        assert await problem_of(slot, PutDocument("n.txt", "text/plain", "x", is_new=True)) == "conflict"
        for round in range(3):
            etag = (await slot.call(GetDocument("n.txt"), OWNER)).info.etag
            wanted = [PutDocument("n.txt", "text/plain", f"{round}-{n}", if_match=etag) for n in range(6)]
            outcomes = await asyncio.gather(*(problem_of(slot, one) for one in wanted))
            assert sorted(outcomes) == ["conflict"] * 5 + ["none"]
        assert await problem_of(slot, DeleteDocument("n.txt", if_match=first.etag)) == "conflict"
        assert await problem_of(slot, PutDocument("new.txt", "text/plain", "x", if_match='"y"')) == "conflict"
        assert await problem_of(slot, DeleteDocument("n.txt")) == "none"
        assert await problem_of(slot, DeleteDocument("n.txt")) == "not-found"


@both
async def test_json_patch_changes_all_or_nothing_and_loses_no_change_of_others(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        await put(slot, "c.json", '{"n": 0, "list": [1, 2]}', "application/json")
        patch = json.dumps([{"op": "test", "path": "/n", "value": 0}, {"op": "add", "path": "/list/-", "value": 3}])
        await slot.call(PatchDocument("c.json", patch), OWNER)
        wrong = json.dumps([{"op": "replace", "path": "/n", "value": 9}, {"op": "remove", "path": "/none"}])
        assert await problem_of(slot, PatchDocument("c.json", wrong)) == "conflict"
        found = json.loads((await slot.call(GetDocument("c.json"), OWNER)).content or b"")
        assert found == {"n": 0, "list": [1, 2, 3]}
        adds = [json.dumps([{"op": "add", "path": f"/k{n}", "value": n}]) for n in range(4)]
        await asyncio.gather(*(slot.call(PatchDocument("c.json", one), OWNER) for one in adds))
        found = json.loads((await slot.call(GetDocument("c.json"), OWNER)).content or b"")
        assert {f"k{n}" for n in range(4)} <= found.keys()
        await put(slot, "t.txt", "no json")
        assert await problem_of(slot, PatchDocument("t.txt", "[]")) == "conflict"
        for bad in ("{}", "x", '[{"op": "jump", "path": "/a"}]', '[{"op": "add", "path": "a", "value": 1}]'):
            assert await problem_of(slot, PatchDocument("c.json", bad)) == "invalid"


async def test_a_patch_cannot_fill_the_memory_or_the_stack(bench: SlotBench) -> None:
    """Thirty copies of copies would make a billion values; a thousand moves of a large value cost one read of it."""
    async with bench.open("pods", "local") as slot:
        await put(slot, "bomb.json", '{"a": {"x": "xxxxxxxx"}}', "application/json")
        doubled = [{"op": "copy", "from": "", "path": "/a/y"}, {"op": "copy", "from": "/a", "path": "/a/z"}]
        assert await problem_of(slot, PatchDocument("bomb.json", json.dumps(doubled * 30))) == "invalid"
        grown = [{"op": "copy", "from": "/a/x", "path": f"/{n}"} for n in range(1000)]
        await put(slot, "long.json", json.dumps({"a": {"x": "x" * 100_000}}), "application/json")
        assert await problem_of(slot, PatchDocument("long.json", json.dumps(grown))) == "invalid"
        moves = [{"op": "move", "from": f"/{'ab'[n % 2]}", "path": f"/{'ba'[n % 2]}"} for n in range(1000)]
        await put(slot, "moved.json", json.dumps({"a": list(range(300_000))}), "application/json")
        assert await problem_of(slot, PatchDocument("moved.json", json.dumps(moves))) == "none"
        deep = "[" * 900 + "]" * 900
        await put(slot, "deep.json", f'{{"a": {deep}}}', "application/json")
        for operation in ({"op": "copy", "from": "/a", "path": "/b"}, {"op": "test", "path": "/a", "value": [[[]]]}):
            patch = json.dumps([operation])
            assert await problem_of(slot, PatchDocument("deep.json", patch)) in ("none", "invalid", "conflict")
        same = f'[{{"op": "test", "path": "/a", "value": {deep}}}]'
        assert await problem_of(slot, PatchDocument("deep.json", same)) in ("none", "invalid")


@both
async def test_a_patch_that_is_sent_twice_at_once_is_made_once(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        await put(slot, "twice.json", '{"list": []}', "application/json")
        add = PatchDocument("twice.json", '[{"op": "add", "path": "/list/-", "value": 1}]', key="one")
        made = await asyncio.gather(*(slot.call(add, OWNER) for _ in range(8)))
        assert len(set(made)) == 1
        assert json.loads((await slot.call(GetDocument("twice.json"), OWNER)).content or b"") == {"list": [1]}


@both
async def test_folders_are_listed_by_cursor_and_documents_found_by_type(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        for n in range(7):
            await put(slot, f"many/{n}.json", "{}", "application/json")
        await put(slot, "many/deep/er/x.json", "{}", "application/json")
        await put(slot, "many/pic.png", "x", "image/png")
        await slot.call(CreateFolder("empty"), OWNER)
        await slot.call(CreateFolder("empty/"), OWNER)
        found, cursor = [], None
        while True:
            page = await slot.call(ListFolder("many/", 3, cursor), OWNER)
            found += [one.path for one in page.entries]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == [*(f"many/{n}.json" for n in range(7)), "many/deep/", "many/pic.png"]
        json_ones = (await slot.call(FindDocuments("application/json", "many", 100), OWNER)).entries
        assert [one.path for one in json_ones] == [*(f"many/{n}.json" for n in range(7)), "many/deep/er/x.json"]
        assert [one.path for one in (await slot.call(FindDocuments("image/*"), OWNER)).entries] == ["many/pic.png"]
        assert await problem_of(slot, DeleteDocument("many/")) == "conflict"
        assert await problem_of(slot, DeleteDocument("empty/")) == "none"
        assert "empty/" not in await paths(slot)


@both
@pytest.mark.parametrize(
    "path",
    ["", "/a", "a//b", "../x", "a/../b", "a/.", "a\n", "a\\b", "x" * 300, "/".join("a" * 40), "n$.txt", ".freehold-x"],
    ids=ascii,
)
async def test_no_path_leads_out_of_the_pod(bench: SlotBench, mode: Mode, path: str) -> None:
    async with bench.open("pods", mode) as slot:
        for request in (GetDocument(path), PutDocument(path, "text/plain", "x"), PatchDocument(path, "[]")):
            assert await problem_of(slot, request) in ("invalid", "not-found")


async def test_links_that_somebody_planted_are_not_followed(bench: SlotBench, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    async with bench.open("pods", "local") as slot:
        await put(slot, "a.txt")
        root = bench.place.home.pods
        (root / "folder").symlink_to(tmp_path / "outside")
        (root / "file.txt").symlink_to(tmp_path / "outside" / "secret.txt")
        assert await paths(slot) == ["a.txt"]
        for path in ("folder/secret.txt", "file.txt"):
            assert await problem_of(slot, GetDocument(path)) == "not-found"
        assert await problem_of(slot, PutDocument("folder/new.txt", "text/plain", "x")) in ("conflict", "unavailable")
        await put(slot, "file.txt", "mine")
        assert (tmp_path / "outside" / "secret.txt").read_text() == "secret"
        assert not (tmp_path / "outside" / "new.txt").exists()


@both
async def test_an_agent_starts_with_nothing_and_reaches_exactly_what_is_granted(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        for path in ("notes/a.txt", "notesx/b.txt", "private/c.txt"):
            await put(slot, path)
        every = [GetDocument("notes/a.txt"), ListFolder("notes"), PutDocument("notes/n.txt", "text/plain", "x")]
        every += [DeleteDocument("notes/a.txt"), FindDocuments("*/*"), AwaitChange("notes/a.txt", "x", 0.0)]
        for request in [*every, ExportPods(), ImportPods(()), ListAccess(), GrantAccess("claude", "", "write")]:
            assert await problem_of(slot, request, CLAUDE) == "denied"
        await slot.call(GrantAccess("claude", "notes", "read"), OWNER)
        assert (await slot.call(GetDocument("notes/a.txt"), CLAUDE)).content == b"words"
        assert [one.path for one in (await slot.call(ListFolder("notes/"), CLAUDE)).entries] == ["notes/a.txt"]
        for request in (GetDocument("notesx/b.txt"), ListFolder(""), PutDocument("notes/n.txt", "text/plain", "x")):
            assert await problem_of(slot, request, CLAUDE) == "denied"
        assert await problem_of(slot, GetDocument("notes/a.txt"), CODEX) == "denied"
        assert await problem_of(slot, GetDocument("notes/a.txt"), SlotCaller("session:s3")) == "denied"
        await slot.call(GrantAccess("claude", "notes/", "write"), OWNER)
        assert await problem_of(slot, PutDocument("notes/n.txt", "text/plain", "x"), CLAUDE) == "none"
        assert [one.folder for one in (await slot.call(ListGrants(), CLAUDE)).grants] == ["notes/"]
        assert (await slot.call(ListGrants(), CODEX)).grants == ()
        await slot.call(RevokeAccess("claude", "notes/"), OWNER)
        assert await problem_of(slot, GetDocument("notes/a.txt"), CLAUDE) == "denied"
        seen = (await slot.call(ListAccess(agent="claude"), OWNER)).entries
        acts = [(one.act, one.path) for one in reversed(seen)]
        assert ("read", "notes/a.txt") in acts
        assert ("write", "notes/n.txt") in acts
        assert acts[-1] == ("refused", "notes/a.txt")
        inside = (await slot.call(ListAccess(folder="notes", limit=2), OWNER)).entries
        assert all(one.path.startswith("notes/") for one in inside)
        assert len(inside) == 2


async def test_an_agent_can_neither_flood_the_list_of_accesses_nor_push_out_what_it_has_read(
    bench: SlotBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_grants, "MAX_ACCESSES", 30)
    monkeypatch.setattr(pod_grants, "MAX_REFUSALS", 20)
    monkeypatch.setattr(pod_grants, "PRUNE_EVERY", 10)
    async with bench.open("pods", "local") as slot:
        await put(slot, "notes/a.txt")
        await slot.call(GrantAccess("claude", "notes", "write"), OWNER)
        await slot.call(GetDocument("notes/a.txt"), CLAUDE)
        for number in range(200):
            assert await problem_of(slot, GetDocument(f"private/{number}.txt"), CLAUDE) == "denied"
        for _ in range(40):
            await slot.call(PutDocument("notes/b.txt", "text/plain", "x"), CLAUDE)
            await slot.call(GetDocument("notes/b.txt"), CLAUDE)
        entries = (await slot.call(ListAccess(limit=500), OWNER)).entries
        acts = [(one.act, one.path) for one in entries if one.act != "refused"]
        assert acts == [("read", "notes/b.txt"), ("write", "notes/b.txt"), ("read", "notes/a.txt")]
        assert len(entries) - len(acts) <= 30
        for number in range(60):
            await slot.call(PutDocument(f"notes/{number}.txt", "text/plain", "x"), CLAUDE)
        assert len((await slot.call(ListAccess(limit=500), OWNER)).entries) <= 30 + 20 + 2 * 10


async def test_a_grant_for_a_folder_is_none_for_a_document_of_its_name(bench: SlotBench) -> None:
    async with bench.open("pods", "local") as slot:
        await put(slot, "diary", "private")
        await slot.call(GrantAccess("claude", "diary", "write"), OWNER)
        for request in (GetDocument("diary"), PutDocument("diary", "text/plain", "x"), DeleteDocument("diary")):
            assert await problem_of(slot, request, CLAUDE) == "denied"


@both
async def test_a_change_by_others_is_told_to_who_waits(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot, bench.open("pods", mode) as other:
        made = await put(slot, "w.txt", "1")
        assert made.etag is not None
        waiting = asyncio.ensure_future(slot.call(AwaitChange("w.txt", made.etag, 5.0), OWNER))
        await asyncio.sleep(0.1)
        new = await put(other, "w.txt", "2")
        assert (await waiting).info.etag == new.etag
        assert (await slot.call(AwaitChange("w.txt", new.etag or "", 0.0), OWNER)).info.etag == new.etag


@both
async def test_everything_goes_out_and_comes_back_without_a_loss(bench: SlotBench, mode: Mode) -> None:
    async with bench.open("pods", mode) as slot:
        await put(slot, "a/b.txt", "grüße")
        await put(slot, "raw", base64.b64encode(b"\xff\x00").decode(), "application/x-own", encoding="base64")
        await slot.call(CreateFolder("none"), OWNER)
        records = (await slot.call(ExportPods(), OWNER)).records
        assert [one["id"] for one in records] == ["a/", "a/b.txt", "none/", "raw"]
        assert (await slot.call(ImportPods(records), OWNER)).kept == 4
        for path in ("a/b.txt", "a/", "raw", "none/"):
            await slot.call(DeleteDocument(path), OWNER)
        assert (await slot.call(ImportPods(records), OWNER)).created == 2
        assert (await slot.call(ExportPods(), OWNER)).records == records
        for wrong in ({"id": "x"}, {"id": "../x", "media": "text/plain", "content": "x"}, {"media": "text/plain"}):
            assert await problem_of(slot, ImportPods((wrong,))) == "invalid"


@pytest.mark.parametrize(
    ("name", "media", "file"),
    [
        ("a.json", "application/json", "a.json"),
        ("a", "application/json", "a$.json"),
        ("a.txt", "application/json", "a.txt$.json"),
        ("a", "text/turtle", "a$.ttl"),
        ("a", "application/octet-stream", "a"),
        ("a", "application/x-own", "a$.application%2Fx-own"),
    ],
)
def test_the_name_of_a_file_tells_its_media_type(name: str, media: str, file: str) -> None:
    assert join_name(name, media) == file
    assert split_name(file) == (name, media)


async def test_a_document_that_changes_its_type_is_still_one_document(bench: SlotBench) -> None:
    async with bench.open("pods", "local") as slot:
        for media in ("text/plain", "application/json", "text/turtle", "application/x-own", "text/plain"):
            await put(slot, "d", "x", media)
            assert [(one.path, one.media) for one in (await slot.call(ListFolder(), OWNER)).entries] == [("d", media)]


# A Solid server


async def test_a_solid_server_takes_n3_patch_and_files_of_the_home_do_not(bench: SlotBench) -> None:
    turtle = '<#bob> <http://xmlns.com/foaf/0.1/name> "Bob".'
    patch = """@prefix solid: <http://www.w3.org/ns/solid/terms#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>.
_:p a solid:InsertDeletePatch; solid:where { ?who foaf:name "Bob" };
solid:deletes { ?who foaf:name "Bob" }; solid:inserts { ?who foaf:name "Robert" }."""
    async with bench.open("pods", "external") as slot:
        await put(slot, "c.ttl", turtle, "text/turtle")
        await slot.call(PatchDocument("c.ttl", patch, "n3"), OWNER)
        assert b"Robert" in ((await slot.call(GetDocument("c.ttl"), OWNER)).content or b"")
        assert await problem_of(slot, PatchDocument("c.ttl", patch, "n3")) == "conflict"
    async with bench.open("pods", "local") as slot:
        await put(slot, "c.ttl", turtle, "text/turtle")
        assert await problem_of(slot, PatchDocument("c.ttl", patch, "n3")) == "invalid"


@asynccontextmanager
async def running(slot: Slot) -> AsyncIterator[Slot]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(slot.run())
        try:
            await until(lambda: slot.status.state != "starting")
            yield slot
        finally:
            task.cancel()


@pytest.mark.parametrize("failure", ["hung", "killed"])
async def test_a_solid_server_that_is_lost_is_told_and_comes_back(
    bench: SlotBench, solid: SolidPod, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(bench.make("pods", "external")) as slot:
        kept = await put(slot, "kept.txt")
        monkeypatch.setattr(solid_store, "TIMEOUT", 0.5)
        if failure == "hung":
            solid.hang()
        else:
            solid.kill()
        try:
            assert await problem_of(slot, GetDocument("kept.txt")) == "unavailable"
            assert await problem_of(slot, PutDocument("new.txt", "text/plain", "x", key="k")) == "unavailable"
        finally:
            monkeypatch.setattr(solid_store, "TIMEOUT", 10.0)
            if failure == "hung":
                solid.resume()
            else:
                solid.start()
        await until(lambda: slot.status.state == "ok")
        assert (await slot.call(GetDocument("kept.txt"), OWNER)).info.etag == kept.etag
        assert await problem_of(slot, PutDocument("new.txt", "text/plain", "x", key="k")) == "none"


async def test_wrong_credentials_are_told_without_the_secret(bench: SlotBench, solid: SolidPod) -> None:
    from dataclasses import replace

    settings = {**solid.settings(bench.unique), "client_secret": "env:WRONG"}
    place = replace(bench.place, environ={"WRONG": "not-the-secret-of-this-pod"})
    async with running(make_slot("pods", SlotSection(mode="external", settings=settings), place)) as slot:
        await until(lambda: slot.status.state == "unavailable")
        assert "sign-in" in (slot.status.error or "")
        assert "not-the-secret" not in (slot.status.error or "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"client_id": "a", "client_secret": "env:S"}, "url is missing"),
        ({"url": "http://example.com/x/", "client_id": "a", "client_secret": "env:S"}, "not an encrypted address"),
        ({"url": "https://u:p@example.com/", "client_id": "a", "client_secret": "env:S"}, "not an encrypted address"),
        ({"url": "https://example.com/", "client_secret": "env:S"}, "client_id is missing"),
        ({"url": "https://example.com/", "client_id": "a"}, "client_secret is missing"),
        ({"url": "https://example.com/", "client_id": "a", "client_secret": "env:S", "x": "y"}, "has no x"),
        (
            {
                "url": "https://example.com/",
                "issuer": "http://example.com/",
                "client_id": "a",
                "client_secret": "env:S",
            },
            "issuer is not encrypted",
        ),
    ],
    ids=str,
)
async def test_wrong_settings_of_a_pod_are_named(bench: SlotBench, settings: dict[str, str], words: str) -> None:
    from dataclasses import replace

    place = replace(bench.place, environ={"S": "secret"})
    slot = make_slot("pods", SlotSection(mode="external", settings=settings), place)
    async with running(slot):
        await until(lambda: slot.status.state == "unavailable")
        assert words in (slot.status.error or "")


def freehold(home: Path, *words: str) -> str:
    done = CliRunner().invoke(freehold_command, [*words, "--home", str(home)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_pods_move_to_a_solid_server_and_back(
    bench: SlotBench, solid: SolidPod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLID_SECRET", solid.client_secret)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in solid.settings(bench.unique).items())
    (home / "freehold.toml").write_text(f'[slots.pods]\nmode = "local"\n[slots.pods.settings]\n{settings}\n')
    file = tmp_path / "in.txt"
    for n in range(30):
        file.write_text(f"words {n}")
        freehold(home, "pods", "put", f"notes/{n:02}.txt", str(file))
    assert freehold(home, "slots", "try", "pods").count("ok  ") == 5
    out = tmp_path / "out.jsonl"
    freehold(home, "slots", "export", "pods", "-o", str(out))
    before = out.read_text()
    freehold(home, "slots", "move", "pods", "--to", "external")
    freehold(home, "slots", "export", "pods", "-o", str(out))
    assert out.read_text() == before
    assert freehold(home, "pods", "get", "notes/07.txt") == "words 7"
    freehold(home, "slots", "move", "pods", "--to", "local")
    freehold(home, "slots", "export", "pods", "-o", str(out))
    assert out.read_text() == before
