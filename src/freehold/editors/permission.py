"""An approval of Freehold as a permission request of ACP, and the answer back."""

from dataclasses import dataclass
from typing import Any

from freehold.agents.visible_text import make_visible
from freehold.cli._approval_parts import list_part_lines
from freehold.client.session_models import ApprovalAnswer

Json = dict[str, Any]
_ANSWERS: dict[ApprovalAnswer, tuple[str, str]] = {
    "once": ("Allow once", "allow_once"),
    "conversation": ("Allow for this conversation", "allow_always"),
    "always": ("Always allow", "allow_always"),
    "reject": ("Reject", "reject_once"),
}
_CHOICE = "choice:"


@dataclass(frozen=True)
class EditorAnswer:
    answer: ApprovalAnswer
    note: str | None = None


def request_of(approval: Json) -> Json:
    """What the editor is asked. Everything that the approval carries is in the content of the tool call."""
    details = approval.get("details") or {}
    lines = [line.text for line in list_part_lines(approval)]
    text = make_visible("\n".join(lines))
    title = make_visible(str(approval.get("title") or "Permission"), lines=False)
    call: Json = {
        "toolCallId": str(approval.get("tool") or approval.get("id")),
        "title": title,
        "status": "pending",
        "content": [{"type": "content", "content": {"type": "text", "text": text}}] if text else [],
    }
    if details.get("kind") == "question":
        options = [
            {"optionId": f"{_CHOICE}{number}", "name": make_visible(str(choice), lines=False), "kind": "allow_once"}
            for number, choice in enumerate(details.get("options") or ())
        ]
        options = options or [_option("once")]
        return {"toolCall": call, "options": [*options, _option("reject")]}
    offered = approval.get("options") or ("once", "reject")
    return {"toolCall": call, "options": [_option(answer) for answer in _ANSWERS if answer in offered]}


def read_answer(approval: Json, outcome: object) -> EditorAnswer | None:
    """None when the editor has cancelled the request, or answered with what it was not offered."""
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return None
    chosen = str(outcome.get("optionId"))
    if chosen not in {one["optionId"] for one in request_of(approval)["options"]}:
        return None
    if chosen.startswith(_CHOICE):
        choices = (approval.get("details") or {}).get("options") or ()
        return EditorAnswer("once", str(choices[int(chosen.removeprefix(_CHOICE))]))
    for answer in _ANSWERS:
        if answer == chosen:
            return EditorAnswer(answer)
    return None


def _option(answer: ApprovalAnswer) -> Json:
    name, kind = _ANSWERS[answer]
    return {"optionId": answer, "name": name, "kind": kind}
