"""The connect page in a real browser: a key made there, downloaded once, used by the real ssh, and revoked."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from tests.e2e.house import PATIENCE, freehold_up, launch, signed_in

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with freehold_up(tmp_path_factory.mktemp("connect")) as freehold, sync_playwright() as playwright:
        browser = launch(playwright)
        found = signed_in(browser, freehold).new_page()
        found.set_default_timeout(15_000)
        found.goto(f"{freehold.url}/connect")
        yield found
        browser.close()


def unpack(archive: Path, home: Path) -> Path:
    folder = home / ".ssh"
    folder.mkdir(parents=True, mode=0o700)
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    config = folder / "freehold.conf"
    # OpenSSH reads ~ from the password file and not from HOME.
    config.write_text(config.read_text().replace("~/.ssh", str(folder)))
    return config


def run(config: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    argv = ["ssh", "-F", str(config), "-o", "BatchMode=yes", "freehold", *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, env=os.environ, check=False)


def test_a_key_is_made_in_the_browser_used_and_revoked(page: Page, tmp_path: Path) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    with page.expect_download() as download:
        page.get_by_role("button", name="Make a key").click()
    archive = tmp_path / "freehold-ssh.tar"
    download.value.save_as(archive)
    config = unpack(archive, tmp_path)
    private = (config.parent / "freehold").read_text()
    assert (config.parent / "freehold").stat().st_mode & 0o077 == 0
    assert not [body for body in sent if private.splitlines()[2] in body]
    assert run(config, "echo", "in").stdout == "in\n"
    row = page.locator("li", has_text="this browser")
    expect(row).to_contain_text("left")
    expect(row).to_contain_text("from 127.0.0.1", timeout=15_000)
    page.get_by_role("button", name="Revoke this browser").click()
    expect(row).to_contain_text("revoked")
    assert run(config, "true").returncode == 255


def test_a_browser_that_cannot_make_keys_gets_one_once(page: Page, tmp_path: Path) -> None:
    page.evaluate("() => { SubtleCrypto.prototype.generateKey = () => Promise.reject(new Error('no')) }")
    with page.expect_download() as download:
        page.get_by_role("button", name="Make a key").click()
    archive = tmp_path / "freehold-ssh.tar"
    download.value.save_as(archive)
    expect(page.get_by_role("status", name="How to use the key")).to_contain_text("made by your Freehold")
    assert run(unpack(archive, tmp_path), "echo", "in").stdout == "in\n"
