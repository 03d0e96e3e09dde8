"""The connect page in a real browser: a key is created, downloaded once, used by ssh, and revoked."""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.support.browser import run_sync_browser, sign_in_browser
from tests.support.freehold import PROCESS_TIMEOUT
from tests.support.running_freehold import FreeholdOptions, run_plain_freehold

pytestmark = [
    pytest.mark.shared_processes,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    options = FreeholdOptions(environment={"FREEHOLD_SSH_ENABLED": "true"})
    folder = tmp_path_factory.mktemp("connect")
    with run_plain_freehold(folder, options) as freehold, run_sync_browser() as browser:
        page = sign_in_browser(browser, freehold).new_page()
        page.goto(f"{freehold.pages}/connect")
        yield page


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
    return subprocess.run(argv, capture_output=True, text=True, timeout=PROCESS_TIMEOUT, env=os.environ, check=False)


def test_a_key_is_created_in_the_browser_used_and_revoked(page: Page, tmp_path: Path) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    with page.expect_download() as download:
        page.get_by_role("button", name="Create a key").click()
    archive = tmp_path / "freehold-ssh.tar"
    download.value.save_as(archive)
    config = unpack(archive, tmp_path)
    private = (config.parent / "freehold").read_text()
    assert (config.parent / "freehold").stat().st_mode & 0o077 == 0
    assert not [body for body in sent if private.splitlines()[2] in body]
    assert run(config, "echo", "in").stdout == "in\n"
    row = page.locator("li", has_text="this browser")
    expect(row).to_contain_text("left")
    expect(row).to_contain_text("from 127.0.0.1")
    page.get_by_role("button", name="Revoke this browser").click()
    expect(row).to_contain_text("revoked")
    assert run(config, "true").returncode == 255


def test_a_browser_that_cannot_create_keys_downloads_one_once(page: Page, tmp_path: Path) -> None:
    page.evaluate("() => { SubtleCrypto.prototype.generateKey = () => Promise.reject(new Error('no')) }")
    with page.expect_download() as download:
        page.get_by_role("button", name="Create a key").click()
    archive = tmp_path / "freehold-ssh.tar"
    download.value.save_as(archive)
    expect(page.get_by_role("status", name="How to use the key")).to_contain_text("Freehold created it")
    assert run(unpack(archive, tmp_path), "echo", "in").stdout == "in\n"
