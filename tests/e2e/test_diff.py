"""What differs between any two states, seen in a real browser, commented on line by line and sent to a real agent."""

import re
import struct
import zlib
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect
from tests.support.browser import DESKTOP, PHONE, OwnerPage
from tests.support.condition import until
from tests.support.running_freehold import FreeholdOptions, RunningFreehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
FREEHOLD = FreeholdOptions(agents=("builtin",))

BEFORE = "import os\n\ndef total(items):\n    result = 0\n    return result\n" + "".join(
    f"\ndef f{number}(x):\n    return x + {number}\n" for number in range(20)
)
AFTER = BEFORE.replace("result = 0", "result = Decimal(0)").replace("return x + 15", "return x + 1500")


def png(*colour: int) -> bytes:
    raw = b"".join(b"\0" + bytes(colour) * 8 for _ in range(8))

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(raw)) + part(b"IEND", b"")


async def state(freehold: RunningFreehold) -> int:
    """The entry that the files are in now."""
    return int((await freehold.call("GET", "/v1/history/compare"))["new"]["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def points(owner_page: OwnerPage) -> tuple[int, int]:
    """Two states: text changed, one file came and one went, a picture changed, and something that is neither."""
    workspace = owner_page.freehold.harness.home.workspace
    (workspace / "src").mkdir()
    (workspace / "src/basket.py").write_text(BEFORE)
    (workspace / "src/old.py").write_text("print('old')\n")
    (workspace / "dot.png").write_bytes(png(200, 30, 30))
    first = await state(owner_page.freehold)
    (workspace / "src/basket.py").write_text(AFTER)
    (workspace / "src/old.py").unlink()
    (workspace / "src/new.ts").write_text("export const a = 1;\n")
    (workspace / "dot.png").write_bytes(png(30, 200, 30))
    (workspace / "blob.bin").write_bytes(b"\0" * 2_000)
    (workspace / "vast.log").write_bytes(b"x\n" * 2_500_000)
    return first, await state(owner_page.freehold)


async def look(owner_page: OwnerPage, points: tuple[int, int], file: str) -> Page:
    await owner_page.go(f"/history/diff?old={points[0]}&new={points[1]}&file={file}")
    await expect(owner_page.page.get_by_role("heading", name=file)).to_be_visible()
    return owner_page.page


async def test_every_file_is_shown_in_the_form_that_suits_it(owner_page: OwnerPage, points: tuple[int, int]) -> None:
    page = await look(owner_page, points, "workspace/src/basket.py")
    files = page.get_by_role("complementary", name="Changed files")
    await expect(files).to_contain_text("6 files")
    await expect(files.get_by_role("button", name="basket.py")).to_contain_text("+2")
    old, new = page.locator(".cm-merge-a .cm-content"), page.locator(".cm-merge-b .cm-content")
    await expect(old).to_contain_text("result = 0")
    await expect(new).to_contain_text("result = Decimal(0)")
    await expect(new.locator(".cm-collapsedLines").first).to_contain_text("unchanged lines")
    await expect(new).not_to_contain_text("def f5(x)")

    await files.get_by_role("button", name="dot.png").click()
    await expect(page.locator(".diff-images img")).to_have_count(2)
    await files.get_by_role("button", name="blob.bin").click()
    await expect(page.get_by_text("Not a text file: no file → 2.0 kB")).to_be_visible()
    await files.get_by_role("button", name="vast.log").click()
    await expect(page.get_by_text("Too large to compare here: no file → 5.0 MB")).to_be_visible()
    async with page.expect_download() as started:
        await page.get_by_role("button", name="Download the version after (5.0 MB)").click()
    downloaded = Path(await (await started.value).path())
    assert downloaded.read_bytes() == b"x\n" * 2_500_000
    await files.get_by_role("button", name="old.py").click()
    await expect(old).to_contain_text("print('old')")
    await expect(new).to_have_text("")


async def test_keys_go_from_change_to_change_and_on_to_the_next_file(
    owner_page: OwnerPage, points: tuple[int, int]
) -> None:
    page = await look(owner_page, points, "workspace/src/basket.py")
    await expect(page.locator(".cm-merge-b .cm-content")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator(".cm-merge-b .cm-content")).to_be_focused()
    await page.keyboard.press("n")
    await page.keyboard.press("n")
    await expect(page.get_by_role("heading", name="workspace/src/new.ts")).to_be_visible()
    await page.get_by_role("button", name="Unified").click()
    await page.get_by_role("button", name="Previous change").click()
    await page.get_by_role("button", name="Previous change").click()
    await expect(page.get_by_role("heading", name="workspace/src/basket.py")).to_be_visible()
    await page.get_by_role("button", name="Side by side").click()
    await expect(page.locator(".cm-merge-b .cm-content")).to_be_visible()


async def test_white_space_is_left_out_and_folders_are_closed(owner_page: OwnerPage) -> None:
    workspace = owner_page.freehold.harness.home.workspace
    (workspace / "space/inner").mkdir(parents=True)
    lines = [f"word{number} and more" for number in range(3_500)]
    (workspace / "space/inner/long.txt").write_text("".join(f"{line}\n" for line in lines))
    (workspace / "space/some.txt").write_text("one\n  two\n")
    first = await state(owner_page.freehold)
    (workspace / "space/inner/long.txt").write_text("".join(f"    {line}\n" for line in lines))
    (workspace / "space/some.txt").write_text("one\n    two\nthree\n")
    page = await look(owner_page, (first, await state(owner_page.freehold)), "workspace/space/some.txt")
    await page.get_by_role("button", name="Unified").click()
    lines_shown = page.get_by_role("region", name="Changes of workspace/space/some.txt")
    await expect(lines_shown.locator("tr[data-kind=removed]")).to_have_count(1)
    await page.get_by_role("button", name="Ignore white space").click()
    await expect(lines_shown.locator("tr[data-kind=removed]")).to_have_count(0)
    await expect(lines_shown.locator("tr[data-kind=added] .diff-text")).to_have_text("added: three")
    await page.get_by_role("button", name="Side by side").click()
    changed = page.locator(".cm-merge-b .cm-changedLine, .cm-merge-b .cm-insertedLine")
    await expect(changed.first).to_have_text("three")

    files = page.get_by_role("complementary", name="Changed files")
    await page.get_by_role("button", name="Ignore white space").click()
    await page.get_by_role("button", name="Unified").click()
    await files.get_by_role("button", name="long.txt").click()
    more = page.locator(".diff-more button")  # not by its role: each of these lines has a button with a name
    for text in ("Show 5,000 more lines of 5,001", "Show 1 more lines of 1"):
        await expect(more).to_have_text(text)
        await more.click()
    await expect(page.locator(".diff-lines tr[data-kind=added]").last).to_contain_text("word3499 and more")
    await files.get_by_role("button", name="inner").click()
    await expect(files.get_by_role("button", name="long.txt")).to_have_count(0)
    await expect(files.get_by_role("button", name="inner")).to_contain_text("1 file")
    await files.get_by_role("button", name="some.txt").click()
    await page.get_by_role("button", name="Side by side").click()


async def test_points_are_picked_now_and_the_last_known_good_among_them(
    owner_page: OwnerPage, points: tuple[int, int]
) -> None:
    page = await look(owner_page, points, "workspace/src/basket.py")
    await owner_page.freehold.call("POST", f"/v1/history/{points[0]}/good")
    (owner_page.freehold.harness.home.workspace / "later.txt").write_text("later\n")
    await page.get_by_role("combobox", name="From", exact=True).select_option("good")
    await page.get_by_role("combobox", name="To", exact=True).select_option("now")
    files = page.get_by_role("complementary", name="Changed files")
    await expect(files.get_by_role("button", name="later.txt")).to_be_visible()
    await expect(files.get_by_role("button", name="basket.py")).to_be_visible()
    await page.get_by_role("combobox", name="From", exact=True).select_option(str(points[1]))
    await expect(files.get_by_role("button", name="basket.py")).to_have_count(0)
    await expect(files.get_by_role("button", name="later.txt")).to_be_visible()


async def comment(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Comment").fill(text)
    await page.get_by_role("button", name="Save comment").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_comments_on_old_and_new_lines_reach_the_agent_as_one_prompt(
    owner_page: OwnerPage, points: tuple[int, int]
) -> None:
    """By key and by click, over a reload, on a line that is gone; the prompt says where, quotes the line and comments."""
    page = await look(owner_page, points, "workspace/src/basket.py")
    await expect(page.locator(".cm-merge-b .cm-content")).to_contain_text("Decimal")
    await page.keyboard.press("n")
    await expect(page.locator(".cm-merge-b .cm-content")).to_be_focused()
    await page.keyboard.press("c")
    await comment(page, "Why a <b>Decimal</b>?")
    await page.locator(".cm-merge-a .cm-lineNumbers .cm-gutterElement").get_by_text("4", exact=True).click()
    await comment(page, "Keep this one")
    await page.reload()
    await expect(page.locator(".cm-merge-b .files-comment")).to_have_text("Why a <b>Decimal</b>?")
    await expect(page.locator(".cm-merge-a .files-comment")).to_have_text("Keep this one")
    await page.get_by_role("button", name="Send to an agent…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text("Keep this one")
    (session,) = (await owner_page.freehold.call("GET", "/v1/sessions"))["sessions"]
    async with owner_page.freehold.watch(session["id"]) as watch:
        started = await watch.until("turn.started")  # the page shows a prompt that is still queued as well
    assert started["data"]["prompt"]["text"] == (
        "Please address these comments on your changes:\n\n"
        "src/basket.py:4\n>     result = Decimal(0)\nWhy a <b>Decimal</b>?\n\n"
        "src/basket.py:4 (removed or replaced; this is the old line number)\n>     result = 0\nKeep this one"
    )
    await page.go_back()
    await expect(page.get_by_role("heading", name="workspace/src/basket.py")).to_be_visible()
    await expect(page.locator(".diff-comment")).to_have_count(0)


async def test_a_phone_has_one_column_in_which_everything_can_be_done(
    owner_page: OwnerPage, points: tuple[int, int]
) -> None:
    await owner_page.page.set_viewport_size(PHONE)
    page = await look(owner_page, points, "workspace/src/basket.py")
    lines = page.get_by_role("region", name="Changes of workspace/src/basket.py")
    await expect(lines).to_contain_text("result = Decimal(0)")
    await expect(lines).not_to_contain_text("def f5(x)")
    await lines.get_by_role("button", name="unchanged lines").first.click()
    await expect(lines).to_contain_text("def f5(x)")
    await lines.get_by_role("button", name="Comment on removed line 4").click()
    await comment(page, "from the phone")
    await expect(lines.locator(".diff-comment")).to_have_text("from the phone")
    await lines.locator(".diff-comment").click()
    await page.get_by_role("button", name="Remove comment").click()
    await expect(page.locator(".diff-comment")).to_have_count(0)
    assert not await page.evaluate("document.querySelector('main').scrollWidth > innerWidth")
    await page.set_viewport_size(DESKTOP)


async def test_names_and_lines_are_only_text(owner_page: OwnerPage) -> None:
    workspace = owner_page.freehold.harness.home.workspace
    name = "<img src=x onerror='window.pwned=1'>.txt"
    (workspace / name).write_text("<script>window.pwned=1</script>\n")
    (workspace / "evil.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=1'/>\n")
    await owner_page.go(f"/history/diff?new={await state(owner_page.freehold)}")
    files = owner_page.page.get_by_role("complementary", name="Changed files")
    await files.get_by_role("button", name="evil.svg").click()
    await expect(owner_page.page.locator(".cm-merge-b .cm-content")).to_contain_text("onload")
    await files.get_by_role("button", name=name).click()
    await expect(owner_page.page.locator(".cm-merge-b .cm-content")).to_contain_text("<script>")
    await owner_page.page.get_by_role("button", name="Unified").click()
    await expect(owner_page.page.locator(".diff-lines")).to_contain_text("<script>window.pwned=1</script>")
    assert await owner_page.page.evaluate("window.pwned") is None
    assert await owner_page.page.locator("main img, main svg[onload]").count() == 0


async def test_files_are_approved_one_after_another_and_the_agent_is_told(
    owner_page: OwnerPage, points: tuple[int, int]
) -> None:
    page = await look(owner_page, points, "workspace/src/basket.py")
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_role("heading", name="workspace/src/basket.py")).to_have_count(0)
    files = page.get_by_role("complementary", name="Changed files")
    await expect(files.get_by_role("button", name="basket.py").get_by_label("approved")).to_be_visible()
    await page.reload()
    await expect(files.get_by_role("button", name="basket.py").get_by_label("approved")).to_be_visible()
    await page.get_by_role("button", name="Send to an agent…").click()
    dialog = page.get_by_role("dialog", name="Send your review")
    await dialog.get_by_role("combobox", name="To").select_option("A new session")
    await dialog.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("log")).to_contain_text("Approved, so leave these as they are:")
    await expect(page.get_by_role("log")).to_contain_text("src/basket.py")


async def press_until_the_end(page: Page, last: str) -> int:
    """Presses "Show … more lines" until the last line is there. Returns how many presses it took."""
    more, end = page.locator(".diff-more button"), page.locator(".diff-lines tr[data-kind]").last
    await expect(more).to_be_visible()
    presses = 0
    while await more.count() > 0:
        before = await more.inner_text()
        await more.click()
        await expect(page.locator(".diff-more button", has_text=re.compile(f"^{re.escape(before)}$"))).to_have_count(0)
        presses += 1
    await expect(end).to_contain_text(last)
    return presses


async def test_ten_thousand_changed_lines_are_shown_to_the_last_one(owner_page: OwnerPage) -> None:
    """Unified in parts and side by side; what is too much for two columns is in one, to its last line as well."""
    workspace = owner_page.freehold.harness.home.workspace
    count = 10_000
    (workspace / "many").mkdir()

    async def write(word: str) -> int:
        for name, words in (("many.txt", ""), ("wide.txt", " and more words" * 4)):
            lines = (f"{word} {number}{words}\n" for number in range(count))
            (workspace / "many" / name).write_text(f"head\n{''.join(lines)}tail\n")
        return await state(owner_page.freehold)

    page = await look(owner_page, (await write("old"), await write("new")), "workspace/many/many.txt")

    await page.get_by_role("button", name="Side by side").click()
    for side, word in (("a", "old"), ("b", "new")):
        await expect(page.locator(f".cm-merge-{side} .cm-content")).to_contain_text(f"{word} 0")
    columns = page.locator(".cm-mergeView")
    for side, word in (("a", "old"), ("b", "new")):
        last = page.locator(f".cm-merge-{side} .cm-line", has_text=f"{word} {count - 1}")
        await until_scrolled_to(columns, last)
    await expect(page.locator(".cm-merge-b .cm-line", has_text="tail")).to_be_visible()

    await page.get_by_role("button", name="Unified").click()
    await expect(page.locator(".diff-more button")).to_have_text("Show 5,000 more lines of 18,003")
    # What follows is not unchanged.
    await expect(page.locator(".diff-gap")).to_have_count(0)
    assert await press_until_the_end(page, "tail") == 4
    rows = page.locator(".diff-lines tr[data-kind]")
    for kind in ("removed", "added"):
        assert await page.locator(f".diff-lines tr[data-kind={kind}]").count() == count
    assert await rows.count() == 2 * count + 2

    files = page.get_by_role("complementary", name="Changed files")
    await page.get_by_role("button", name="Side by side").click()
    await files.get_by_role("button", name="wide.txt").click()
    await expect(page.get_by_role("heading", name="workspace/many/wide.txt")).to_be_visible()
    await press_until_the_end(page, "tail")
    await expect(page.locator(".diff-lines tr[data-kind=added]").last).to_contain_text(f"new {count - 1}")


async def until_scrolled_to(columns: Locator, line: Locator) -> None:
    """Scrolls down until the line is drawn: the heights of lines that were never drawn are an estimate."""

    async def is_drawn() -> bool:
        await columns.evaluate("box => box.scrollTo(0, box.scrollHeight)")
        return await line.count() > 0

    await until(is_drawn)
    await expect(line).to_be_visible()
