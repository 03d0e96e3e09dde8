"""Playwright tests run inside the computer with the system's Chromium. No wall is opened for them."""

import importlib.util
from pathlib import Path

import pytest

from freehold.computer import Computer, Mount

DRIVER = "/opt/playwright"
SCRIPT = f"""
const {{ chromium }} = require("{DRIVER}/package");
(async () => {{
  const browser = await chromium.launch({{ executablePath: "/usr/lib/chromium/chromium", args: ["--no-sandbox"] }});
  const page = await browser.newPage();
  await page.setContent("<button onclick=\\"document.title = 'clicked'\\">Press</button>");
  await page.getByRole("button", {{ name: "Press" }}).click();
  console.log(await page.title());
  await browser.close();
}})();
"""


@pytest.mark.shared_processes
async def test_a_playwright_test_runs_sealed() -> None:
    found = importlib.util.find_spec("playwright")
    assert found is not None
    assert found.origin is not None
    driver = Path(found.origin).parent / "driver"
    async with Computer.start(mounts=[Mount(driver, DRIVER)]) as computer:
        result = await computer.run([f"{DRIVER}/node", "-e", SCRIPT], timeout=60)
        assert result.stdout == b"clicked\n", result
        refused = await computer.run("unshare --user true; ls /dev/dri /dev/nvidia0")
        assert refused.exit_code != 0
