"""The notebook in a real browser, with code that really runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.code.notebook_cells import FIGURE, FRAME
from tests.support.browser import PHONE, run_sync_browser, sign_in_browser
from tests.support.running_freehold import FreeholdOptions, run_plain_freehold

pytestmark = pytest.mark.shared_processes
PACKAGE = """
[[computer.mounts]]
source = "{folder}"
target = "/opt/packages/greeting"
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "packages").mkdir()
    (folder / "packages/greeting.py").write_text("WORDS = 'hello'")
    (folder / "packages").chmod(0o755)
    options = FreeholdOptions(manifest=PACKAGE.format(folder=folder / "packages"))
    with run_plain_freehold(folder, options) as freehold, run_sync_browser() as browser:
        freehold.file("notes.txt").write_text("from the workspace")
        page = sign_in_browser(browser, freehold).new_page()
        page.goto(f"{freehold.pages}/code")
        yield page


@pytest.fixture
def cell(page: Page) -> Iterator[Locator]:
    """An empty cell at the end, whose editor has the focus. It is deleted after the test."""
    page.get_by_role("button", name="Add a cell").click()
    cell = page.get_by_role("listitem").filter(has=page.locator("[data-keys]")).last
    expect(cell.get_by_role("textbox")).to_be_focused()
    yield cell
    page.evaluate("localStorage.removeItem('freehold:notebook')")
    page.reload()
    page.get_by_role("button", name="Add a cell").wait_for()


def run(page: Page, code: str) -> None:
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")


def output_of(cell: Locator) -> Locator:
    return cell.get_by_role("group", name=re.compile("^Output of"))


def test_cells_share_variables_and_shift_enter_goes_to_the_next(page: Page, cell: Locator) -> None:
    page.keyboard.insert_text("x = 40\nprint('out')")
    page.keyboard.press("Shift+Enter")
    following = page.get_by_role("listitem").filter(has=page.locator("[data-keys]")).last
    expect(following.get_by_role("textbox")).to_be_focused()
    run(page, "{'sum': x + 2}")
    expect(following.get_by_label("Value")).to_have_text('{"sum": 42}')
    expect(output_of(page.get_by_role("listitem").filter(has_text="x = 40"))).to_contain_text("out")
    page.reload()
    expect(page.get_by_role("textbox").filter(has_text="x = 40")).to_be_visible()
    page.get_by_role("button", name="Run all").click()
    expect(page.get_by_label("Value")).to_have_text('{"sum": 42}')


def test_tables_pictures_and_files_are_shown(page: Page, cell: Locator, tmp_path: Path) -> None:
    run(page, f"{FRAME}{FIGURE}display(DataFrame())\ndisplay(Figure())\nb'abc'")
    table = cell.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table).to_contain_text("134591")
    expect(cell).to_contain_text("2 of 2,000 rows")
    picture = cell.get_by_role("img", name="A figure that the code has drawn")
    expect(picture).to_have_js_property("naturalWidth", 640)
    with page.expect_download() as download:
        cell.get_by_role("button", name="Download value.bin").click()
    download.value.save_as(tmp_path / "value")
    assert (tmp_path / "value").read_bytes() == b"abc"
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.set_viewport_size({"width": 1280, "height": 800})


def test_an_exception_is_shown_with_its_line(page: Page, cell: Locator) -> None:
    run(page, "def f():\n  raise ValueError('no <b>markup</b>')\nf()")
    expect(cell.get_by_text("ValueError: no <b>markup</b>").first).to_be_visible()
    expect(cell.get_by_label("Traceback")).to_contain_text("line 2, in f")


def test_stop_ends_an_endless_loop_and_the_variables_stay(page: Page, cell: Locator) -> None:
    run(page, "kept = 7\nprint('runs', flush=True)\nwhile True: pass")
    expect(output_of(cell)).to_contain_text("runs")
    page.get_by_role("button", name="Stop").click()
    expect(output_of(cell)).to_contain_text("KeyboardInterrupt")
    page.keyboard.press("Escape")
    cell.get_by_role("textbox").click()
    page.keyboard.press("Control+a")
    run(page, "kept")
    expect(cell.get_by_label("Value")).to_have_text("7")


def test_other_settings_begin_anew_and_files_are_there_only_if_chosen(page: Page, cell: Locator) -> None:
    run(page, "open('/workspace/notes.txt').read()")
    expect(cell.get_by_label("Value")).to_have_text("from the workspace")
    page.get_by_label("Workspace").select_option("No access")
    cell.get_by_role("button", name="Run").click()
    expect(cell.get_by_text("PermissionError").first).to_be_visible()
    page.get_by_label("Workspace").select_option("Read")
    page.get_by_label("Language").select_option("WebAssembly")
    cell.get_by_role("textbox").click()
    page.keyboard.press("Control+a")
    run(page, '(module (func (export "f") (result i32) (i32.const 5)))')
    expect(output_of(cell)).to_contain_text("Done in")
    cell.get_by_role("textbox").click()
    page.keyboard.press("Control+a")
    run(page, "f()")
    expect(cell.get_by_label("Value")).to_have_text("5")
    page.get_by_label("Language").select_option("Python")


def test_prepared_packages_are_loaded_and_one_that_is_not_there_is_named(page: Page, cell: Locator) -> None:
    packages = page.get_by_label("Packages")
    run(page, "import greeting; greeting.WORDS")
    expect(output_of(cell)).to_contain_text("ModuleNotFoundError")
    packages.fill("greeting, unheard_of")
    packages.press("Enter")
    cell.get_by_role("button", name="Run").click()
    expect(output_of(cell)).to_contain_text("The package 'unheard_of' is not prepared in this computer")
    packages.fill("greeting")
    cell.get_by_role("button", name="Run").click()
    expect(cell.get_by_label("Value")).to_have_text("hello")
    page.reload()
    expect(packages).to_have_value("greeting")
    packages.fill("")
    packages.press("Enter")


def test_a_context_that_is_gone_is_replaced(page: Page, cell: Locator) -> None:
    run(page, "import os; os._exit(3)")
    expect(output_of(cell)).to_contain_text("exit code 3")
    cell.get_by_role("textbox").click()
    page.keyboard.press("Control+a")
    run(page, "'here'")
    expect(cell.get_by_label("Value")).to_have_text("here")
    expect(cell).to_contain_text("The variables of earlier runs are gone.")


def test_a_long_notebook_scrolls_and_the_page_around_it_does_not(page: Page, cell: Locator) -> None:
    cells = {"cells": [f"print({number})\n" * 8 for number in range(12)], "settings": {}}
    page.evaluate("(cells) => localStorage.setItem('freehold:notebook', JSON.stringify(cells))", cells)
    page.reload()
    page.get_by_role("button", name="Add a cell").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name="Add a cell")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
