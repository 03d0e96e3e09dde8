"""A folder of a Solid pod as a mount: a real community server, the real rclone and a real computer."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx2
import pytest
from tests.computer.test_mount_remote import MountedComputer, mounted
from tests.support.condition import until
from tests.support.processes import find_descendants
from tests.support.solid import SolidPod, running_solid

from freehold.computer.mounts.rclone_remote import RemoteFolder
from freehold.mounts.__main__ import make_bridge_finder
from freehold.mounts.solid_bridge import SolidBridge
from freehold.mounts.solid_folder import PodAccount, PodRefused, SolidFolder
from freehold.observe.secrets import Secret

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount here"),
]


@pytest.fixture(scope="module")
def solid() -> Iterator[SolidPod]:
    with running_solid() as server:
        yield server


@pytest.fixture
def documents(solid: SolidPod) -> Path:
    """Where the server keeps the documents of the folder that is mounted: what is written here, others have written."""
    folder = solid.folder / "data/alice/with agents"
    folder.mkdir(exist_ok=True)
    return folder


def mounted_pod(
    solid: SolidPod, tmp_path: Path, *, key: str | None = None, writable: bool = True
) -> AbstractAsyncContextManager[MountedComputer]:
    folder = RemoteFolder("solid", "with agents", solid.pod, user=solid.client_id, key=key or solid.client_secret)
    return mounted(folder, tmp_path, make_servers=make_bridge_finder, writable=writable)


def read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


async def test_a_pod_is_read_written_moved_and_deleted_inside(solid: SolidPod, documents: Path, tmp_path: Path) -> None:
    (documents / "use").mkdir()
    (documents / "use/given ü & 100%.txt").write_text("from the owner\n")
    async with mounted_pod(solid, tmp_path) as inside:
        await inside.until_state("ready")
        at = "/mnt/remote/use"
        assert await inside.until_runs(f"ls {at} && cat {at}/given*") == "given ü & 100%.txt\nfrom the owner\n"
        await inside.run(f"echo from inside > {at}/new.txt && mkdir {at}/deep && seq 100000 > {at}/deep/numbers")
        await inside.run(f"mv {at}/new.txt {at}/renamed.txt && rm {at}/given* && echo more >> {at}/renamed.txt")
        await until(lambda: read(documents / "use/renamed.txt") == "from inside\nmore\n")
        await until(lambda: any("100000\n" in one.read_text() for one in (documents / "use/deep").glob("numbers*")))
        await inside.run(f"mv {at}/deep {at}/deeper")
        assert (await inside.computer.run(f"tail -1 {at}/deeper/numbers")).stdout == b"100000\n"
        await inside.run(f"mkdir {at}/deep && echo other > {at}/deep/numbers")
        await until(lambda: read(documents / "use/deep/numbers") == "other\n")
        assert (await inside.computer.run(f"cat {at}/deep/numbers")).stdout == b"other\n", (
            "the old name has a new document"
        )
        assert sorted(one.name for one in (documents / "use").iterdir()) == ["deep", "deeper", "renamed.txt"]


async def test_who_may_read_a_pod_is_not_decided_inside_and_its_key_is_not_there(
    solid: SolidPod, documents: Path, tmp_path: Path
) -> None:
    async with mounted_pod(solid, tmp_path) as inside:
        await inside.until_state("ready")
        await inside.computer.run("echo x > /mnt/remote/.acl; echo x > /mnt/remote/a.txt.acl")
        await until(lambda: "403" in inside.mount.state.words)
        assert not list(documents.glob("*.acl"))
        for pid in (inside.helper, *find_descendants(inside.helper)):
            for name in ("cmdline", "environ"):
                assert solid.client_secret.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        settings = await asyncio.to_thread(Path(f"/proc/{inside.rclone}/root/run/rclone.conf").read_text)
        assert "pod.internal" in settings
        assert solid.client_secret not in settings


async def test_what_was_changed_elsewhere_is_kept_when_it_is_replaced(
    solid: SolidPod, documents: Path, tmp_path: Path
) -> None:
    """The agent reads a document, the owner changes it, and the agent writes what it has."""
    (documents / "plan.txt").write_text("first\n")
    async with mounted_pod(solid, tmp_path) as inside:
        await inside.until_state("ready")
        assert await inside.until_runs("cat /mnt/remote/plan.txt") == "first\n"
        (documents / "plan.txt").write_text("by the owner\n")
        os.utime(documents / "plan.txt", (time.time() + 10, time.time() + 10))  # this server's versions are seconds
        await inside.run("echo by the agent > /mnt/remote/plan.txt")
        await until(lambda: read(documents / "plan.txt") == "by the agent\n")
        (kept,) = documents.glob("plan (changed elsewhere *.txt")
        assert kept.read_text() == "by the owner\n"


async def test_a_failed_upload_neither_deletes_the_document_nor_replaces_what_others_wrote(
    solid: SolidPod, documents: Path
) -> None:
    """After an upload that failed, rclone deletes the document and tries again later."""
    account = PodAccount(f"{solid.pod}with%20agents/", "", solid.client_id, Secret(solid.client_secret))
    bridge = SolidBridge(SolidFolder(account, 30.0), writable=True)
    (documents / "draft (1).txt").write_text("first\n")
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with bridge.serve([listener]), httpx2.AsyncClient(base_url=address, trust_env=False, timeout=60) as rclone:
        assert (await rclone.get("/draft (1).txt")).text == "first\n"

        async def broken() -> AsyncIterator[bytes]:
            yield b"half"
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await rclone.put("/draft (1).txt", content=broken())
        await until(lambda: bridge.is_keeping("draft (1).txt"))
        assert (await rclone.delete("/draft (1).txt")).status_code == 412
        assert read(documents / "draft (1).txt") == "first\n"
        (documents / "draft (1).txt").write_text("by the owner\n")
        os.utime(documents / "draft (1).txt", (time.time() + 10, time.time() + 10))
        assert (await rclone.put("/draft (1).txt", content=b"by the agent\n")).status_code == 201
        assert read(documents / "draft (1).txt") == "by the agent\n"
        (kept,) = documents.glob("draft (1) (changed elsewhere *.txt")
        assert kept.read_text() == "by the owner\n"
        for method, path in (("GET", "/.acl"), ("PUT", "/x/.acl"), ("DELETE", "/a.acr"), ("PROPFIND", "/a.meta")):
            assert (await rclone.request(method, path)).status_code == 403
        for path in ("/%2e%2e/x", "/a/%2e%2e/%2e%2e/x", "/a//b", "/a%00b", "/a%0ab"):
            assert (await rclone.request("PROPFIND", path)).status_code == 400


async def test_nothing_is_sent_before_all_of_it_is_there() -> None:
    """Some servers empty a document when an upload begins, and keep what came of one that breaks off."""
    sent: list[str] = []

    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.method)
        if request.method == "GET":
            return httpx2.Response(200, headers={"etag": '"2"'}, content=broken())
        return httpx2.Response(200, headers={"etag": '"2"', "content-length": "9" * 5000})

    folder = SolidFolder(PodAccount("https://pod.example/", "", "id", Secret("secret")), 5.0)
    await folder.close()
    folder._http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    with pytest.raises(ConnectionError):
        await folder.write("a.txt", broken())
    assert sent == []
    folder._known["a.txt"] = '"1"'  # another version than the server has now, which is copied first

    async def whole() -> AsyncIterator[bytes]:
        yield b"all"

    with pytest.raises((ConnectionError, PodRefused)):
        await folder.write("a.txt", whole())
    with pytest.raises((ConnectionError, PodRefused)):
        await folder.move("a.txt", "b.txt")
    assert "PUT" not in sent
    assert "DELETE" not in sent
    await folder.close()


async def test_a_wrong_key_and_a_lost_server_are_said_and_a_pod_that_is_not_writable_is_not_changed(
    solid: SolidPod, documents: Path, tmp_path: Path
) -> None:
    (documents / "kept.txt").write_text("kept")
    async with mounted_pod(solid, tmp_path, key="wrong-secret") as inside:
        await until(lambda: "The server refuses the key" in inside.mount.state.words)
        assert "wrong-secret" not in inside.mount.state.words
        assert await inside.fail("ls /mnt/remote")
    async with mounted_pod(solid, tmp_path, writable=False) as inside:
        await inside.until_state("ready")
        assert await inside.until_runs("cat /mnt/remote/kept.txt") == "kept"
        assert "Read-only file system" in await inside.fail("rm /mnt/remote/kept.txt")
        solid.kill()
        try:
            assert await inside.fail("cat /mnt/remote/other.txt")
        finally:
            solid.start()
        assert await inside.until_runs("cat /mnt/remote/kept.txt") == "kept"
