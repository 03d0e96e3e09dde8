"""The first project: created in an empty workspace only, with its service in the manifest once."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from freehold.cli.starter import command
from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import load_manifest
from freehold.starter.packages import COMMAND, INSIDE, PORT
from freehold.starter.project_files import create_project, declare_service, is_new_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path / "home", run=tmp_path / "run")


def test_an_empty_workspace_gets_a_project_with_linked_packages(home: Home) -> None:
    assert is_new_home(home)
    create_project(home)
    assert {path.name for path in home.workspace.iterdir()} >= {"index.html", "package.json", "vite.config.js", "src"}
    assert (home.workspace / "src" / "theme.css").read_text().count("--paper") == 1
    assert str((home.workspace / "node_modules").readlink()) == f"{INSIDE}/node_modules"
    owner = home.workspace.stat().st_uid
    assert {path.lstat().st_uid for path in home.workspace.rglob("*")} == {owner}
    assert not is_new_home(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_files_belong_to_the_owner_of_the_workspace(home: Home) -> None:
    home.workspace.mkdir(parents=True)
    os.chown(home.workspace, 64242, 64242)
    create_project(home)
    assert {path.lstat().st_uid for path in home.workspace.rglob("*")} == {64242}


@pytest.mark.parametrize("what", ["a file", "a hidden file", "an empty folder", "a dangling link"])
def test_a_workspace_that_is_not_empty_is_not_changed(home: Home, what: str) -> None:
    home.workspace.mkdir(parents=True)
    match what:
        case "a file":
            (home.workspace / "index.html").write_text("mine")
        case "a hidden file":
            (home.workspace / ".keep").write_text("")
        case "an empty folder":
            (home.workspace / "src").mkdir()
        case _:
            (home.workspace / "src").symlink_to("/nowhere")
    before = list(home.workspace.iterdir())
    assert not is_new_home(home)
    with pytest.raises(FreeholdError) as refused:
        create_project(home)
    assert refused.value.code == "starter.exists"
    assert list(home.workspace.iterdir()) == before


def test_a_home_with_history_is_not_new(home: Home) -> None:
    home.history.mkdir(parents=True)
    assert not is_new_home(home)
    done = CliRunner().invoke(command, ["--if-new", "--home", str(home.root)])
    assert (done.exit_code, done.output) == (0, "")
    assert not home.workspace.exists()


def test_the_dev_server_is_added_to_a_new_valid_manifest(home: Home) -> None:
    assert declare_service(home)
    loaded = load_manifest(home.manifest, {}, home=home.root)
    assert loaded.problems == ()
    service = loaded.manifest.computer.services["web"]
    assert (service.command, service.port, service.restart_on_undo) == (COMMAND, PORT, False)
    assert "\n[computer.services.web]\n" in home.manifest.read_text()
    assert not declare_service(home), "once is enough"


def test_an_existing_manifest_keeps_its_text(home: Home) -> None:
    home.root.mkdir(mode=0o700)
    home.manifest.write_text("# mine\n[gateway]\nport = 4000 # why not\n")
    assert declare_service(home)
    text = home.manifest.read_text()
    assert text.startswith("# mine\n[gateway]\nport = 4000 # why not\n")
    loaded = load_manifest(home.manifest, {}, home=home.root)
    assert loaded.manifest.computer.services["web"].port == PORT


def test_a_manifest_with_services_is_not_changed(home: Home) -> None:
    home.root.mkdir(mode=0o700)
    text = '[computer.services.api]\ncommand = "./serve"\nport = 8000\n'
    home.manifest.write_text(text)
    assert not declare_service(home)
    assert home.manifest.read_text() == text
