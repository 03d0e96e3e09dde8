"""One running desktop: an X server with a window manager inside the computer, looked at and used by small programs there."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from freehold.computer import Computer
from freehold.computer.contract.conventions import WORKSPACE
from freehold.computer.library.process import Process
from freehold.computer.library.server import start_server
from freehold.computer.library.tunnel import Tunnel
from freehold.desktop.exception import DISPLAY, INPUT_PROGRAM, PICTURE_PROGRAM, RFB_PORT
from freehold.desktop.section import DesktopSection
from freehold.errors import FreeholdError

GROUP = "desktop"
"""The group of its processes: agents of sessions can neither inspect nor signal them, and the kill switch ends them."""
MAX_PICTURE = 1024 * 1024
ACT_TIMEOUT = 20.0
MANAGER_TIMEOUT = 5.0
WAIT_STEP = 0.1
_ENVIRONMENT = {"DISPLAY": DISPLAY, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
# A lock that a killed server left behind is removed: nothing else has this display.
_START = (
    f'mkdir -p -m 1777 /tmp/.X11-unix && rm -f /tmp/.X{DISPLAY[1:]}-lock /tmp/.X11-unix/X{DISPLAY[1:]}; exec "$0" "$@"'
)

_RUN = 'exec /bin/sh -c "$0" </dev/null >/dev/null 2>&1'


class Desktop:
    """`connect` is for viewers, the rest for agents. Everything happens inside."""

    def __init__(self, computer: Computer, processes: Sequence[Process]) -> None:
        self._computer = computer
        self._processes = processes

    async def wait_ended(self) -> None:
        """Until the server or the window manager has ended."""
        waits = [asyncio.ensure_future(process.wait()) for process in self._processes]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def connect(self) -> Tunnel:
        """A connection that speaks RFB. Its bytes come from inside: only a viewer on an origin of its own reads them."""
        return await self._computer.forward(RFB_PORT)

    async def start_program(self, command: str) -> None:
        """It runs on, whoever asked for it."""
        await self._run(["/usr/bin/setsid", "--fork", "/bin/sh", "-c", _RUN, command])

    async def take_picture(self) -> bytes:
        """A JPEG of the whole desktop."""
        for quality in ("8", "4", "1"):
            taken = await self._run([PICTURE_PROGRAM, "-u", "-f", "jpg", "-m", quality, "/dev/stdout"])
            if taken.startswith(b"\xff\xd8") and len(taken) <= MAX_PICTURE:
                return taken
        raise FreeholdError("desktop.failed", "No picture of the desktop could be taken")

    async def has_manager(self) -> bool:
        """Whether the window manager shows something of its own, such as a task bar. Not every one does."""
        with suppress(FreeholdError):
            await self._run([INPUT_PROGRAM, "search", "--onlyvisible", "--limit", "1", "--class", "."])
            return True
        return False

    async def click(self, x: int, y: int, button: int, times: int) -> None:
        await self._run(
            [INPUT_PROGRAM, "mousemove", str(x), str(y), "click", "--repeat", str(times), "--delay", "60", str(button)]
        )

    async def type_text(self, text: str) -> None:
        await self._run([INPUT_PROGRAM, "type", "--delay", "8", "--file", "-"], text.encode())

    async def press(self, keys: str) -> None:
        await self._run([INPUT_PROGRAM, "key", "--", keys])

    async def _run(self, command: list[str], given: bytes = b"") -> bytes:
        result = await self._computer.run(
            command, cwd=WORKSPACE, env=_ENVIRONMENT, stdin=given, timeout=ACT_TIMEOUT, apart=GROUP
        )
        if not result.ok:
            words = result.stderr.decode(errors="replace").strip().splitlines()
            raise FreeholdError("desktop.failed", f"{command[0]}: {words[-1][:300] if words else 'it was ended'}")
        return result.stdout


@asynccontextmanager
async def start_desktop(computer: Computer, section: DesktopSection) -> AsyncIterator[Desktop]:
    """The desktop runs in `computer` during this block. Raises `server.cannot-start`."""
    command = [
        *("/bin/sh", "-c", _START, section.server, DISPLAY),
        *("-rfbport", str(RFB_PORT), "-localhost", "-SecurityTypes", "None", "-AlwaysShared", "-nolisten", "tcp"),
        *("-geometry", f"{section.width}x{section.height}", "-depth", "24", "-desktop", "Desktop"),
        *("-AcceptSetDesktopSize=1", "-SetPrimary=0", "-SendPrimary=0"),
        # No program on the desktop can change these while it runs.
        *(f"-AcceptCutText={section.accepts_clipboard:d}", f"-SendCutText={section.sends_clipboard:d}"),
        "-AllowOverride=",
    ]
    async with start_server(
        computer, GROUP, command, port=RFB_PORT, cwd=WORKSPACE, env=_ENVIRONMENT
    ) as server:  # the clients of the server end with it
        manager = await computer.spawn(
            ["/bin/sh", "-c", _RUN, section.window_manager], cwd=WORKSPACE, env=_ENVIRONMENT, apart=GROUP
        )
        async with manager:
            desktop = Desktop(computer, (server, manager))
            try:
                await _wait_managed(desktop)
                yield desktop
            finally:
                manager.kill()


async def _wait_managed(desktop: Desktop) -> None:
    """So that the first picture is not an empty screen. For a while: the desktop can be used without."""
    ended = asyncio.ensure_future(desktop.wait_ended())
    try:
        async with asyncio.timeout(MANAGER_TIMEOUT):
            while not await desktop.has_manager():
                await asyncio.wait([ended], timeout=WAIT_STEP)
                if ended.done():
                    raise FreeholdError("server.cannot-start", "The window manager of the desktop has ended")
    except TimeoutError:
        pass
    finally:
        ended.cancel()
        await asyncio.gather(ended, return_exceptions=True)
