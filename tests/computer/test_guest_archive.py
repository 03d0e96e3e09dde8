import asyncio
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from tests.computer.bare import Bare

from freehold.computer import Computer
from freehold.computer.zipapp import guest_zipapp, pack_guest, read_sources


def test_the_same_sources_give_the_same_bytes() -> None:
    assert pack_guest(read_sources()) == pack_guest(read_sources())
    assert guest_zipapp() == guest_zipapp()


def test_it_is_one_program_in_two_forms() -> None:
    with zipfile.ZipFile(BytesIO(pack_guest(read_sources()))) as archive:
        assert archive.namelist() == ["__main__.py", "__main__.pyc"]
    assert all(name.startswith("freehold") for name in read_sources())


def test_without_a_python_to_compile_with_it_holds_the_sources() -> None:
    with zipfile.ZipFile(BytesIO(pack_guest(read_sources(), "/nowhere/python3"))) as archive:
        assert archive.namelist() == ["__main__.py"]


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/python3"])
async def test_it_runs_from_its_sources_on_another_python(tmp_path: Path, python: str) -> None:
    """Stands in for an image whose Python is not the host's."""
    from freehold.computer.connection import Connection
    from freehold.computer.launch import listen_at
    from freehold.computer.spec import ComputerSpec, Limits

    guest = tmp_path / "guest.pyz"
    guest.write_bytes(pack_guest(read_sources(), "/nowhere/python3"))
    listener = listen_at(tmp_path / "link")
    machine = await Bare(python).start(ComputerSpec(workspace=tmp_path, home=tmp_path), listener, guest)
    listener.close()
    connection = Connection(tmp_path / "link", reconnect=False)
    async with asyncio.timeout(60):
        await connection.open()
        computer = Computer(connection, Limits(), machine)
        assert (await computer.run("echo from sources")).stdout == b"from sources\n"
        assert await computer.files.write("x", b"y") == 1
    await computer.close()
