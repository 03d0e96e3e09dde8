"""The work of an agent in the soak: a prompt carries its steps, and the scripted model calls one tool for each."""

import json
import random
import re
from dataclasses import dataclass
from typing import Literal

from freehold.testing.conversation import Conversation
from freehold.testing.script import Call, Say, Step

_WORK = re.compile(r"SOAK (\[.*\]) END")


@dataclass(frozen=True)
class WorkStep:
    """Write a file (`text` is its content), or append a line to a log (`text` is the line)."""

    kind: Literal["write", "append"]
    path: str
    text: str

    @property
    def content(self) -> str:
        return f"{self.text}\n"

    def call(self) -> Call:
        if self.kind == "write":
            return Call("write", {"path": self.path, "content": self.content})
        return Call("run", {"command": f"echo {self.text} >> {self.path}"})


@dataclass(frozen=True)
class Work:
    """The steps of one turn, and how the owner answers when the agent asks for each."""

    steps: tuple[WorkStep, ...]
    answers: tuple[str, ...]

    @property
    def prompt(self) -> str:
        return f"SOAK {json.dumps([[step.kind, step.path, step.text] for step in self.steps])} END"


def plan_work(dice: random.Random, worker: int, number: int) -> Work:
    """One or two steps, mostly allowed. Each text is unique."""
    steps: list[WorkStep] = []
    for place in range(dice.choice((1, 1, 2))):
        text = f"w{worker}-{number}-{place}-{dice.randrange(1 << 32):08x}"
        if dice.random() < 0.6:
            steps.append(WorkStep("write", f"session-{worker}/{dice.randrange(12)}.txt", text))
        else:
            steps.append(WorkStep("append", f"session-{worker}/log.txt", text))
    return Work(tuple(steps), tuple("reject" if dice.random() < 0.15 else "once" for _ in steps))


def choose_soak_step(conversation: Conversation) -> Step:
    """The next step of the last prompt. Anything else, such as a late answer, only gets a message."""
    places = [place for place, turn in enumerate(conversation.turns) if turn.role == "user"]
    if not conversation.tools or not places:
        return Say("A short summary.")
    # A summary of the conversation may come before the prompt in the same message.
    found = _WORK.findall(conversation.turns[places[-1]].text)
    if not found:
        return Say("Noted.")
    steps = [WorkStep(*step) for step in json.loads(found[-1])]
    done = sum(turn.role == "tool" for turn in conversation.turns[places[-1] :])
    return steps[done].call() if done < len(steps) else Say("Done.")
