"""What the API has acknowledged, and what it must therefore still know at the end."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]


@dataclass
class SentPrompt:
    """A prompt, and its turn once the API has acknowledged it. The key is sent again with each try."""

    session: str
    key: str
    text: str
    turn: int | None = None


@dataclass(frozen=True)
class SentAnswer:
    """An answer to a permission request that the API has acknowledged."""

    session: str
    approval: str
    answer: str


@dataclass
class Ledger:
    """Every prompt and answer that was sent, and every event that was seen."""

    prompts: dict[str, SentPrompt] = field(default_factory=dict)
    answers: dict[str, SentAnswer] = field(default_factory=dict)
    events: dict[str, dict[int, str]] = field(default_factory=dict)
    """For each session the digest of each event that was seen, by its number."""

    def note_event(self, session: str, event: Event) -> str | None:
        """Note an event. Returns what is wrong when another event was seen under its number."""
        seen = self.events.setdefault(session, {})
        digest = digest_event(event)
        if seen.setdefault(event["seq"], digest) != digest:
            return f"event {event['seq']} of session {session} was sent a second time with another content"
        return None

    def note_prompt(self, prompt: SentPrompt, turn: int) -> str | None:
        """Note that the prompt was acknowledged. Returns what is wrong when it was acknowledged as another turn before."""
        if prompt.turn is not None and prompt.turn != turn:
            return f"prompt {prompt.key} of session {prompt.session} is turn {turn} and was turn {prompt.turn} before"
        prompt.turn = turn
        return None

    def find_missing(self, stored: dict[str, list[Event]]) -> list[str]:
        """What is wrong with the events that the API returns for each session now."""
        found: list[str] = []
        for session in {*self.events, *(prompt.session for prompt in self.prompts.values())}:
            events = stored.get(session)
            if events is None:
                found.append(f"session {session} is missing")
            else:
                found += self._compare_session(session, events)
        return found

    def _compare_session(self, session: str, events: list[Event]) -> Iterable[str]:
        numbers = [event["seq"] for event in events]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"the events of session {session} are not numbered 1 to {len(numbers)}"
        digests = {event["seq"]: digest_event(event) for event in events}
        for seq, digest in self.events.get(session, {}).items():
            if seq not in digests:
                yield f"event {seq} of session {session} was seen and is missing"
            elif digests[seq] != digest:
                yield f"event {seq} of session {session} has changed since it was seen"
        yield from self._compare_prompts(session, events)
        yield from self._compare_answers(session, events)

    def _compare_prompts(self, session: str, events: list[Event]) -> Iterable[str]:
        started = [event for event in events if event["kind"] == "turn.started"]
        times_started = Counter(event["data"]["key"] for event in started)
        times_ended = Counter(event["turn"] for event in events if event["kind"] == "turn.ended")
        for key, times in times_started.items():
            if times > 1:
                yield f"prompt {key} of session {session} was started {times} times"
        by_key = {event["data"]["key"]: event for event in started}
        for prompt in self.prompts.values():
            if prompt.session != session:
                continue
            event = by_key.get(prompt.key)
            if event is None:
                if prompt.turn is not None:
                    yield f"prompt {prompt.key} of session {session}, acknowledged as turn {prompt.turn}, never started"
                continue
            if event["data"]["prompt"]["text"] != prompt.text:
                yield f"prompt {prompt.key} of session {session} has another text"
            if prompt.turn is not None and event["turn"] != prompt.turn:
                yield f"prompt {prompt.key} of session {session} is turn {event['turn']}, acknowledged as {prompt.turn}"
            if times_ended[event["turn"]] != 1:
                yield f"turn {event['turn']} of session {session} has ended {times_ended[event['turn']]} times"

    def _compare_answers(self, session: str, events: list[Event]) -> Iterable[str]:
        final = {event["data"]["id"]: event["data"] for event in events if event["kind"] == "approval"}
        for sent in self.answers.values():
            if sent.session != session:
                continue
            approval = final.get(sent.approval)
            if approval is None:
                yield f"approval {sent.approval} of session {session} was answered and is missing"
            elif approval.get("answer") != sent.answer:
                yield (
                    f"approval {sent.approval} of session {session} was answered {sent.answer!r} and is now "
                    f"{approval['state']} with {approval.get('answer')!r}"
                )


def digest_event(event: Event) -> str:
    """The same for two events that are equal."""
    return hashlib.sha256(json.dumps(event, sort_keys=True).encode()).hexdigest()
