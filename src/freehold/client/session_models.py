"""Sessions, their events and their approvals, as frozen objects."""

from typing import Any, Literal

from freehold.client.models import ApiModel
from freehold.strict_json import IsoTime

ApprovalAnswer = Literal["once", "conversation", "always", "reject"]
When = Literal["now", "queue", "steer"]


class QueuePlace(ApiModel):
    """A place in the queue of agents that wait to start, from 1. `message` says all of it in a sentence."""

    place: int
    of: int
    running: int
    reason: str
    message: str


class SessionInfo(ApiModel):
    """One session: a conversation with one agent. `seq` is the number of its last event.

    `waiting` is its place in the queue, while its agent may not start yet. `parent` is the session of which it is a fork.
    """

    id: str
    title: str
    agent: str
    model: str | None = None
    status: Literal["idle", "working", "needs_you", "failed", "queued"]
    created: IsoTime
    updated: IsoTime
    archived: bool
    cost: float | None = None
    seq: int = 0
    parent: str | None = None
    unread: bool = False
    mode: str | None = None
    asks: bool | None = None
    folder: str = ""
    waiting: QueuePlace | None = None


class SessionPage(ApiModel):
    """Sessions, the most recently changed first. Pass `next` as `cursor` to get the next page."""

    sessions: tuple[SessionInfo, ...]
    next: str | None = None


class SessionUpdate(ApiModel):
    """An event of a session, or a part of one.

    With a `seq` it is a stored event: `kind` is turn.started, message, thought, tool, plan, approval, turn.ended and
    so on. Without a `seq` it is a part of a message or thought that is still being written: `data` has `id` and `text`.
    """

    seq: int | None = None
    turn: int | None = None
    at: IsoTime | None = None
    kind: str
    data: dict[str, Any]

    @property
    def is_delta(self) -> bool:
        return self.seq is None


class StreamingText(ApiModel):
    """A message or thought that is still streaming. `at` is the position of this text in it, in characters."""

    kind: Literal["message", "thought"]
    id: str
    at: int
    text: str


class SessionEvents(ApiModel):
    """Events, the oldest first. `streaming` comes with the newest only."""

    events: tuple[SessionUpdate, ...]
    next: int | None = None
    streaming: tuple[StreamingText, ...] = ()


class AcceptedPrompt(ApiModel):
    """The turn of a prompt, and whether it waits for the turn before it."""

    turn: int
    queued: bool


class AgentAnswer(ApiModel):
    """An answer that the agent itself offers. `sent_for` is the answer for which Freehold sends it; None when it is not used."""

    name: str
    kind: str
    sent_for: Literal["allow", "reject"] | None


class Approval(ApiModel):
    """A permission request of an agent. `parts` has everything that it carries, part by part.

    `complete` is false when some of it is not shown. `names_nothing`: it names neither a command nor a path. `details`
    has the command and its folder; with `kind` "question", the question. `lasting_effect` says what an answer for longer
    than once allows. `options` are the answers that may be given, `agent_options` what the agent itself offers.
    """

    id: str
    session: str
    turn: int | None = None
    at: IsoTime | None = None
    tool: str | None = None
    state: str
    answer: ApprovalAnswer | None = None
    note: str | None = None
    kind: str
    title: str
    details: dict[str, Any]
    digest: str = ""
    parts: tuple[dict[str, Any], ...] = ()
    complete: bool = True
    hidden_bytes: int = 0
    names_nothing: bool = False
    runs_by_itself: bool = False
    asked_again: bool = False
    lasting_effect: str | None = None
    options: tuple[ApprovalAnswer, ...] = ()
    agent_options: tuple[AgentAnswer, ...] = ()


class AgentInfo(ApiModel):
    """An agent. `problem` says why it cannot start. For `asks` see `SessionInfo`.

    `may_act_unasked`: your manifest allows that. `models` are the providers that it may use, `model` the one that it uses
    when a session names none.
    """

    name: str
    title: str
    installed: bool
    version: str | None = None
    asks: bool | None = None
    mode: str | None = None
    default: bool
    problem: str | None = None
    may_act_unasked: bool = False
    model: str | None = None
    models: tuple[str, ...] = ()


class RegistryAgentInfo(ApiModel):
    """An agent of an ACP registry. `package` is empty when it cannot be added; `why` says why."""

    id: str
    name: str
    version: str
    license: str
    description: str
    package: str
    program: str
    arguments: tuple[str, ...]
    env: dict[str, str]
    why: str


class OfferedChoice(ApiModel):
    """A value that can be chosen for an option of the agent."""

    id: str
    name: str = ""
    description: str = ""


class OfferedCommand(ApiModel):
    """A command of the agent, which follows a slash at the beginning of a prompt."""

    name: str
    description: str = ""


class OfferedOption(ApiModel):
    """An option of the agent. Without choices it is on or off."""

    id: str
    name: str
    category: str
    type: str
    value: str | bool | None
    choices: tuple[OfferedChoice, ...]


class OfferedSettings(ApiModel):
    """The modes and models of the agent, and the ones in use. Modes in which it would act without asking are left out.

    `config` are its other options.
    """

    mode: str | None = None
    modes: tuple[OfferedChoice, ...] = ()
    model: str | None = None
    models: tuple[OfferedChoice, ...] = ()
    asks: bool = True
    config: tuple[OfferedOption, ...] = ()


class AgentOffer(ApiModel):
    """What an agent offered last. When `own` is false, it offered this in another session."""

    options: OfferedSettings | None = None
    commands: tuple[OfferedCommand, ...] = ()
    own: bool = True
    chosen_model: str | None = None


class TourInfo(ApiModel):
    """The session of a tour, and the prompt that begins it."""

    session: str
    prompt: str


class RewindInfo(ApiModel):
    """What a rewind did, or would do. `files` is what became of the files; `events` counts those taken out of the chat."""

    turn: int
    what: Literal["files", "chat", "both"]
    dry_run: bool
    files: dict[str, Any] | None
    events: int
