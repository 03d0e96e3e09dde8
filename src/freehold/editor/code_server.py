"""One running code-server inside the computer, and the password without which it answers nobody."""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from freehold.computer import Computer
from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.computer.library.process import Process
from freehold.computer.library.server import start_server
from freehold.computer.library.tunnel import Tunnel
from freehold.editor.exception import EDITOR_PORT
from freehold.editor.section import EditorSection
from freehold.errors import FreeholdError

GROUP = "editor"
"""The group of its processes: agents of sessions can neither inspect nor signal them, and the kill switch ends them."""
COOKIE = "code-server-session"
DATA = f"{AGENT_HOME}/.local/share/code-server"
_OPTIONS = (
    "--disable-telemetry",
    "--disable-update-check",
    "--disable-workspace-trust",
    "--disable-getting-started-override",
    # Ports are shown by previews, each on an origin of its own.
    "--disable-proxy",
    "--ignore-last-opened",
)


class CodeServer:
    """`connect` is a connection to it, and `cookie` what opens it. No other process group can read either."""

    def __init__(self, computer: Computer, process: Process, password: str) -> None:
        self._computer = computer
        self._process = process
        self._password = password

    @property
    def cookie(self) -> str:
        return f"{COOKIE}={self._password}"

    async def wait_ended(self) -> None:
        with suppress(FreeholdError):
            await self._process.wait()

    async def connect(self) -> Tunnel:
        return await self._computer.forward(EDITOR_PORT)


@asynccontextmanager
async def start_code_server(computer: Computer, section: EditorSection) -> AsyncIterator[CodeServer]:
    """It runs in `computer` during this block. Raises `server.cannot-start`."""
    # code-server compares the cookie with this hash, so a random value is a password that has no other form.
    password = secrets.token_hex(32)
    environment = {"HASHED_PASSWORD": password}
    if not section.gallery:
        environment["EXTENSIONS_GALLERY"] = json.dumps({"serviceUrl": "", "itemUrl": ""})
    command = [
        *(section.program, "--bind-addr", f"127.0.0.1:{EDITOR_PORT}", "--auth", "password"),
        *("--user-data-dir", DATA, "--extensions-dir", f"{DATA}/extensions", "--config", f"{DATA}/config.yaml"),
        *(*_OPTIONS, WORKSPACE),
    ]
    async with start_server(computer, GROUP, command, port=EDITOR_PORT, cwd=WORKSPACE, env=environment) as process:
        yield CodeServer(computer, process, password)
