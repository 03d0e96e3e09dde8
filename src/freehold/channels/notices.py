"""Writes into the outbox what the owner is told, because the timeline has it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from freehold.agents.sessions.answered_turns import find_first_key, list_own_turns
from freehold.agents.sessions.approval_store import ApprovalRow, ApprovalStore
from freehold.agents.sessions.store import SessionStore
from freehold.channels.contract import Tell
from freehold.channels.kinds import max_text, receives
from freehold.channels.outbox import REPLY, DraftMessage, StoredMessage, add_message, set_text
from freehold.channels.questions import (
    NETWORK,
    AskedQuestion,
    explain_answer,
    has_ended,
    is_approval,
    read_asked,
    word_question,
)
from freehold.channels.quiet_hours import find_due
from freehold.channels.section import ChannelsSection
from freehold.channels.store import ChannelRow
from freehold.channels.words import FRAME, MAX_EXCERPT, Mask, excerpt, show_title, show_words, word_approval
from freehold.errors import FreeholdError
from freehold.timeline import Timeline, TimelineEvent, Transaction

KINDS = (
    "approval.asked",
    "egress.question_asked",
    "turn.ended",
    "models.budget_reached",
    "backup.failed",
    "backup.verified",
    "backup.rehearsed",
    "backup.stale",
    "mesh.registration_changed",
    "routine.run_done",
    "routine.run_failed",
    "routine.run_uncertain",
    "routine.paused",
    "routine.budget_reached",
    "workflow.asked",
    "workflow.done",
    "workflow.failed",
    "workflow.uncertain",
    "workflow.changed",
)
"""The timeline events of which the owner is told."""
URGENT_DELAY = 5.0
"""Seconds before the owner is told that an agent waits: whoever looks at the page has answered by then."""
_FAILED = frozenset({"error", "interrupted", "refusal"})
_ROUTINE_WORDS = {
    "routine.run_done": "done",
    "routine.run_failed": "failed",
    "routine.run_uncertain": "it is not known whether it ran",
    "routine.paused": "paused",
}
_WORKFLOW_WORDS = {
    "workflow.asked": "asks you",
    "workflow.done": "done",
    "workflow.failed": "failed",
    "workflow.uncertain": "it is not known how far a step came",
    "workflow.changed": "stopped, because it is another one now",
}
_BACKUP_WORDS = {
    "verify": "Backups cannot be verified",
    "rehearse": "The trial of a restore fails",
    "prune": "Old backups cannot be removed",
}
_UNATTENDED_KEYS = ("routine:", "workflow:")
"""How the key of a prompt of a routine or workflow begins. Its end, and that of a turn that goes on with the owner's answer
to it, is told as that of the routine or workflow."""


@dataclass(frozen=True)
class Notice:
    """What happened, before it is worded for one channel. `words` are of an agent, `lines` are ours."""

    tell: Tell
    subject: str
    link: str
    lines: tuple[str, ...] = ()
    words: str = ""
    session: str | None = None
    approval: ApprovalRow | None = None
    question: AskedQuestion | None = None
    asks: tuple[str, str] | None = None
    """What waits for the owner, as the outbox names it, and the digest of its words."""
    origin: tuple[str, str] | None = None
    """The channel that it answers, and the message there."""


class NoticeWriter:
    """Blocking. `write` stores all messages about one event together with the position behind it."""

    def __init__(
        self,
        timeline: Timeline,
        sessions: SessionStore,
        section: ChannelsSection,
        base_url: str,
        mask: Mask,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._timeline = timeline
        self._sessions = sessions
        self._approvals = ApprovalStore(timeline)
        self._section = section
        self._base_url = base_url
        self._mask = mask
        self._clock = clock

    def write(self, event: TimelineEvent, channels: Sequence[ChannelRow]) -> None:
        notice = self._describe(event)
        with self._timeline.transaction() as tx:
            if notice is not None:
                for row in channels:
                    self._add(tx, row, notice, f"event:{event.seq}")
            _save_position(tx, event)

    def skip(self, event: TimelineEvent) -> None:
        """Nobody is told of it."""
        with self._timeline.transaction() as tx:
            _save_position(tx, event)

    def is_stale(self, message: StoredMessage) -> bool:
        """Whether the owner has answered or read it in the meantime."""
        if message.tell == REPLY or message.reply_to is not None:
            return False
        if message.approval is not None and not is_approval(message.approval):
            return has_ended(self._timeline, message)
        if message.approval is not None:
            try:
                return self._approvals.get(message.approval).state != "pending"
            except FreeholdError:
                return True
        is_read_in_session = message.tell in ("finished", "failed") or self._is_result(message)
        if message.session is None or not is_read_in_session:
            return False
        try:
            return not self._sessions.get(message.session).unread
        except FreeholdError:
            return True

    def _is_result(self, message: StoredMessage) -> bool:
        """Whether it tells what a run has done. That one failed is told although its session is read."""
        if message.tell != "routine" or message.session is None:
            return False
        seq = int(message.key.rpartition(":")[2])
        return any(one.kind == "routine.run_done" for one in self._timeline.read(seq - 1, seq))

    def _describe(self, event: TimelineEvent) -> Notice | None:
        data = event.data
        try:
            if event.kind == "approval.asked":
                return self._describe_approval(self._approvals.get(str(data["approval"])))
            if event.kind == "turn.ended":
                return self._describe_turn(str(data["session"]), data.get("turn"), str(data.get("stop_reason")))
        except FreeholdError:  # it was deleted meanwhile
            return None
        if event.kind == "egress.question_asked":
            target = show_title(str(data["target"]), self._mask)
            line = "A program in the computer wants to reach an address that no rule allows. Answer it in the page."
            asks = (f"{NETWORK}{data['id']}", str(data["target"]))
            return Notice("needs_you", f"Network request: {target}", f"{self._base_url}/network", (line,), asks=asks)
        if event.kind == "models.budget_reached":
            words = f"The limit {data.get('limit')} of {data.get('scope')} is reached: {data.get('spent')} of {data.get('of')}."
            link = f"{self._base_url}/settings/budgets"
            return Notice("budget", "A budget is reached", link, (show_title(words, self._mask),))
        if event.kind.startswith("backup."):
            return self._describe_backup(event)
        if event.kind == "mesh.registration_changed":
            return self._describe_registration(event)
        if event.kind in _WORKFLOW_WORDS:
            return self._describe_workflow(event)
        return self._describe_routine(event)

    def _describe_backup(self, event: TimelineEvent) -> Notice | None:
        """Only when something is wrong: a verification or a rehearsal that found nothing is no news."""
        data, problems = event.data, event.data.get("problems")
        link = f"{self._base_url}/backup"
        if event.kind == "backup.failed":
            subject = _BACKUP_WORDS.get(str(data.get("work")), "Backups fail")
            return Notice("failed", subject, link, (show_title(str(data.get("message")), self._mask),))
        if event.kind == "backup.stale":
            since = show_title(str(data.get("since")), self._mask)
            return Notice("failed", "Backups are late", link, (f"Changes since {since} are in no backup.",))
        if not isinstance(problems, list) or not problems:
            return None
        what = "A backup is damaged" if event.kind == "backup.verified" else "A backup cannot be restored"
        return Notice("failed", what, link, tuple(show_title(str(one), self._mask) for one in problems[:5]))

    def _describe_registration(self, event: TimelineEvent) -> Notice | None:
        """Only when the host has evicted this Freehold. One that is away for a while is not worth a message."""
        if event.data.get("state") != "evicted":
            return None
        host = show_title(str(event.data.get("host")), self._mask)
        return Notice(
            "failed",
            f"{host} no longer knows this Freehold",
            f"{self._base_url}/neighbours",
            ("It goes on with what freehold.toml says. Pair again to use what that host gave.",),
        )

    def _describe_workflow(self, event: TimelineEvent) -> Notice | None:
        """A question, and the end of a workflow that no routine has begun and that has something to report."""
        data, is_asked = event.data, event.kind == "workflow.asked"
        if not is_asked and (data.get("quiet") or data.get("run") is not None):
            return None
        id = str(data.get("workflow"))
        subject = f"Workflow {show_title(str(data.get('file') or id), self._mask)}: {_WORKFLOW_WORDS[event.kind]}"
        link = f"{self._base_url}/workflows?id={id}"
        if is_asked:
            asked = read_asked(event)
            return Notice("needs_you", subject, link, question=asked, asks=(asked.name, asked.digest))
        words = show_words(str(data.get("error") or data.get("result") or ""), self._mask)
        return Notice("routine", subject, link, (), words)

    def _describe_routine(self, event: TimelineEvent) -> Notice | None:
        """The end of a run, unless it says that there is nothing to report; a routine that was paused for its failures, or
        begins no more today."""
        data = event.data
        reason, session = data.get("error") or data.get("reason"), data.get("session")
        if data.get("quiet") or (event.kind == "routine.paused" and reason is None):
            return None
        title = show_title(str(data.get("routine")), self._mask)
        if event.kind == "routine.budget_reached":
            line = f"Its runs have cost {data.get('spent')} of {data.get('of')} US dollars. No other begins today."
            return Notice(
                "budget", f"Routine {title}: its budget of today is used up", f"{self._base_url}/routines", (line,)
            )
        subject = f"Routine {title}: {_ROUTINE_WORDS[event.kind]}"
        told = str(data.get("result") or "")
        said = show_words(told, self._mask)
        if isinstance(session, str):
            said = self._read_answer(session, data.get("turn"))
        link = self.link(session) if isinstance(session, str) else f"{self._base_url}/routines"
        words = self._join(reason, said)
        return Notice("routine", subject, link, (), words, session if isinstance(session, str) else None)

    def _join(self, error: object, said: str) -> str:
        """Why something failed stands with the words of the agent: it may be the agent that says so."""
        return f"{show_title(str(error), self._mask)}\n{said}".strip() if error else said

    def _read_answer(self, session: str, turn: object) -> str:
        """What an agent said last in a turn, or in one that goes on with it. Others may use the session as well."""
        if not isinstance(turn, int):
            return ""
        own = list_own_turns(self._sessions.turns, self._approvals, session, turn)
        said = (self._sessions.find_last_event(session, "message", one) for one in reversed(own))
        found = next((one for one in said if one is not None), None)
        return "" if found is None else show_words(str(found.data["text"]), self._mask)

    def _describe_approval(self, approval: ApprovalRow) -> Notice | None:
        if approval.state != "pending":
            return None
        title = show_title(self._sessions.get(approval.session).title, self._mask)
        origin = None
        if approval.turn is not None:
            origin = find_origin(self._find_first_key(approval.session, approval.turn))
        subject, link = f"An agent needs you: {title}", self.link(approval.session)
        asks = (approval.id, approval.digest)
        return Notice("needs_you", subject, link, session=approval.session, approval=approval, asks=asks, origin=origin)

    def _find_first_key(self, session: str, turn: int) -> str:
        return find_first_key(self._sessions.turns, self._approvals, session, turn)

    def _describe_turn(self, session: str, turn: object, reason: str) -> Notice | None:
        row = self._sessions.get(session)
        if not isinstance(turn, int):
            return None
        key = self._find_first_key(session, turn)
        origin = find_origin(key)
        if key.startswith(_UNATTENDED_KEYS) or (reason == "cancelled" and origin is None):
            return None
        title = show_title(row.title, self._mask)
        messages = [
            str(one.data["text"])
            for one in self._sessions.events(session, last=True, limit=200)
            if one.turn == turn and one.kind == "message"
        ]
        errors = [
            str(one.data.get("message"))
            for one in self._sessions.events(session, last=True, limit=20)
            if one.turn == turn and one.kind == "error"
        ]
        failed = reason in _FAILED
        outcome = "Failed" if failed else "Cancelled" if reason == "cancelled" else "Finished"
        said = show_words(messages[-1], self._mask) if messages else ""
        words = self._join(errors[-1] if failed and errors else None, said)
        tell: Tell = "failed" if failed else "finished"
        return Notice(tell, f"{outcome}: {title}", self.link(session), (), words, session, origin=origin)

    def _add(self, tx: Transaction, row: ChannelRow, notice: Notice, key: str) -> None:
        """One message for one channel, unless the owner wants none of this kind there."""
        now, preferences = self._clock(), row.preferences
        answers = notice.origin is not None and notice.origin[0] == row.name
        if row.owner is None or (not answers and (notice.tell not in preferences.tells or notice.origin is not None)):
            return
        if answers:
            assert notice.origin is not None
            draft = DraftMessage(key, REPLY, notice.subject, "", notice.link, now, reply_to=notice.origin[1])
        else:
            delay = min(preferences.batch, URGENT_DELAY) if notice.tell == "needs_you" else preferences.batch
            due = find_due(preferences, now, delay)
            draft = DraftMessage(key, notice.tell, notice.subject, "", notice.link, due)
        if notice.asks is not None:
            draft = replace(draft, approval=notice.asks[0], digest=notice.asks[1])
        number = add_message(tx, row.name, replace(draft, session=notice.session), now)
        if number is not None:
            text, answerable = self._word(row, notice, number)
            set_text(tx, number, text, answerable=answerable)

    def _word(self, row: ChannelRow, notice: Notice, number: int) -> tuple[str, bool]:
        if notice.approval is not None:
            return self._word_approval(row, notice.approval, number)
        if notice.question is not None:
            return self._word_question(row, notice.question)
        limit = min(MAX_EXCERPT if notice.origin is None else max_text(row.kind) - FRAME, max_text(row.kind) - FRAME)
        words = [excerpt(notice.words, max(limit, 100))] if notice.words and row.preferences.words else []
        return "\n".join([*notice.lines, *words]), False

    def _word_approval(self, row: ChannelRow, approval: ApprovalRow, number: int) -> tuple[str, bool]:
        data = approval.as_json()
        if not row.preferences.words:
            return "Look at the question in the page, and answer it there.", False
        asked = word_approval(data, max_text(row.kind), self._mask)
        what = "It asks you a question." if approval.is_question else "It asks for a permission."
        if not asked.whole:
            return f"{what} This channel cannot show all of it. Look at it in the page, and answer it there.", False
        # A host tool acts on Freehold itself: it opens the network, or takes back changes.
        may_answer = self._section.approvals and receives(row.kind) and data["kind"] != "host"
        if not may_answer:
            return f"{what}\n{asked.text}\nAnswer it in the page.", False
        if not approval.is_question:
            how = "Reply /allow or /deny to this message"
        elif data["details"]["options"] or data["details"]["free_text"]:
            choices = "\n".join(show_title(str(one), self._mask) for one in data["details"]["options"])
            how = f"{choices}\nReply to this message with your answer".lstrip()
        else:
            how = "Reply /allow for yes or /deny for no"
        return f"{what}\n{asked.text}\n{how}, or to number {number}. Your answer counts once.", True

    def _word_question(self, row: ChannelRow, asked: AskedQuestion) -> tuple[str, bool]:
        if not row.preferences.words:
            return "Look at the question in the page, and answer it there.", False
        shown = word_question(asked, max_text(row.kind), self._mask)
        if not shown.whole:
            return f"{shown.text}\nThis channel cannot show all of it. Answer it in the page.", False
        if not (self._section.approvals and receives(row.kind)):
            return f"{shown.text}\nAnswer it in the page.", False
        return f"{shown.text}\n{explain_answer(asked.choices or ())} Your answer counts once.", True

    def link(self, session: str | None) -> str:
        """The page of a session, or the first page."""
        return f"{self._base_url}/sessions?id={session}" if session is not None else self._base_url


def _save_position(tx: Transaction, event: TimelineEvent) -> None:
    tx.execute("UPDATE channels_position SET seq = ? WHERE seq < ?", (event.seq, event.seq))


def make_prompt_key(channel: str, message: str) -> str:
    """The idempotency key of a prompt that came through a channel."""
    return f"channel:{channel}:{message}"


def find_origin(key: str) -> tuple[str, str] | None:
    """The channel and the message that a prompt came from."""
    word, _, rest = key.partition(":")
    channel, found, message = rest.partition(":")
    return (channel, message) if word == "channel" and found else None
