"""The title of a session in the words of a model, made from its first prompt."""

import re

from freehold.agents.visible_text import make_visible

MAX_ASKED = 2_000
"""Characters of the prompt that the model is shown."""
MAX_TITLE = 60
THOUGHT = re.compile(r"<think>.*?(</think>|$)", re.S)
"""What some models say to themselves before they answer."""
_ENDS = " \t\"'`*#.:“”‘’«»"


def ask_for_title(prompt: str) -> str:
    return (
        "Write a title of at most six words for a conversation that begins with the message below. "
        "Use the language of the message. Answer with the title only.\n\n"
        f"<message>\n{prompt[:MAX_ASKED]}\n</message>"
    )


def is_begin(title: str, prompt: str) -> bool:
    """Whether a title is nothing but the begin of a prompt."""
    begin = " ".join(title.rstrip("…").split())
    return begin != "" and " ".join(prompt.split()).startswith(begin)


def read_title(answer: str) -> str | None:
    """The title in an answer; None when it has none that fits on a line."""
    lines = [line.strip(_ENDS) for line in THOUGHT.sub("", answer).splitlines()]
    title = next((make_visible(line, lines=False) for line in lines if line), "")
    return title if 0 < len(title) <= MAX_TITLE else None
