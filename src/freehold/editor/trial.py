"""What the doctor tries: code-server starts, sealed, and answers nobody without its password."""

from collections.abc import Callable

from freehold.computer import Computer, Limits
from freehold.computer.library.computer import PendingComputer
from freehold.editor.code_server import start_code_server
from freehold.editor.exception import EDITOR_PORT
from freehold.editor.section import EditorSection
from freehold.errors import FreeholdError
from freehold.manifest.model import Manifest

_ASK = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=30)
connection.request("GET", "/?folder=/", headers={"Cookie": sys.stdin.read()})
print(connection.getresponse().status)
"""


async def try_editor(manifest: Manifest, start_computer: Callable[[Limits], PendingComputer]) -> str:
    """What was seen. Raises when it does not start, or answers somebody without the password."""
    section = manifest.section(EditorSection)
    async with start_computer(Limits()) as computer, start_code_server(computer, section) as editor:
        owner = await _ask(computer, editor.cookie)
        stranger = await _ask(computer, "")
    if owner != "200" or stranger == "200":
        raise FreeholdError(
            "editor.failed", f"code-server answers {owner!a} with its password, and {stranger!a} without"
        )
    return "code-server started, sealed. It answers with its password, and to nobody else."


async def _ask(computer: Computer, cookie: str) -> str:
    command = ["/usr/bin/python3", "-I", "-c", _ASK, str(EDITOR_PORT)]
    return (await computer.run(command, stdin=cookie, timeout=60)).text.strip()
