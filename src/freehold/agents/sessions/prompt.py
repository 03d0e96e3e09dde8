"""What an agent is given: the owner's words, files by reference, images, and what was said before."""

import posixpath
from collections.abc import Sequence
from urllib.parse import quote

from freehold.agents.acp import WORKSPACE, Capabilities
from freehold.agents.approvals import Approval
from freehold.agents.rpc import Json
from freehold.agents.store import EventRow
from freehold.errors import FreeholdError

MAX_RETOLD = 24_000


class NotOffered(FreeholdError):
    """The agent cannot take what it was to be given."""


def blocks_of(prompt: Json, capabilities: Capabilities, preface: str) -> list[Json]:
    if prompt["images"] and not capabilities.images:
        raise NotOffered("agent.no-images", "This agent takes no images", hint="Send the prompt without them")
    text = f"{preface}\n\n{prompt['text']}" if preface else prompt["text"]
    blocks: list[Json] = [{"type": "text", "text": text}]
    for path in prompt["files"]:
        place = inside(path)
        blocks.append({"type": "resource_link", "uri": f"file://{quote(place)}", "name": posixpath.basename(place)})
    for image in prompt["images"]:
        blocks.append({"type": "image", "mimeType": image["mime"], "data": image["data"]})
    return blocks


def inside(path: str) -> str:
    """The path in the computer that the owner meant: below /workspace unless it says otherwise."""
    place = posixpath.normpath(posixpath.join(WORKSPACE, path))
    if "\0" in path or not place.startswith((f"{WORKSPACE}/", "/home/agent/")):
        raise FreeholdError("session.bad-file", f"{path!a:.200} is neither below {WORKSPACE} nor below /home/agent")
    return place


def belated(answered: Approval, note: str | None) -> str:
    """The owner's answer to a question whose asker did not live to hear it."""
    title = answered.data["title"]
    if answered.asks_for_words:
        said = "no" if answered.answer == "reject" else "yes"
        return f"Freehold was restarted while you waited for an answer to this: {title}\nThe owner says: {answered.note or said}"
    word = "refused" if answered.answer == "reject" else "allowed"
    text = (
        f"Freehold was restarted while you waited for leave to do this: {title}\n"
        f"The owner has now {word} it. Go on from there."
    )
    return text if note is None else f"{text}\n{note}"


def retell(events: Sequence[EventRow]) -> str:
    """The end of a conversation, for an agent that does not remember it. Empty when there was none."""
    told: list[str] = []
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
        line = line[:4000]
        size += len(line)
        if size > MAX_RETOLD:
            break
        told.append(line)
    if not told:
        return ""
    return "\n".join(
        ["This conversation began earlier. Its last part was:", "", *reversed(told), "", "It goes on now."]
    )
