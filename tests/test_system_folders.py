"""System folders are refused, for a home and for the computer.

These tests call only the functions that decide, because they may run as root.
"""

import os
from pathlib import Path

import pytest

import freehold.home as home_module
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls import folder_check, ownership
from freehold.computer.walls.ownership import check_folder_is_safe, chown_tree
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper import keeper as keeper_module
from freehold.keeper import paths
from freehold.keeper.keeper import Keeper
from freehold.system_folders import find_system_folder

SYSTEM = ["/", "/etc", "/etc/ssh", "/usr/local/bin", "/tmp", "/var", "/var/lib", "/home", "/root", "/run", "/proc/self", "/dev", "/tmp/../etc", "/bin"]  # fmt: skip


@pytest.mark.parametrize("place", SYSTEM)
def test_a_system_folder_is_refused_as_a_home_and_for_the_computer(place: str) -> None:
    with pytest.raises(FreeholdError) as refused:
        check_folder_is_safe(Path(place))
    assert refused.value.code == "computer.dangerous-folder"
    assert find_system_folder(Path(place)) is not None


def test_a_link_to_a_system_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to("/etc")
    with pytest.raises(FreeholdError, match="operating system"):
        check_folder_is_safe(tmp_path / "innocent")


def test_the_users_home_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person = tmp_path / "people" / "ann"
    (person / "code").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(person))
    for place in (person, person.parent):
        with pytest.raises(FreeholdError, match="home folder"):
            check_folder_is_safe(place)
    check_folder_is_safe(person / "code")


@pytest.mark.parametrize("place", ["/var/lib/freehold", "/srv/freehold", "/root/code", "/home/ann/x", "/dev/shm/x", "/run/user/1000/x"])  # fmt: skip
def test_another_folder_of_the_user_is_accepted(place: str) -> None:
    assert find_system_folder(Path(place)) is None


def test_the_check_runs_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the decision made for a harmless folder: nothing in it changes hands or mode."""
    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    (place / "file").touch()
    monkeypatch.setattr(ownership, "find_system_folder", lambda path: path)
    monkeypatch.setattr(home_module, "find_system_folder", lambda path: path)
    with pytest.raises(FreeholdError):
        chown_tree(place, os.getuid() + 1)
    with pytest.raises(FreeholdError):
        folder_check.check_folders(ComputerSpec(place, place))
    with pytest.raises(FreeholdError) as refused:
        paths.prepare_root(Home(root=place, run=tmp_path / "run"))
    assert refused.value.code == "home.not-ours"
    assert place.stat().st_mode & 0o777 == 0o755
    assert (place / "file").stat().st_uid == os.getuid()
    assert not (tmp_path / "run").exists()


async def test_a_keeper_writes_nothing_into_a_system_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for module in (home_module, keeper_module):
        monkeypatch.setattr(module, "find_system_folder", lambda path: path)
    with pytest.raises(FreeholdError) as refused:
        await Keeper(Home(root=place, run=tmp_path / "run")).run()
    assert refused.value.code == "home.not-ours"
    assert list(place.iterdir()) == []
