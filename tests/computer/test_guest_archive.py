import asyncio
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from tests.computer.unsealed_backend import UnsealedBackend

from freehold.computer import Computer
from freehold.computer.contract.guest_archive import guest_archive, pack_guest, read_sources


def test_the_same_sources_give_the_same_bytes() -> None:
    assert pack_guest(read_sources()) == pack_guest(read_sources())
    assert guest_archive() == guest_archive()


ISOLATE_FILES = ["isolates/closed.bpf", "isolates/fork.node", "isolates/networked.bpf", "isolates/zygote.js"]


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
