"""A prompt that begins with `!`: the owner's own shell command. It runs in the computer without the agent."""

import asyncio
import codecs
import uuid
from collections.abc import Callable

from freehold.agents.acp.json_rpc import Json
from freehold.computer import Computer
from freehold.computer.contract.conventions import OWNER_COMMANDS
from freehold.computer.library.process import Process

COMMAND_TIMEOUT = 600.0
MAX_OUTPUT = 100_000
FENCE = "````"


def is_owner_command(agent: str, text: str) -> bool:
    """Whether Freehold runs this prompt. The built-in agent runs such commands itself and remembers the output."""
    return agent != "builtin" and text.startswith("!") and bool(text[1:].strip())


def runs_command(text: str) -> bool:
    """Whether some agent, or Freehold itself, takes a prompt with this text for a shell command of the owner."""
    return text.lstrip().startswith("!")


class OwnerCommand:
    """One command. `on_update` receives it in the form of an agent's updates: a tool call and a message."""

    def __init__(self, text: str, on_update: Callable[[Json], None]) -> None:
        self._command = text[1:].strip()
        self._on_update = on_update
        self._stopped = asyncio.Event()
        self._tool_call: Json = {"toolCallId": uuid.uuid4().hex, "title": self._command, "kind": "execute"}

    def stop(self) -> None:
        self._stopped.set()

    async def run(self, computer: Computer, folder: str) -> str:
        """Runs it to its end. Returns the stop reason of the turn."""
        self._update_tool_call("tool_call", status="in_progress", rawInput={"command": self._command})
        argv = ["/bin/bash", "-lc", self._command]
        async with await computer.spawn(
            argv, cwd=folder, timeout=COMMAND_TIMEOUT, merge_stderr=True, apart=OWNER_COMMANDS
        ) as process:
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
        state = f"\n[ended after {COMMAND_TIMEOUT:g} s]" if exit.timed_out else ""
        if not state and exit.code != 0 and not self._stopped.is_set():
            state = f"\n[exit code {exit.code}]" if exit.code is not None else f"\n[signal {exit.signal}]"
        self._add_text(f"{state}\n{FENCE}")
        self._update_tool_call("tool_call_update", status="completed" if exit.code == 0 else "failed")
        return "cancelled" if self._stopped.is_set() else "end_turn"

    async def _read(self, process: Process) -> None:
        """Publishes the begin of the output, and reads the rest so that the command does not block."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._add_text(f"{FENCE}\n")
        left = MAX_OUTPUT
        while data := await process.stdout.read():
            text = decoder.decode(data)[:left]
            left -= len(text)
            if text:
                self._add_text(text)

    def _add_text(self, text: str) -> None:
        self._on_update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})

    def _update_tool_call(self, kind: str, **more: object) -> None:
        self._on_update({"sessionUpdate": kind, **self._tool_call, **more})
