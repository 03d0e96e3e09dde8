"""A neighbour that signs an archive which leads out of the folder: the work fails, and nothing of it is here."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.mesh.freeholds import PEER, pair, running_mesh
from tests.support.condition import until
from tests.support.scripted_runs import use_scripted_runs

from freehold.mesh.archive import digest_of
from freehold.mesh.hosted_work import WORK_RESULT, SignedArchive
from freehold.mesh.neighbours import Neighbour
from freehold.mesh.nostr.event import sign_event
from freehold.mesh.nostr.keys import NostrKey
from freehold.slots.orchestrator.engine import ChangeCounts, ChildReport

HOST = '[slots]\norchestrator = "local"\n[mesh]\nmode = "peer"\n'


def _path(name: str) -> Callable[[Path], tarfile.TarInfo]:
    return lambda _: tarfile.TarInfo(name)


def _inside_of(outside: Path) -> tarfile.TarInfo:
    return tarfile.TarInfo(str(outside / "planted.txt"))


def _link(kind: bytes, target: str | None = None) -> Callable[[Path], tarfile.TarInfo]:
    def make(outside: Path) -> tarfile.TarInfo:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = kind, target or str(outside)
        return entry

    return make


def make_archive(first: tarfile.TarInfo, *names: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for entry in (first, *(tarfile.TarInfo(name) for name in names)):
            entry.size = 7 if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(b"planted") if entry.isreg() else None)
    return target.getvalue()


@pytest.mark.parametrize(
    "wrong",
    [
        _path("../planted.txt"),
        _path("../../.ssh/authorized_keys"),
        _path("poems/../../planted.txt"),
        _inside_of,
        _link(tarfile.SYMTYPE),
        _link(tarfile.SYMTYPE, "../.."),
        _link(tarfile.LNKTYPE, "/etc/passwd"),
        _link(tarfile.FIFOTYPE),
        _link(tarfile.CHRTYPE),
    ],
)
async def test_a_signed_archive_that_leads_out_fails_the_work_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[Path], tarfile.TarInfo],
) -> None:
    root, outside = tmp_path_factory.mktemp("asker"), tmp_path_factory.mktemp("outside")
    packed = make_archive(wrong(outside), "link/planted.txt", "plain.txt")

    async def pack(neighbour: Neighbour, id: str, key: NostrKey) -> SignedArchive:
        tags = [["x", digest_of(packed)], ["work", id], ["p", neighbour.pubkey]]
        return SignedArchive(packed, sign_event(key, WORK_RESULT, "", tags))

    async with (
        running_mesh(tmp_path_factory.mktemp("host"), HOST) as host,
        running_mesh(root, PEER) as asker,
    ):
        runs = await use_scripted_runs(host.gateway)
        await pair(host, asker, gives=("work",))
        monkeypatch.setattr(host.mesh.hosted, "pack", pack)
        body = {"neighbour": "maker", "prompt": "Write a poem"}
        work = (await asker.ask("POST", "/v1/mesh/work", body))["id"]
        await until(lambda: bool(runs.children))
        id = next(iter(runs.children))
        await runs.tell(id, ChildReport(changes=ChangeCounts(added=2)))
        await runs.tell(id, ChildReport(state="done"))
        jobs = asker.mesh.work.jobs
        await until(lambda: jobs.get(work).state not in ("sending", "working"))
        job = jobs.get(work)
        assert (job.state, "archive" in str(job.error)) == ("failed", True), job
        assert (await asker.ask("GET", f"/v1/mesh/work/{work}"))["files"] == []
        refused = await asker.ask("POST", f"/v1/mesh/work/{work}/accept", {"folder": "poems"}, status=409)
        assert refused["error"]["code"] == "mesh.conflict"
    assert list(outside.iterdir()) == []
    # Neither its plain file nor the archive itself is kept anywhere.
    left = {"plain.txt", "planted.txt", "authorized_keys", f"{work}.tar"}
    assert [path for path in root.rglob("*") if path.name in left] == []
