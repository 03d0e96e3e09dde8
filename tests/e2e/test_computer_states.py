"""What the control center shows of a computer that sleeps and of its mounts."""

import zipfile
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.support.browser import run_sync_browser, sign_in_browser
from tests.support.condition import wait_until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold, run_plain_freehold

pytestmark = pytest.mark.shared_processes

MANIFEST = """
[computer]
sleep_after = "1s"

[[computer.mounts]]
kind = "memory"
target = "/mnt/scratch"
size = "16MiB"

[[computer.mounts]]
kind = "archive"
source = "{archive}"
target = "/mnt/papers"
"""


@pytest.fixture(scope="module")
def freehold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFreehold]:
    folder = tmp_path_factory.mktemp("states")
    archive = folder / "papers.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("one.txt", "words")
    with run_plain_freehold(folder, FreeholdOptions(manifest=MANIFEST.format(archive=archive))) as running:
        yield running


@pytest.fixture
def page(freehold: RunningFreehold) -> Iterator[Page]:
    with run_sync_browser() as browser:
        yield sign_in_browser(browser, freehold).new_page()


def test_the_page_says_that_the_computer_sleeps_and_does_not_keep_it_awake(
    freehold: RunningFreehold, page: Page
) -> None:
    """The page is open all the time: while it falls asleep, is used, and falls asleep again."""

    def has_slept_again() -> bool:
        sleep = freehold.harness.status().sleep
        return sleep is not None and sleep.times > 1 and sleep.asleep

    page.goto(f"{freehold.pages}/settings/health")
    program = page.locator("[data-program=computer]")
    expect(program).to_contain_text("Asleep for", timeout=60_000)
    expect(program).to_contain_text("wakes when it is used")
    ran = freehold.harness.run("run", "cat", "/mnt/papers/one.txt", check=True)
    assert ran.stdout == "words"
    wait_until(has_slept_again)
    expect(program).to_contain_text("Asleep for", timeout=60_000)


def test_each_mount_is_shown_with_its_state_and_what_history_does_not_cover(
    freehold: RunningFreehold, page: Page
) -> None:
    page.goto(f"{freehold.pages}/settings/storage")
    mounts = page.get_by_role("region", name="Mounts")
    for target, facts in (("/mnt/scratch", "In memory · writable"), ("/mnt/papers", "papers.zip")):
        row = mounts.get_by_role("listitem").filter(has_text=target)
        expect(row).to_contain_text("ready")
        expect(row).to_contain_text(facts)
    expect(mounts).to_contain_text("Changes in mounts cannot be undone")
