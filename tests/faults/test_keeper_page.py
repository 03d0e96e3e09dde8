"""While the gateway and the computer cannot start, the owner undoes an `rm -rf` in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.support.browser import PAGE_TIMEOUT, run_sync_browser
from tests.support.freehold import FreeholdHarness

from freehold.history.calls import MarkFiles, RequestAuthor
from freehold.identity.sign_ins import SignIns


@pytest.fixture
def page() -> Iterator[Page]:
    with run_sync_browser() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.set_default_timeout(PAGE_TIMEOUT)
        yield page


def plant(workspace: Path) -> dict[str, bytes]:
    """A small project, with what a careless undo would lose."""
    project = workspace / "project"
    (project / "src").mkdir(parents=True)
    (project / "empty").mkdir()
    (project / ".git" / "objects").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for number in range(20):
        (project / "src" / f"module_{number}.py").write_text(f"number = {number}\n")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("run.sh")
    return read(project)


def read(folder: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.rglob("*")):
        what = (
            path.readlink().name.encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"folder"
        )
        found[str(path.relative_to(folder))] = what + oct(path.lstat().st_mode).encode()
    return found


def test_the_owner_undoes_rm_rf_with_every_other_program_down(tmp_path: Path, page: Page) -> None:
    harness = FreeholdHarness(tmp_path)
    with harness.keeper("--broken", "--loop-deaths", "2") as keeper:
        assert "computer is crash-looping" in " ".join(keeper.next("not-ready")["missing"])
        before = plant(harness.home.workspace)
        harness.call(MarkFiles("before"))
        shutil.rmtree(harness.home.workspace / "project")
        harness.call(MarkFiles("after", "command", RequestAuthor(by="terminal"), "rm -rf project"))
        with SignIns(harness.home.identity) as sign_ins:
            code = sign_ins.create_link("keeper")

        page.goto(f"http://localhost:{harness.keeper_port}/")
        page.fill("#code", code)
        page.click("text=Sign in >> nth=-1")
        main = page.locator("main")
        expect(main).to_contain_text("crash-looping")
        expect(main).to_contain_text("rm -rf project")
        page.click("text=Undo the last change")
        expect(main).to_contain_text("project/src/module_7.py")
        assert not (harness.home.workspace / "project").exists(), "a preview writes nothing"
        page.click("button:has-text('Undo')")
        # On a busy machine the page shows the progress first.
        expect(page.locator("[role=status]")).to_contain_text("Undone")

        assert read(harness.home.workspace / "project") == before
        assert keeper.stop() == 0
