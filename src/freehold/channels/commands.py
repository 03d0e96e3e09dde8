"""Carries out the owner's messages: prompts, answers to requests, and the few commands that a channel has."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from freehold.agents.sessions.owner_command import runs_command
from freehold.agents.sessions.reach import Answer
from freehold.agents.sessions.rows import SessionRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.visible_text import make_visible
from freehold.channels.contract import MAX_INCOMING_TEXT, IncomingMessage, OwnerChannel
from freehold.channels.inbox import store_attachments
from freehold.channels.notices import make_prompt_key
from freehold.channels.outbox import Outbox, StoredMessage
from freehold.channels.questions import choose, explain_answer, is_approval, read_number
from freehold.channels.received import MAX_MESSAGE_AGE, ReceivedMessage, ReceivedMessages
from freehold.channels.section import ChannelsSection
from freehold.channels.store import ChannelRow
from freehold.channels.words import Mask, quote, show_title, show_words
from freehold.errors import FreeholdError
from freehold.gateway.owner_questions import list_network_requests
from freehold.gateway.services import Services
from freehold.history.calls import RESTORE_TIMEOUT, PlanUndo, RequestAuthor, RestorePreview, UndoChanges

CONFIRM_TIME = 300.0
"""Seconds in which an undo can be confirmed."""
MAX_SHOWN_STEPS = 12
MAX_ANSWER = 2_000
"""Characters of an answer to a question. It is never cut: the rest could turn it round."""
HELP = (
    "Send a message to start a session, or reply to a message to go on with its session.\n"
    "/status: what works and what waits\n"
    "/stop: stop all agents now\n"
    "/undo: take back the last change; asks first\n"
    "/allow, /deny: answer a request, as a reply to it or with its number\n"
    "Reply to a question to answer it."
)
_COMMAND = re.compile(r"/([a-z]+)(?:@[a-z0-9_]{1,64})?(?:\s+(.*))?", re.ASCII | re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Reply:
    """What the owner is told, and the session that it is about."""

    text: str
    session: str | None = None


@dataclass(frozen=True)
class _PlannedUndo:
    plan: RestorePreview
    until: float


def read_command(text: str) -> tuple[str, str] | None:
    """The command and what follows it: `/allow@my_bot 12` → `("allow", "12")`. A phone may begin it with a capital."""
    found = _COMMAND.fullmatch(text.strip())
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def is_stop(message: IncomingMessage) -> bool:
    found = read_command(message.text)
    return found is not None and found[0] == "stop"


class OwnerCommands:
    """One for all channels. The caller has made sure that the message is the owner's."""

    def __init__(
        self,
        services: Services,
        sessions: SessionService,
        section: ChannelsSection,
        outbox: Outbox,
        received: ReceivedMessages,
        mask: Mask,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._services = services
        self._sessions = sessions
        self._section = section
        self._outbox = outbox
        self._received = received
        self._mask = mask
        self._clock = clock
        self._undo: dict[str, _PlannedUndo] = {}

    async def stop(self, row: ChannelRow) -> Reply:
        """The kill switch. It waits for nothing and asks nothing."""
        await self._services.models.stop(who=row.who, why=f"through {row.name}")
        done = self._services.computer_access.stop_report or "No model request is sent any more."
        return Reply(f"All agents are stopped. {done}\nLift the stop in the page.")

    async def carry_out(self, row: ChannelRow, channel: OwnerChannel, received: ReceivedMessage) -> Reply | None:
        """What the owner is told; None when an agent will answer. A FreeholdError is told as well."""
        message = received.message
        if self._clock() - message.at > MAX_MESSAGE_AGE:
            return Reply("This message came too late and was not carried out. Send it again if you still want it.")
        if len(message.text) > MAX_INCOMING_TEXT:
            return Reply(f"Your message has more than {MAX_INCOMING_TEXT} characters. Send it in the page.")
        try:
            command = read_command(message.text)
            if command is not None:
                return await self._command(row, received, *command)
            if message.reply_to is not None:
                return await self._reply(row, channel, received, message.reply_to)
            return await self._prompt(row, channel, received, None)
        except FreeholdError as error:
            return Reply(f"{error.message}. {error.next_step}".strip())

    async def _command(self, row: ChannelRow, received: ReceivedMessage, verb: str, rest: str) -> Reply | None:
        if verb == "stop":
            return None  # done when it came, before it was stored
        if verb == "status":
            return await self._status()
        if verb == "undo":
            return await self._take_back(row, received, rest)
        if verb in ("allow", "deny"):
            return await self._decide(row, received.message, verb == "allow", rest)
        if verb in ("pair", "start"):
            return Reply("This channel is paired with you.\n" + HELP)
        return Reply(HELP)

    # What goes to a session

    async def _reply(
        self, row: ChannelRow, channel: OwnerChannel, received: ReceivedMessage, reply_to: str
    ) -> Reply | None:
        """Only to a message that we have sent through this channel, and only when that was about one session."""
        found = await asyncio.to_thread(self._outbox.find_sent, row.name, reply_to)
        if len(found) == 1 and found[0].approval is not None and not is_approval(found[0].approval):
            return await self._answer_workflow(row, found[0], received.message.text)
        sessions = {one.session for one in found if one.session is not None}
        if len(sessions) != 1:
            why = "is about several sessions" if sessions else "is about no session that I know"
            return Reply(
                f"The message to which you replied {why}. Send your message without a reply to begin a new one."
            )
        if len(found) == 1 and found[0].approval is not None:
            return await self._answer_question(row, found[0], received.message.text)
        return await self._prompt(row, channel, received, sessions.pop())

    async def _prompt(
        self, row: ChannelRow, channel: OwnerChannel, received: ReceivedMessage, session: str | None
    ) -> Reply | None:
        """The same message never makes a second turn: its key is that of the message."""
        message = received.message
        if not self._section.prompts:
            return Reply(
                "Messages are not taken as prompts here: channels.prompts in freehold.toml is false. A new message still"
                " begins the routines that you have set to it."
            )
        if runs_command(message.text):
            return Reply("A shell command is not taken through a channel. Use the page.")
        target = received.session or session
        stored = None
        if message.attachments:
            stored = await store_attachments(message, channel, self._services.computer, self._section)
        if not message.text.strip() and not (stored and stored.paths):
            return Reply("\n".join(stored.problems) if stored and stored.problems else "Your message is empty.")
        if target is None:
            target = (await self._sessions.open(None, None, None, who=row.who)).id
        await asyncio.to_thread(self._received.set_session, row.name, message.id, target)
        prompt = {
            "text": message.text.strip() or "I sent you files. They are in the workspace.",
            "files": list(stored.paths) if stored else [],
            "images": [],
        }
        await self._sessions.prompt(target, prompt, make_prompt_key(row.name, message.id), "queue", who=row.who)
        if stored and stored.problems:
            return Reply("Not taken: " + "; ".join(stored.problems), target)
        return None

    # Requests of agents

    async def _decide(self, row: ChannelRow, message: IncomingMessage, allow: bool, rest: str) -> Reply:
        found: StoredMessage | None = None
        if rest.isdecimal() and len(rest) < 12:
            found = await asyncio.to_thread(self._outbox.find_number, row.name, int(rest))
        elif not rest and message.reply_to is not None:
            sent = await asyncio.to_thread(self._outbox.find_sent, row.name, message.reply_to)
            found = sent[0] if len(sent) == 1 else None
        if found is None or found.approval is None:
            return Reply("Reply /allow or /deny to the request, or give its number. Only once: always needs the page.")
        if not is_approval(found.approval):
            how = "Reply to it with your answer." if found.answerable else "Answer it in the page."
            return Reply(f"This takes no /allow or /deny. {how}")
        return await self._answer(row, found, allow, None)

    async def _answer_question(self, row: ChannelRow, found: StoredMessage, text: str) -> Reply:
        assert found.approval is not None
        asked = await asyncio.to_thread(self._sessions.dependencies.approvals.store.get, found.approval)
        if not asked.is_question:
            return Reply("Reply /allow or /deny to this request.", found.session)
        if not (asked.data["details"]["options"] or asked.data["details"]["free_text"]):
            # A text would count as yes, also a "no".
            return Reply("Reply /allow for yes or /deny for no.", found.session)
        if runs_command(text):
            return Reply("A shell command is not taken through a channel. Use the page.")
        if len(text.strip()) > MAX_ANSWER:
            words = f"Your answer has more than {MAX_ANSWER} characters and was not taken. Send a shorter one."
            return Reply(words, found.session)
        return await self._answer(row, found, True, text.strip())

    async def _answer(self, row: ChannelRow, found: StoredMessage, allow: bool, note: str | None) -> Reply:
        """`once` or no. The digest makes sure that it is for the call that the owner has seen."""
        assert found.approval is not None
        if not self._section.approvals:
            return Reply("Requests are not answered here: channels.approvals in freehold.toml is false.", found.session)
        if not found.answerable:
            return Reply("This channel has not shown all of that request. Answer it in the page.", found.session)
        answer: Answer = "once" if allow else "reject"
        done = await self._sessions.answer(found.approval, answer, who=row.who, note=note, digest=found.digest)
        words = "Allowed once." if done.answer == "once" else "Denied."
        return Reply("Answered." if done.is_question and allow else words, found.session)

    # Questions of workflows

    async def _answer_workflow(self, row: ChannelRow, found: StoredMessage, text: str) -> Reply:
        """Only the question that was shown: the same one, with the same words, that still waits."""
        number = read_number(found.approval or "")
        if number is None:
            return Reply("A network request is not answered here. Answer it in the page.")
        if not self._section.approvals:
            words = "Questions are not answered here: channels.approvals in freehold.toml is false."
            return Reply(f"{words} Answer it in the page.")
        if not found.answerable:
            return Reply("This channel has not shown all of that question. Answer it in the page.")
        said = text.strip()
        if len(said) > MAX_ANSWER:
            return Reply(f"Your answer has more than {MAX_ANSWER} characters and was not taken. Send a shorter one.")
        if runs_command(text):
            return Reply("A shell command is not taken through a channel. Use the page.")
        questions = self._services.owner_questions.service
        if questions is None:
            return Reply("Workflows are not ready yet. Send your answer again.")
        waiting = [one for one in await questions.list_waiting() if (one.number, one.digest) == (number, found.digest)]
        if not waiting:
            return Reply("That question was answered already, or is not asked any more.")
        answer = choose(said, waiting[0].choices) if waiting[0].choices else said
        if not answer:
            return Reply(f"Your reply is no answer to that question. {explain_answer(waiting[0].choices)}")
        await questions.answer(waiting[0], answer, who=row.who)
        return Reply(f"Answered: {show_title(answer, self._mask)}")

    # The computer

    async def _status(self) -> Reply:
        rows = await self._sessions.search(limit=50)
        lines = await asyncio.to_thread(self._list_status, rows)
        return Reply("\n".join([*lines, *await self._list_questions()]))

    async def _list_questions(self) -> list[str]:
        """How many workflows ask, and how many network requests wait."""
        requests = len(await asyncio.to_thread(list_network_requests, self._services.timeline))
        lines = [_count(requests, "network request")] if requests else []
        questions = self._services.owner_questions.service
        try:
            asked = 0 if questions is None else len(await questions.list_waiting())
        except FreeholdError as error:
            return [*lines, f"Whether a workflow asks something is not known: {error.message}"]
        return [*lines, _count(asked, "question of workflows", "questions of workflows")] if asked else lines

    def _list_status(self, rows: list[SessionRow]) -> list[str]:
        lines = []
        if self._services.models.stopped is not None:
            lines.append("The kill switch is on: no agent works.")
        for state, words in (("working", "Works"), ("queued", "Waits to start"), ("needs_you", "Needs you")):
            lines += [f"{words}: {show_title(one.title, self._mask)}" for one in rows if one.status == state][:10]
        pending = len(self._sessions.dependencies.approvals.store.list_pending())
        return [*lines, _count(pending, "request")]

    async def _take_back(self, row: ChannelRow, received: ReceivedMessage, rest: str) -> Reply:
        """First shows what it would do. `/undo yes` does that, and nothing else than what was shown."""
        keeper = self._services.keeper
        if rest.lower() not in ("yes", "y"):
            plan = await keeper.call(PlanUndo(), timeout=RESTORE_TIMEOUT)
            self._undo[row.name] = _PlannedUndo(plan, self._clock() + CONFIRM_TIME)
            shown = await asyncio.to_thread(self._show, plan)
            return Reply(f"{shown}\nSend /undo yes within five minutes to do this.")
        planned = self._undo.pop(row.name, None)
        if received.begun:
            return Reply("Freehold was restarted while it took back a change. Look at the page: History.")
        if planned is None or planned.until < self._clock():
            return Reply("There is nothing to confirm any more. Send /undo to see what it would do.")
        plan = await keeper.call(PlanUndo(), timeout=RESTORE_TIMEOUT)
        if plan != planned.plan:
            self._undo[row.name] = _PlannedUndo(plan, self._clock() + CONFIRM_TIME)
            shown = await asyncio.to_thread(self._show, plan)
            return Reply(f"The files have changed meanwhile. Now it would do this:\n{shown}\nSend /undo yes.")
        author = RequestAuthor(by="owner", via="channel")
        report = await keeper.call(UndoChanges(who=author), timeout=RESTORE_TIMEOUT)
        return Reply(f"Done: {report.summary} You can undo this too.")

    def _show(self, plan: RestorePreview) -> str:
        steps = [f"{one.word} {make_visible(one.path, lines=False)}" for one in plan.steps[:MAX_SHOWN_STEPS]]
        more = [f"and {plan.total - len(steps)} more"] if plan.total > len(steps) else []
        return f"{plan.summary}\n{quote(show_words(chr(10).join([*steps, *more]), self._mask))}"


def _count(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one} waits for you." if count == 1 else f"{count} {many or one + 's'} wait for you."
