"""What the owner types after a `!`: it runs in the computer, and the agent is neither asked nor told."""

import asyncio
import codecs
import uuid
from collections.abc import Callable

from freehold.agents.acp import WORKSPACE
from freehold.agents.rpc import Json
from freehold.computer import Computer
from freehold.computer.process import Process

LONGEST = 600.0
MAX_OUTPUT = 100_000
FENCE = "````"


def is_own_command(agent: str, text: str) -> bool:
    """Freehold's own agent runs them itself, and remembers what came of them."""
    return agent != "builtin" and text.startswith("!") and bool(text[1:].strip())


class OwnCommand:
    """One command. `tell` hears of it as it would of an agent's own step, and of its output as words."""

    def __init__(self, text: str, tell: Callable[[Json], None]) -> None:
        self._command = text[1:].strip()
        self._tell = tell
        self._stopped = asyncio.Event()
        self._step: Json = {"toolCallId": uuid.uuid4().hex, "title": self._command, "kind": "execute"}

    def stop(self) -> None:
        self._stopped.set()

    async def run(self, computer: Computer) -> str:
        """To its end; why it ended, in the words of a turn."""
        self._say("tool_call", status="in_progress", rawInput={"command": self._command})
        argv = ["/bin/bash", "-lc", self._command]
        async with await computer.spawn(argv, cwd=WORKSPACE, timeout=LONGEST, merge_stderr=True) as process:
            process.close_stdin()
            stopping = asyncio.ensure_future(self._stopped.wait())
            reading = asyncio.ensure_future(self._read(process))
            try:
                await asyncio.wait({stopping, reading}, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    process.kill()
                    await reading
                exit = await process.wait()
            finally:
                for task in (stopping, reading):
                    task.cancel()
                await asyncio.gather(stopping, reading, return_exceptions=True)
        state = f"\n[ended after {LONGEST:g} s]" if exit.timed_out else ""
        if not state and exit.code != 0 and not self._stopped.is_set():
            state = f"\n[exit code {exit.code}]" if exit.code is not None else f"\n[signal {exit.signal}]"
        self._words(f"{state}\n{FENCE}")
        self._say("tool_call_update", status="completed" if exit.code == 0 else "failed")
        return "cancelled" if self._stopped.is_set() else "end_turn"

    async def _read(self, process: Process) -> None:
        """Passes on the first of its output, and reads the rest so that it need not wait."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._words(f"{FENCE}\n")
        left = MAX_OUTPUT
        while data := await process.stdout.read():
            text = decoder.decode(data)[:left]
            left -= len(text)
            if text:
                self._words(text)

    def _words(self, text: str) -> None:
        self._tell({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def _say(self, kind: str, **more: object) -> None:
        self._tell({"sessionUpdate": kind, **self._step, **more})
