"""Neither a computer nor a home takes a folder that is the machine's or everybody's.

Asked of the functions that decide, never by trying: these tests may run as root.
"""

import os
from pathlib import Path

import pytest

import freehold.home as home_module
from freehold.computer import layout, ownership
from freehold.computer.ownership import claim_folder, refuse_to_give_away
from freehold.computer.spec import ComputerSpec
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper import keeper as keeper_module
from freehold.keeper import paths
from freehold.keeper.keeper import Keeper
from freehold.places import find_system_folder

SYSTEM = ["/", "/etc", "/etc/ssh", "/usr/local/bin", "/tmp", "/var", "/var/lib", "/home", "/root", "/run", "/proc/self", "/dev", "/tmp/../etc", "/bin"]  # fmt: skip


@pytest.mark.parametrize("place", SYSTEM)
def test_a_folder_of_the_system_is_no_computers_and_no_home(place: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        refuse_to_give_away(Path(place))
    assert refused.value.code == "computer.dangerous-folder"
    assert find_system_folder(Path(place)) is not None


def test_a_link_to_one_is_as_dangerous(tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to("/etc")
    with pytest.raises(FreeholdError, match="operating system"):
        refuse_to_give_away(tmp_path / "innocent")


def test_a_whole_home_is_not_given_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = tmp_path / "people" / "ann"
    (person / "code").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))
    for place in (person, person.parent):
        with pytest.raises(FreeholdError, match="home folder"):
            refuse_to_give_away(place)
    refuse_to_give_away(person / "code")


@pytest.mark.parametrize("place", ["/var/lib/freehold", "/srv/freehold", "/root/code", "/home/ann/x", "/dev/shm/x", "/run/user/1000/x"])  # fmt: skip
def test_a_folder_of_ones_own_is_fine(place: str) -> None:
    assert find_system_folder(Path(place)) is None


def test_it_is_asked_before_anything_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the decision made for a harmless folder: nothing in it changes hands or mode."""
    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    (place / "file").touch()
    monkeypatch.setattr(ownership, "find_system_folder", lambda path: path)
    monkeypatch.setattr(home_module, "find_system_folder", lambda path: path)
    with pytest.raises(FreeholdError):
        claim_folder(place, os.getuid() + 1)
    with pytest.raises(FreeholdError):
        layout.check_folders(ComputerSpec(place, place))
    with pytest.raises(FreeholdError) as refused:
        paths.prepare_root(Home(root=place, run=tmp_path / "run"))
    assert refused.value.code == "home.not-ours"
    assert place.stat().st_mode & 0o777 == 0o755
    assert (place / "file").stat().st_uid == os.getuid()
    assert not (tmp_path / "run").exists()


async def test_a_keeper_writes_nothing_into_a_place_that_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for module in (home_module, keeper_module):
        monkeypatch.setattr(module, "find_system_folder", lambda path: path)
    with pytest.raises(FreeholdError) as refused:
        await Keeper(Home(root=place, run=tmp_path / "run")).run()
    assert refused.value.code == "home.not-ours"
    assert list(place.iterdir()) == []
