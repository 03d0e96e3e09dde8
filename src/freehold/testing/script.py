r"""Chooses what the model does next by the prompt: the last user message with one of these words is the script.

    RUN <command>         calls the agent's shell tool
    WRITE <path> <text>   calls its write tool, or its shell if it has none
    CALL <tool> <json>    calls this tool
    SAY <text>            the final message, instead of "Done. …"
    ECHO                  answers with the prompt
    SLOW                  sends one word every half second for half a minute
    FAIL <fault>          429, 500, 529, overflow, blind, hang, cut, malformed or disconnect
    ESCALATE              beside RUN: makes codex ask its user for more rights

Each is on its own line and takes the rest of it. Each request gets one step: the number of tool results since the
prompt says which is next, so the server has no state and an agent can retry.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from freehold.testing.conversation import Conversation, OfferedTool

Fault = Literal["429", "500", "529", "overflow", "blind", "hang", "cut", "malformed", "disconnect"]
FAULTS: tuple[Fault, ...] = get_args(Fault)

WRITERS = (
    "write",
    "Write",
    "write_file",
    "WriteFile",
    "create_file",
    "write_text_file",
    "fs_write",
    "edit_file",
    "editor",
    "apply_patch",
)
SHELLS = (
    "run",
    "bash",
    "Bash",
    "shell",
    "Shell",
    "exec_command",
    "shell_command",
    "run_shell_command",
    "local_shell",
    "execute",
    "terminal",
    "run_command",
    "run_commands",
    "execute_command",
)
TITLE = "Scripted title"
_WORD = re.compile(r"\b(RUN|WRITE|CALL|SAY|ECHO|SLOW|FAIL)\b")
_LINE = re.compile(
    r"\bRUN (?P<run>[^\n<]+)"
    r"|\bWRITE (?P<path>\S+) (?P<content>[^\n<]+)"
    r"|\bCALL (?P<tool>\S+) (?P<arguments>\{[^\n]*\})"
    r"|\bSAY (?P<say>[^\n<]+)"
    r"|\bFAIL (?P<fault>\w+)"
)
_PATH = re.compile(r"file_?path|path|absolute_path|filename|file")


@dataclass(frozen=True)
class Say:
    """A message, sent in pieces of `piece` characters with a `pause` in seconds between them."""

    text: str
    pause: float = 0.0
    piece: int = 12


@dataclass(frozen=True)
class Call:
    """A tool call: its name and its arguments, or the plain text for a custom tool."""

    tool: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True)
class Fail:
    """A fault instead of an answer. `cut` and `malformed` happen in the middle of one."""

    fault: Fault


Step = Say | Call | Fail
Script = Callable[[Conversation], Step | None]
"""Chooses a step. None leaves the choice to the words in the prompt."""


def make_script(steps: Sequence[Step], *, when: str = "") -> Script:
    """A script with these steps in order, one for each tool result, for prompts that contain `when`. The last one repeats."""

    def choose(conversation: Conversation) -> Step | None:
        prompts = [place for place, turn in enumerate(conversation.turns) if turn.role == "user" and when in turn.text]
        if not prompts or not conversation.tools:
            return None
        done = sum(turn.role == "tool" for turn in conversation.turns[prompts[-1] :])
        return steps[min(done, len(steps) - 1)]

    return choose


def choose_step(conversation: Conversation) -> Step:
    """The next step by the words in the prompt."""
    turns = conversation.turns
    prompts = [place for place, turn in enumerate(turns) if turn.role == "user" and _WORD.search(turn.text)]
    if not prompts:
        return Say(TITLE)
    prompt = turns[prompts[-1]].text
    results = [turn.text for turn in turns[prompts[-1] + 1 :] if turn.role == "tool"]
    if re.search(r"\bSLOW\b", prompt):
        return Say(" ".join(f"tick {number:02}" for number in range(60)), pause=0.5, piece=8)
    lines = list(_LINE.finditer(prompt))
    faults = [line["fault"] for line in lines if line["fault"] in FAULTS]
    if faults:
        return Fail(faults[0])
    calls = [line for line in lines if not line["say"] and not line["fault"]]
    if len(results) < len(calls):
        return _call(calls[len(results)], conversation, prompt) if conversation.tools else Say(TITLE)
    words = next((line["say"].strip() for line in lines if line["say"]), None)
    if words is not None:
        return Say(words)
    if results:
        return Say(f"Done. Tool said: {results[-1].strip()[:120]}")
    return Say(f"Echo: {prompt[-80:]}")


def _call(line: re.Match[str], conversation: Conversation, prompt: str) -> Step:
    if line["tool"]:
        tool = conversation.tool(line["tool"])
        if tool is None:
            return Say(f"No tool {line['tool']} among {sorted(each.title for each in conversation.tools)}")
        return Call(tool.title, json.loads(line["arguments"]))
    if line["path"]:
        return _write(line["path"], f"{line['content'].strip()}\n", conversation)
    return _shell(line["run"].strip(), conversation, escalate="ESCALATE" in prompt)


def _write(path: str, content: str, conversation: Conversation) -> Step:
    tool = _first(WRITERS, conversation)
    if tool is None:
        return _shell(f"printf '%s\\n' '{content.strip()}' > {path}", conversation, escalate=False)
    if tool.custom:
        return Call(tool.title, f"*** Begin Patch\n*** Add File: {path}\n+{content.strip()}\n*** End Patch")
    return Call(tool.title, _fill(tool, path=path, content=content))


def _shell(line: str, conversation: Conversation, *, escalate: bool) -> Step:
    tool = _first(SHELLS, conversation)
    if tool is None:
        return Say(f"No usable tool among {sorted(each.title for each in conversation.tools)}")
    arguments = _fill(tool, line=line)
    if escalate and "sandbox_permissions" in tool.schema.get("properties", {}):
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "scripted escalation"}
    return Call(tool.title, arguments)


def _first(names: Sequence[str], conversation: Conversation) -> OfferedTool | None:
    by_name = {tool.name: tool for tool in conversation.tools}
    return next((by_name[name] for name in names if name in by_name), None)


def _fill(
    tool: OfferedTool, *, path: str | None = None, content: str | None = None, line: str | None = None
) -> dict[str, Any]:
    """Arguments for a tool of which only the schema is known, with a harmless value for each other required one."""
    filled: dict[str, Any] = {}
    for key, schema in tool.schema.get("properties", {}).items():
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        name = key.lower()
        if path is not None and _PATH.fullmatch(name):
            filled[key] = path
        elif content is not None and name in ("content", "contents", "text", "file_text", "file_content", "new_text"):
            filled[key] = content
        elif content is not None and name == "command" and "enum" in schema:
            filled[key] = "create"
        elif line is not None and name in ("command", "cmd"):
            filled[key] = ["bash", "-lc", line] if kind == "array" else line
        elif line is not None and name == "commands":
            filled[key] = [line]
        elif key in tool.schema.get("required", []):
            filled[key] = _harmless_value(schema, kind)
    return filled


def _harmless_value(schema: Mapping[str, Any], kind: object) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    harmless: dict[object, object] = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}
    return harmless.get(kind, "scripted step")
