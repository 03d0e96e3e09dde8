"""Who may open what in the home of a running Freehold, against what docs/guides/running.md says."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.condition import wait_until
from tests.support.freehold import KEEPER
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_plain_freehold

pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFreehold]:
    options = FreeholdOptions(environment={"FREEHOLD_SSH_ENABLED": "true"}, keeper=KEEPER)
    with run_plain_freehold(tmp_path_factory.mktemp("modes"), options) as running:
        wait_until(lambda: running.harness.programs()["ssh"].state == "idle")  # its first connection starts it
        running.harness.run("ssh", "true", check=True)  # makes the keys, and uses the socket
        yield running


def walk(freehold: RunningFreehold) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything of the home but the owner's files, which belong to the computer."""
    home = freehold.home
    theirs = {home.workspace, home.agent_home}
    for root in {home.root, home.run}:
        yield root, root.stat()
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if Path(folder, name) not in theirs]
            for name in (*folders, *files):
                path = Path(folder, name)
                try:
                    yield path, path.lstat()
                except FileNotFoundError:
                    continue  # a temporary file of SQLite


def test_every_socket_is_for_the_owner_only(freehold: RunningFreehold) -> None:
    sockets = {path.name: stat.S_IMODE(found.st_mode) for path, found in walk(freehold) if stat.S_ISSOCK(found.st_mode)}
    assert {"keeper.sock", "ssh.sock"} <= set(sockets)
    assert {name: oct(mode) for name, mode in sockets.items() if mode != 0o600} == {}


def test_no_folder_that_leads_to_a_secret_is_open(freehold: RunningFreehold) -> None:
    for folder in (freehold.home.root, freehold.home.run, freehold.home.vault, freehold.home.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_no_file_can_be_read_or_changed_by_another_user(freehold: RunningFreehold) -> None:
    """Nor if the folder above it were open. Public keys are public, and the agents' programs are read in the computer."""
    open_to_others = {
        str(path.relative_to(freehold.home.root)): oct(stat.S_IMODE(found.st_mode))
        for path, found in walk(freehold)
        if stat.S_ISREG(found.st_mode)
        and stat.S_IMODE(found.st_mode) & 0o077
        and path.is_relative_to(freehold.home.root)
        and path.suffix != ".pub"
        and not path.is_relative_to(freehold.home.agents)
    }
    assert open_to_others == {}
