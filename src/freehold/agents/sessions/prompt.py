"""What is sent to an agent as a prompt: the owner's text, references to files, images, and the transcript so far."""

import posixpath
from collections.abc import Sequence
from urllib.parse import quote

from freehold.agents.acp.json_rpc import Json
from freehold.agents.acp.program import AgentCapabilities
from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.rows import SessionEventRow
from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.errors import FreeholdError

MAX_TRANSCRIPT = 24_000
MAX_TRANSCRIPT_LINE = 4_000


class UnsupportedPromptError(FreeholdError):
    """The agent does not support a part of the prompt."""


def build_blocks(prompt: Json, capabilities: AgentCapabilities, preface: str) -> list[Json]:
    """The content blocks of ACP. Raises `UnsupportedPromptError`."""
    if prompt["images"] and not capabilities.images:
        raise UnsupportedPromptError(
            "agent.no-images", "This agent does not support images", hint="Send the prompt without images"
        )
    text = f"{preface}\n\n{prompt['text']}" if preface else prompt["text"]
    blocks: list[Json] = [{"type": "text", "text": text}] if text else []
    for path in prompt["files"]:
        place = resolve_path(path)
        blocks.append({"type": "resource_link", "uri": f"file://{quote(place)}", "name": posixpath.basename(place)})
    for image in prompt["images"]:
        blocks.append({"type": "image", "mimeType": image["mime"], "data": image["data"]})
    return blocks


def resolve_path(path: str) -> str:
    """The absolute path in the computer; a relative path is below /workspace. Raises `session.bad-file`."""
    place = posixpath.normpath(posixpath.join(WORKSPACE, path))
    if "\0" in path or not place.startswith((f"{WORKSPACE}/", f"{AGENT_HOME}/")):
        raise FreeholdError("session.bad-file", f"{path!a:.200} is neither below {WORKSPACE} nor below {AGENT_HOME}")
    return place


def resolve_folder(folder: str) -> str:
    """A folder of the workspace, relative to it; empty for the workspace itself. Raises `session.bad-folder`."""
    place = posixpath.normpath(posixpath.join(WORKSPACE, folder))
    if "\0" in folder or not f"{place}/".startswith(f"{WORKSPACE}/"):
        raise FreeholdError("session.bad-folder", f"{folder!a:.200} is not below {WORKSPACE}")
    return place.removeprefix(WORKSPACE).strip("/")


def answer_prompt(answered: ApprovalRow, note: str | None) -> str:
    """The owner's answer as a prompt: the note, or the answer itself for an agent that was restarted after it had asked."""
    if answered.live:
        return note or ""
    title = answered.data["title"]
    if answered.is_question:
        yes_or_no = "no" if answered.answer == "reject" else "yes"
        return (
            f"Freehold was restarted while you waited for an answer to this question: {title}\n"
            f"The user answered: {answered.note or yes_or_no}"
        )
    word = "rejected" if answered.answer == "reject" else "allowed"
    text = (
        f"Freehold was restarted while you waited for permission to do this: {title}\n"
        f"The user has now {word} it. Continue from there."
    )
    return text if note is None else f"{text}\n{note}"


def summarise_transcript(events: Sequence[SessionEventRow]) -> str:
    """The end of the transcript, for an agent that does not remember it. Empty for a new session."""
    lines: list[str] = []
    size = 0
    for event in reversed(events):
        if event.kind == "turn.started":
            line = f"User: {event.data['prompt']['text']}"
        elif event.kind == "message":
            line = f"You: {event.data['text']}"
        elif event.kind == "tool" and event.data["status"] in ("completed", "failed"):
            line = f"You used a tool ({event.data['status']}): {event.data['title']}"
        else:
            continue
        line = line[:MAX_TRANSCRIPT_LINE]
        size += len(line)
        if size > MAX_TRANSCRIPT:
            break
        lines.append(line)
    if not lines:
        return ""
    return "\n".join(
        ["This conversation began earlier. Its last part was:", "", *reversed(lines), "", "It continues now."]
    )
