"""The files page in a real browser: search, viewers, editor, uploads, live updates, and a folder of 50,000 files."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Dialog, Page, Route, expect
from tests.support.browser import PHONE, wait_for_events
from tests.support.condition import wait_until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = pytest.mark.shared_processes
FREEHOLD = FreeholdOptions(manifest='[history]\nignore = ["many/"]\n')
MANY = 50_000


def go(page: Page, freehold: RunningFreehold, path: str = "/files") -> None:
    page.goto(freehold.pages + path)
    page.get_by_text("Live", exact=True).wait_for(state="attached")


def pdf(pages: int) -> bytes:
    """A small PDF that tries to run a script when it is opened."""
    parts = [
        "<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /JavaScript /JS (app.alert\\(1\\)) >> >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(pages))}] /Count {pages} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number in range(pages):
        drawn = f"BT /F1 36 Tf 72 700 Td (Page {number + 1}) Tj ET 0 0.6 0.4 rg 0 0 612 400 re f"
        parts.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >>"
            " /Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 612 792] /A << /S /URI /URI (javascript:window.pwned=1) >> >>] >>"
        )
        parts.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    made, places = b"%PDF-1.7\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{part}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}trailer << /Size {len(parts) + 1} /Root 1 0 R >>\n"
    return made + f"{end}startxref\n{len(made)}\n%%EOF".encode()


def test_text_is_found_and_opened_at_its_line(freehold: RunningFreehold, page: Page) -> None:
    workspace = freehold.home.workspace
    (workspace / "code").mkdir()
    (workspace / "code/long.py").write_text("".join(f"line_{number} = {number}\n" for number in range(1, 400)))
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules/dep.js").write_text("line_301\n")
    go(page, freehold)
    page.get_by_role("button", name="Text", exact=True).click()
    page.get_by_label("Find in files").fill("LINE_301")
    hits = page.locator(".files-hit")
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text("301")
    page.get_by_role("button", name="Aa").click()
    expect(page.get_by_text("Nothing found")).to_be_visible()
    page.get_by_role("button", name="Aa").click()
    hits.click()
    expect(page.locator(".cm-activeLine")).to_have_text("line_301 = 301")
    expect(page.locator(".cm-activeLine")).to_be_in_viewport()
    page.get_by_label("Find in files").fill("line_(1|2) ")
    page.get_by_role("button", name=".*", exact=True).click()
    expect(hits).to_have_count(2)
    page.get_by_label("Find in files").fill("(")
    expect(page.get_by_role("complementary", name="Files").get_by_role("alert")).to_contain_text(
        "Not a regular expression"
    )


def test_ignored_files_are_shown_on_request(freehold: RunningFreehold, page: Page) -> None:
    (freehold.home.workspace / ".git").mkdir(exist_ok=True)
    (freehold.home.workspace / ".git/config").write_text("x\n")
    (freehold.home.workspace / "seen.txt").write_text("x\n")
    go(page, freehold)
    expect(page.get_by_role("treeitem", name="seen.txt")).to_be_visible()
    expect(page.get_by_role("treeitem", name=".git")).to_have_count(0)
    page.get_by_label("Show ignored files").check()
    expect(page.get_by_role("treeitem", name=".git")).to_be_visible()
    page.get_by_label("Show ignored files").uncheck()
    expect(page.get_by_role("treeitem", name=".git")).to_have_count(0)


def test_a_pdf_is_drawn_and_can_do_nothing_else(freehold: RunningFreehold, page: Page) -> None:
    """It is drawn on a canvas: no script, no link, no form, no request."""
    (freehold.home.workspace / "paper.pdf").write_bytes(pdf(3))
    (freehold.home.workspace / "broken.pdf").write_bytes(b"%PDF-1.7\n" + b"nonsense" * 100)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    go(page, freehold, "/files?path=paper.pdf")
    canvas = page.get_by_role("img", name="Page 1 of 3")
    expect(canvas).to_be_visible()
    drawn = "(canvas) => [...canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height * 0.9, 1, 1).data]"
    assert canvas.evaluate(drawn) == [0, 153, 102, 255]
    assert (
        page.locator(".files-pdf a, .files-pdf input, .files-pdf iframe, .files-pdf object, .files-pdf embed").count()
        == 0
    )
    canvas.click()
    go(page, freehold, "/files?path=broken.pdf")
    expect(page.get_by_text("This PDF cannot be shown")).to_be_visible()
    assert all(url.startswith((freehold.pages, "blob:")) for url in requested)


def test_a_file_too_large_to_edit_is_not_downloaded(freehold: RunningFreehold, page: Page) -> None:
    with (freehold.home.workspace / "large.bin").open("wb") as file:
        file.truncate(200 * 1024**2)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    go(page, freehold, "/files?path=large.bin")
    expect(page.get_by_text("too large to edit here (210 MB)")).to_be_visible()
    assert not any("/v1/files/content" in url for url in requested)
    (freehold.home.workspace / "large.bin").unlink()


def test_unsaved_text_is_kept_and_leaving_needs_a_confirmation(freehold: RunningFreehold, page: Page) -> None:
    """Another file or page keeps it. Closing the tab asks first, until it is saved."""
    (freehold.home.workspace / "draft.txt").write_text("old\n")
    (freehold.home.workspace / "else.txt").write_text("else\n")
    go(page, freehold, "/files?path=draft.txt")
    editor = page.locator(".files-editor .cm-content")
    expect(editor).to_contain_text("old")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("typed")
    expect(page.locator(".split-detail-head").get_by_text("not saved")).to_be_visible()
    page.get_by_role("treeitem", name="else.txt").click()
    expect(editor).to_contain_text("else")
    expect(page.get_by_role("treeitem", name="draft.txt").get_by_label("not saved")).to_be_visible()
    page.get_by_role("link", name="Terminal").click()
    expect(page.get_by_role("heading", name="Terminal")).to_be_attached()
    requested: list[str] = []

    def refuse(dialog: Dialog) -> None:
        requested.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", refuse)
    page.close(run_before_unload=True)
    wait_for_events(page, lambda: requested == ["beforeunload"])
    page.get_by_role("link", name="Files").click()
    page.get_by_role("treeitem", name="draft.txt").click()
    expect(editor).to_contain_text("typed")
    page.keyboard.press("Control+s")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("not saved")).to_have_count(0)
    assert (freehold.home.workspace / "draft.txt").read_text() == "old\ntyped"


DROP = """(files) => {
  const transfer = new DataTransfer()
  for (const [name, text] of files) transfer.items.add(new File([text], name))
  const folder = document.querySelector("[data-path='landing']")
  for (const kind of ['dragover', 'drop'])
    folder.dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: transfer}))
}"""


def test_files_are_dropped_and_chosen_and_whole_folders_uploaded(
    freehold: RunningFreehold, page: Page, tmp_path: Path
) -> None:
    workspace = freehold.home.workspace
    go(page, freehold)
    page.get_by_role("button", name="New folder").click()
    page.get_by_role("textbox", name="Path in the workspace").fill("landing")
    page.keyboard.press("Enter")
    expect(page.get_by_role("treeitem", name="landing")).to_be_visible()
    page.evaluate(DROP, [["one.txt", "1"], ["two.txt", "2"]])
    expect(page.get_by_text("2 files uploaded")).to_be_visible()
    assert (workspace / "landing/one.txt").read_text() == "1"
    assert (workspace / "landing/two.txt").read_text() == "2"

    page.evaluate(DROP, [["one.txt", "another"]])
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads).to_contain_text("landing/one.txt")
    assert (workspace / "landing/one.txt").read_text() == "1"
    uploads.get_by_role("button", name="Replace the file").click()
    expect(uploads).to_have_count(0)
    expect(page.get_by_text("1 file uploaded", exact=True)).to_be_visible()
    assert (workspace / "landing/one.txt").read_text() == "another"

    (tmp_path / "kit/deep").mkdir(parents=True)
    (tmp_path / "kit/a.txt").write_text("a")
    (tmp_path / "kit/deep/b.txt").write_text("b")
    page.get_by_label("Folder to upload").set_input_files(tmp_path / "kit")
    expect(page.get_by_role("treeitem", name="kit")).to_be_visible()
    wait_until((workspace / "kit/deep/b.txt").exists)  # the folder is there with the first of its files
    assert (workspace / "kit/deep/b.txt").read_text() == "b"


def test_an_upload_shows_its_progress_and_can_be_cancelled(
    freehold: RunningFreehold, page: Page, tmp_path: Path
) -> None:
    """A cancelled upload leaves nothing behind."""
    (tmp_path / "vast.bin").write_bytes(b"x" * 1_000_000)
    held: list[Route] = []
    page.route("**/v1/files/content*", lambda route: held.append(route))
    go(page, freehold)
    page.get_by_label("Files to upload").set_input_files(tmp_path / "vast.bin")
    uploads = page.get_by_role("region", name="Uploads")
    expect(uploads.get_by_role("progressbar")).to_be_visible()
    expect(uploads).to_contain_text("of 1.0 MB")
    uploads.get_by_role("button", name="Cancel the upload").click()
    expect(uploads).to_have_count(0)
    assert not (freehold.home.workspace / "vast.bin").exists()
    page.unroute("**/v1/files/content*")


def test_a_file_is_downloaded_as_it_is(freehold: RunningFreehold, page: Page) -> None:
    (freehold.home.workspace / "page.html").write_text("<script>window.pwned=1</script>")
    go(page, freehold, "/files?path=page.html")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download").click()
    assert downloading.value.suggested_filename == "page.html"
    assert Path(downloading.value.path()).read_text() == "<script>window.pwned=1</script>"


def test_a_change_during_the_listing_is_not_lost(freehold: RunningFreehold, page: Page) -> None:
    """The answer to the listing was made before the change, and the event of the change arrives before the answer."""
    late = freehold.home.workspace / "late.txt"
    held: list[tuple[Route, APIResponse]] = []
    frames: list[str] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))))

    def hold(route: Route) -> None:
        # Playwright fetches outside of the browser, where names below localhost may not be known.
        address = route.request.url.replace(freehold.pages, freehold.url)
        headers = {**route.request.headers, "host": freehold.pages.removeprefix("http://")}
        held.append((route, route.fetch(url=address, headers=headers)))

    page.route(re.compile("/v1/files/tree"), hold, times=1)
    page.goto(freehold.pages + "/files")
    wait_for_events(page, lambda: len(held) == 1)
    late.write_text("late\n")
    wait_for_events(page, lambda: any("workspace/late.txt" in frame for frame in frames))
    route, left_before = held.pop()
    route.fulfill(response=left_before)
    expect(page.get_by_role("treeitem", name="late.txt")).to_be_visible()
    late.unlink()
    expect(page.get_by_role("treeitem", name="late.txt")).to_have_count(0)


def test_everything_can_be_done_on_a_phone(freehold: RunningFreehold, page: Page) -> None:
    (freehold.home.workspace / "pocket.txt").write_text("in the pocket\n")
    page.set_viewport_size(PHONE)
    go(page, freehold)
    page.get_by_role("treeitem", name="pocket.txt").click()
    expect(page.locator(".files-editor .cm-content")).to_contain_text("in the pocket")
    expect(page.get_by_role("treeitem", name="pocket.txt")).not_to_be_visible()
    assert not page.evaluate("document.querySelector('main').scrollWidth > innerWidth")
    page.get_by_role("button", name="Back to the files").click()
    expect(page.get_by_role("treeitem", name="pocket.txt")).to_be_visible()
    page.get_by_role("button", name="Text", exact=True).click()
    page.get_by_label("Find in files").fill("pocket")
    expect(page.locator(".files-hit").first).to_be_visible()
    assert not page.evaluate("document.querySelector('main').scrollWidth > innerWidth")


# A row flashes for a moment only, and one who looks from time to time may miss it.
RECORD_FLASHES = """() => {
  window.flashed = new Set()
  const look = () => {
    for (const row of document.querySelectorAll('[data-path][data-flash]'))
      if (row.checkVisibility()) window.flashed.add(row.dataset.path)
  }
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true})
}"""


def test_fifty_thousand_files_are_listed_scrolled_and_kept_up_to_date(freehold: RunningFreehold, page: Page) -> None:
    """Only a screenful is drawn, the last one can be reached, and a change among them is highlighted."""
    folder = freehold.home.workspace / "many"
    folder.mkdir()
    for number in range(MANY):
        os.close(os.open(folder / f"file-{number:05d}.txt", os.O_CREAT | os.O_WRONLY, 0o644))
    go(page, freehold)
    page.get_by_role("treeitem", name="many").click()
    expect(page.get_by_role("treeitem", name="file-00000.txt")).to_be_visible()
    assert page.get_by_role("treeitem").count() < 100
    page.locator(".files-tree").evaluate("(tree) => tree.scrollTo(0, tree.scrollHeight)")
    expect(page.get_by_role("treeitem", name="file-49999.txt")).to_be_visible()
    page.evaluate(RECORD_FLASHES)
    (folder / "file-49998.txt").write_text("changed\n")
    page.wait_for_function("() => window.flashed.has('many/file-49998.txt')")
    (folder / "file-49999b.txt").write_text("new\n")
    expect(page.get_by_role("treeitem", name="file-49999b.txt")).to_be_visible()
    page.get_by_label("Find by name").fill("file-31415")
    expect(page.get_by_role("treeitem")).to_have_count(1)


def test_files_are_open_in_tabs_that_stay_after_a_reload(freehold: RunningFreehold, page: Page) -> None:
    for folder in ("one", "two"):
        (freehold.home.workspace / folder).mkdir()
        (freehold.home.workspace / folder / "same.txt").write_text(f"in {folder}\n")
    go(page, freehold, "/files?path=one/same.txt")
    expect(page.locator(".files-editor .cm-content")).to_contain_text("in one")  # now it is among the open files
    expect(page.get_by_role("tablist", name="Open files")).to_have_count(0)
    go(page, freehold, "/files?path=two/same.txt")
    tabs = page.locator(".files-tabs").get_by_role("tab")
    expect(tabs).to_have_text(["one/same.txt", "two/same.txt"])
    tabs.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".files-editor .cm-content")).to_contain_text("in one")
    expect(tabs.nth(0)).to_be_focused()
    page.reload()
    expect(tabs).to_have_count(2)
    page.get_by_role("button", name="Close one/same.txt").click()
    expect(page.locator(".files-editor .cm-content")).to_contain_text("in two")
    expect(page.get_by_role("tablist", name="Open files")).to_have_count(0)


def test_markdown_is_shown_as_text_with_form_and_runs_nothing(freehold: RunningFreehold, page: Page) -> None:
    hostile = "# Title\n\n<img src=x onerror='window.pwned=1'>\n\n- **one**\n"
    (freehold.home.workspace / "notes.md").write_text(hostile)
    go(page, freehold, "/files?path=notes.md")
    page.get_by_role("button", name="Preview", exact=True).click()
    shown = page.locator(".files-markdown")
    expect(shown.get_by_role("heading", name="Title")).to_be_visible()
    expect(shown.get_by_role("listitem")).to_have_text("one")
    expect(shown.locator("img")).to_have_count(0)
    page.get_by_role("button", name="Edit", exact=True).click()
    expect(page.locator(".files-editor .cm-content")).to_contain_text("# Title")


def test_a_conflict_is_compared_before_one_version_is_kept(freehold: RunningFreehold, page: Page) -> None:
    path = freehold.home.workspace / "both.txt"
    path.write_text("base\n")
    go(page, freehold, "/files?path=both.txt")
    editor = page.locator(".files-editor .cm-content")
    expect(editor).to_contain_text("base")
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.type("mine")
    path.write_text("base\ntheirs\n")
    bar = page.get_by_role("alert").filter(has_text="changed on disk")
    bar.get_by_role("button", name="Compare").click()
    compared = page.locator(".files-comparison")
    expect(compared).to_contain_text("theirs")
    expect(compared).to_contain_text("mine")
    bar.get_by_role("button", name="Back to editing").click()
    expect(editor).to_contain_text("mine")
    bar.get_by_role("button", name="Keep my version").click()
    expect(bar).to_have_count(0)
    assert path.read_text() == "base\nmine"
