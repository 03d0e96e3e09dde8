"""The pictures of the documentation show the pages as they are."""

import json

from tools.screenshots import CONTENTS, PAGES, SIZES, THEMES, read_contents


def test_every_page_has_its_pictures() -> None:
    wanted = {f"{name}-{size}-{theme}.png" for name in (*PAGES, "sign-in") for size in SIZES for theme in THEMES}
    assert wanted - {file.name for file in CONTENTS.parent.iterdir()} == set()
    assert set(json.loads(CONTENTS.read_text())) == set(PAGES)


async def test_the_pictures_have_the_headings_and_buttons_of_the_pages() -> None:
    """Otherwise draw them again: python -m tools.screenshots."""
    drawn = json.loads(CONTENTS.read_text())
    found = await read_contents()
    assert found == drawn
    assert all(found.values())
