"""What the doctor tries: a desktop starts, sealed, shows a window, and nothing but the computer reaches it."""

from collections.abc import Callable

from freehold.computer import Limits
from freehold.computer.library.computer import PendingComputer
from freehold.desktop.display import start_desktop
from freehold.desktop.section import DesktopSection
from freehold.errors import FreeholdError
from freehold.manifest.model import Manifest

GREETING = b"RFB 003.008\n"


async def try_desktop(manifest: Manifest, start_computer: Callable[[Limits], PendingComputer]) -> str:
    """What was seen. Raises when no desktop is shown."""
    section = manifest.section(DesktopSection)
    async with start_computer(Limits()) as computer, start_desktop(computer, section) as desktop:
        picture = await desktop.take_picture()
        async with await desktop.connect() as tunnel:
            greeting = await tunnel.read_exactly(len(GREETING))
    if greeting != GREETING:
        raise FreeholdError("desktop.failed", f"The X server answered {greeting!a}")
    return f"A desktop started, sealed, and a picture of {len(picture)} bytes was taken. It can be shown."
