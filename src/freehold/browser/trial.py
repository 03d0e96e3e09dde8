"""What the doctor tries: Chromium shows a page, sealed, and reaches nothing but what it is given."""

from collections.abc import Callable

from freehold.browser.chromium import start_chromium
from freehold.browser.section import BrowserSection
from freehold.computer import Limits
from freehold.computer.contract.conventions import EGRESS_PORT
from freehold.computer.library.computer import PendingComputer
from freehold.computer.library.tunnel import Tunnel
from freehold.errors import FreeholdError
from freehold.manifest.model import Manifest

WORDS = "shown by a sealed browser"
_PAGE = f"<title>doctor</title><p>{WORDS}</p>".encode()
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_PAGE),
    _PAGE,
)


async def try_browser(manifest: Manifest, start_computer: Callable[[Limits], PendingComputer]) -> str:
    """What was seen. Raises when no page is shown."""
    section = manifest.section(BrowserSection)
    asked: list[str] = []

    async def answer(stream: Tunnel) -> None:
        head = b""
        while b"\r\n\r\n" not in head and len(head) < 65536 and (data := await stream.read()):
            head += data
        asked.append(head.split(b"\r\n", 1)[0].decode(errors="replace")[:200])
        await stream.write(_ANSWER)
        await stream.close()

    async with start_computer(Limits(memory=section.memory)) as computer:
        await computer.listen(EGRESS_PORT, answer)
        async with start_chromium(computer, section.program) as chromium:
            await chromium.page.open("http://doctor.test/")
            shown = await chromium.page.read()
            picture = await chromium.page.take_screenshot()
    if WORDS not in shown.text:
        raise FreeholdError("browser.failed", f"The page shows {shown.text[:200]!a}")
    others = [line for line in asked if "doctor.test" not in line]
    if others:
        raise FreeholdError("browser.failed", f"Chromium also asked for {'; '.join(others)[:500]}")
    return f"Chromium showed a page, sealed, and took a picture of {len(picture)} bytes. It asked for nothing else."
