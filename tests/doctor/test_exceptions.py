"""The doctor uses what exceptions allow, in a sealed computer, and says what it saw."""

from pathlib import Path

import pytest

from freehold.doctor.backend_choice import BackendChoice
from freehold.doctor.events import ExceptionTried
from freehold.doctor.exceptions import try_exceptions
from freehold.doctor.report import DoctorReport
from freehold.home import Home

STAND_IN = Path(__file__).parents[1] / "editor" / "stand_in.py"
GRANTED = '\n[security.exceptions.browser]\nreason = "agents read the web"\n'


async def tried(folder: Path, manifest: str, backend: str = "bubblewrap") -> list[ExceptionTried]:
    home = Home(folder, folder / "run")
    home.manifest.write_text(manifest)
    return [one async for one in try_exceptions(home, BackendChoice(backend, None))]


async def test_the_browser_is_tried_and_everything_that_it_adds_is_named(tmp_path: Path) -> None:
    (one,) = await tried(tmp_path, f"[browser]\nenabled = true\n{GRANTED}")
    assert one.is_right, one.seen
    assert "showed a page, sealed" in one.seen
    assert [words.partition(":")[0] for words in one.adds] == ["Memory", "Folder", "Ports", "Devices"]


async def test_what_does_not_work_is_a_failure_of_the_report(tmp_path: Path) -> None:
    (one,) = await tried(tmp_path, f'[browser]\nenabled = true\nprogram = "/usr/bin/false"\n{GRANTED}')
    assert not one.is_right
    assert "/usr/bin/false has ended" in one.seen
    from tests.doctor.test_events import STARTED

    sound = DoctorReport(type(STARTED)(0, {}, (), ()))
    assert sound.ok
    assert not DoctorReport(sound.started, exceptions=(one,)).ok


@pytest.mark.parametrize("manifest", ["", "[browser]\nenabled = true\n", GRANTED])
async def test_nothing_is_tried_that_is_not_both_granted_and_used(tmp_path: Path, manifest: str) -> None:
    assert await tried(tmp_path, manifest) == []
    assert await tried(tmp_path, f"[browser]\nenabled = true\n{GRANTED}", "attached") == []


async def test_the_desktop_is_tried_sealed(tmp_path: Path) -> None:
    (one,) = await tried(
        tmp_path, '[desktop]\nenabled = true\n[security.exceptions.desktop]\nreason = "programs with windows"\n'
    )
    assert one.is_right, one.seen
    assert "A desktop started, sealed" in one.seen
    assert [words.partition(":")[0] for words in one.adds][-1] == "Devices"


async def test_an_editor_in_a_mounted_folder_is_tried_sealed(tmp_path: Path) -> None:
    """A stand-in for code-server, where `[[computer.mounts]]` shows it."""
    home, programs = tmp_path / "home", tmp_path / "programs"
    home.mkdir(mode=0o700)
    programs.mkdir()
    (programs / "code-server").write_text(STAND_IN.read_text())
    (programs / "code-server").chmod(0o755)
    (one,) = await tried(
        home,
        f'[editor]\nenabled = true\nprogram = "/mnt/programs/code-server"\n'
        f'[[computer.mounts]]\nsource = "{programs}"\ntarget = "/mnt/programs"\n'
        '[security.exceptions.editor]\nreason = "I edit"\n',
    )
    assert one.is_right, one.seen
    assert "answers with its password, and to nobody else" in one.seen
