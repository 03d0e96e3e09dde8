"""With the gateway and the computer dead and kept from starting, the owner undoes an `rm -rf` in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright
from tests.keeper.running import Stead

from freehold.identity.sessions import Sessions

CHROMIUM = shutil.which("chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        context = browser.new_context(java_script_enabled=False)
        yield context.new_page()
        browser.close()


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


def test_the_owner_undoes_rm_rf_with_everything_else_dead(tmp_path: Path, page: Page) -> None:
    stead = Stead(tmp_path)
    with stead.keeper("--broken", "--loop-deaths", "2") as keeper:
        assert "computer is crash-looping" in " ".join(keeper.next("not-ready")["missing"])
        before = plant(stead.home.workspace)
        stead.call("mark", {"phase": "before"})
        shutil.rmtree(stead.home.workspace / "project")
        stead.call("mark", {"phase": "after", "kind": "command", "who": {"by": "terminal"}, "why": "rm -rf project"})
        with Sessions(stead.home.identity) as sessions:
            code = sessions.create_link("keeper")

        page.goto(f"http://localhost:{stead.keeper_port}/")
        page.fill("#code", code)
        page.click("text=Sign in >> nth=-1")
        assert "crash-looping" in page.inner_text("main")
        assert "rm -rf project" in page.inner_text("main")
        page.click("text=Undo the last change")
        assert "project/src/module_7.py" in page.inner_text("main")
        assert not (stead.home.workspace / "project").exists(), "a preview writes nothing"
        page.click("button:has-text('Undo')")
        assert "Undone" in page.inner_text("[role=status]")

        assert read(stead.home.workspace / "project") == before
        assert keeper.stop() == 0
