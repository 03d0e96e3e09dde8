"""Questions of workflows, and network requests: how the outbox names them, their words, and whether they still wait.

The outbox names them where it has the id of an approval, by a word and a colon, which no such id has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from freehold.agents.visible_text import make_visible
from freehold.channels.outbox import StoredMessage
from freehold.channels.words import FRAME, MAX_EXCERPT, Mask, excerpt, measure, quote, show_words
from freehold.gateway.owner_questions import list_network_requests
from freehold.observe.secrets import mask_secrets
from freehold.timeline import Timeline, TimelineEvent

WORKFLOW, NETWORK = "workflow:", "network:"
_STEP_ENDED = frozenset({"workflow.step_done", "workflow.step_failed"})
_ENDED = (
    *sorted(_STEP_ENDED),
    "workflow.cancelled",
    "workflow.changed",
    "workflow.done",
    "workflow.failed",
    "workflow.uncertain",
)
"""The timeline events after which a question of that step, or of that workflow, waits no more."""


@dataclass(frozen=True)
class AskedQuestion:
    """What the timeline says that a workflow has asked. `choices` is None when it does not say all of it."""

    workflow: str
    step: str
    number: int
    digest: str
    question: str
    choices: tuple[str, ...] | None

    @property
    def name(self) -> str:
        return f"{WORKFLOW}{self.workflow}:{self.step}:{self.number}"


def read_asked(event: TimelineEvent) -> AskedQuestion:
    data = event.data
    choices, number = data.get("choices"), data.get("number")
    return AskedQuestion(
        str(data["workflow"]),
        str(data["step"]),
        number if isinstance(number, int) else 0,
        str(data.get("digest", "")),
        str(data.get("question", "")),
        tuple(str(one) for one in choices) if isinstance(choices, list) else None,
    )


def is_approval(name: str) -> bool:
    """Whether it is the id of an approval."""
    return ":" not in name


def read_number(name: str) -> int | None:
    """The number of the question of a workflow that has this name."""
    return int(name.rpartition(":")[2]) if name.startswith(WORKFLOW) else None


def has_ended(timeline: Timeline, message: StoredMessage) -> bool:
    """Whether what this message asks waits no more. It asks no approval. Blocking.

    The timeline says it of workflows, wherever their journal is and whether or not it can be reached.
    """
    name = message.approval or ""
    if name.startswith(NETWORK):
        return list_network_requests(timeline).get(int(name.removeprefix(NETWORK))) != message.digest
    workflow, step, _ = name.removeprefix(WORKFLOW).split(":")
    seq = int(message.key.rpartition(":")[2])
    while events := timeline.read(seq, kinds=_ENDED):
        for event in events:
            is_its_own = event.kind not in _STEP_ENDED or event.data.get("step") == step
            if is_its_own and event.data.get("workflow") == workflow:
                return True
        seq = events[-1].seq
    return False


def choose(said: str, choices: Sequence[str]) -> str | None:
    """The choice with exactly these words, or with this number; None when it is none, or could be two."""
    words = said.strip()
    same = [one for one in choices if one.strip() == words]
    if same:
        return same[0] if len(same) == 1 else None
    if not _is_numbered(choices) or not words.isdecimal() or len(words) > 3:
        return None
    return choices[int(words) - 1] if 1 <= int(words) <= len(choices) else None


def explain_answer(choices: Sequence[str]) -> str:
    """How a question is answered."""
    if not choices:
        return "Reply to this message with your answer."
    if _is_numbered(choices):
        return "Reply to this message with the number of your choice, or its exact words."
    return "Reply to this message with the exact words of your choice."


@dataclass(frozen=True)
class QuestionWords:
    """`whole`: the question and all choices are in the text, as they are."""

    text: str
    whole: bool


def word_question(asked: AskedQuestion, limit: int, mask: Mask) -> QuestionWords:
    """The question and its choices behind a bar. What is not shown whole is no place to answer it."""
    choices = asked.choices or ()
    listed = "\n".join(f"{number}. {one}" for number, one in enumerate(choices, 1))
    if not _is_numbered(choices):
        listed = "\n".join(choices)
    is_plain = all(
        make_visible(one) == one and mask(mask_secrets(one)) == one for one in (asked.question, "\n".join(choices))
    )
    text = _join(quote(asked.question.strip()), quote(listed) if listed else "")
    is_listed = asked.choices is not None and not any("\n" in one or "\r" in one for one in choices)
    if is_plain and is_listed and measure(text) + FRAME <= limit:
        return QuestionWords(text, whole=True)
    room = min(MAX_EXCERPT, max(limit - FRAME, 200) // (2 if listed else 1))
    shown = excerpt(show_words(listed, mask), room) if listed else ""
    return QuestionWords(_join(excerpt(show_words(asked.question, mask), room), shown), whole=False)


def _join(question: str, choices: str) -> str:
    """Our line stands between them, so that no question can look like choices."""
    return f"{question}\nYour choices:\n{choices}" if choices else question


def _is_numbered(choices: Sequence[str]) -> bool:
    """A choice that is itself a number could be mistaken for that of another."""
    return not any(one.strip().isdecimal() for one in choices)
