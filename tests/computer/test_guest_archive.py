import asyncio
import shutil
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest
from tests.computer.unsealed_backend import UnsealedBackend
from tests.support.condition import DEADLINE

from freehold.computer import Computer
from freehold.computer.contract.guest_archive import guest_archive, pack_guest, read_sources


def test_the_same_sources_give_the_same_bytes() -> None:
    assert pack_guest(read_sources()) == pack_guest(read_sources())
    assert guest_archive() == guest_archive()


def test_an_archive_that_was_removed_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program that cleans up, or by another Freehold: the next computer starts all the same."""
    monkeypatch.setattr("freehold.computer.contract.guest_archive._place", lambda: tmp_path / "cache" / "guest-1.pyz")
    first = guest_archive()
    content = first.read_bytes()
    shutil.rmtree(first.parent)
    assert guest_archive() == first
    assert first.read_bytes() == content
    assert first.stat().st_mode & 0o777 == 0o644


def test_computers_that_start_at_once_do_not_write_over_each_others_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, content, all_are_there = tmp_path / "guest-1.pyz", bytes(8 << 20), threading.Barrier(8)

    def pack_together(*_given: object, **_options: object) -> bytes:
        all_are_there.wait(DEADLINE)
        return content

    monkeypatch.setattr("freehold.computer.contract.guest_archive._place", lambda: place)
    monkeypatch.setattr("freehold.computer.contract.guest_archive.pack_guest", pack_together)
    with ThreadPoolExecutor(8) as pool:
        assert [one.result() for one in [pool.submit(guest_archive) for _ in range(8)]] == [place] * 8
    assert place.read_bytes() == content
    assert list(tmp_path.iterdir()) == [place]


ISOLATE_FILES = [
    f"isolates/{name}"
    for name in ("closed.bpf", "es_modules.js", "fork.node", "networked.bpf", "packages.js", "zygote.js")
]


def test_the_archive_has_source_and_compiled_code_and_what_isolates_need() -> None:
    with zipfile.ZipFile(BytesIO(pack_guest(read_sources()))) as archive:
        assert archive.namelist() == ["__main__.py", "__main__.pyc", *ISOLATE_FILES, "later"]
    assert all(name.startswith("freehold") for name in read_sources())


def test_without_python_on_the_host_the_archive_has_only_sources() -> None:
    with zipfile.ZipFile(BytesIO(pack_guest(read_sources(), "/nowhere/python3"))) as archive:
        assert archive.namelist() == ["__main__.py", *ISOLATE_FILES]


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
async def test_it_runs_from_its_sources_on_another_python(tmp_path: Path, python: str) -> None:
    """As in an image whose Python is not the host's."""
    guest = tmp_path / "guest.pyz"
    guest.write_bytes(pack_guest(read_sources(), "/nowhere/python3"))
    (tmp_path / "workspace").mkdir()
    (tmp_path / "home").mkdir()
    async with (
        asyncio.timeout(60),
        Computer.start(tmp_path / "workspace", tmp_path / "home", backend=UnsealedBackend(python, guest)) as computer,
    ):
        assert (await computer.run("echo from sources")).stdout == b"from sources\n"
        assert await computer.files.write("x", b"y") == 1
