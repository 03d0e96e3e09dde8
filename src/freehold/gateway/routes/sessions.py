"""Sessions: open, prompt, follow, steer, fork, rewind and export."""

import asyncio
import base64
import binascii
import json
from functools import partial
from typing import Annotated, Any, Literal, Self

from fastapi import Path, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field, field_validator, model_validator

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.export import export_json, export_markdown, gather_pieces
from freehold.agents.sessions.owner_command import runs_command
from freehold.agents.sessions.rows import SessionEventRow, SessionRow
from freehold.agents.sessions.turn_store import OWN_KEYS
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.conversation_words import may_read_words
from freehold.gateway.history_notes import make_author
from freehold.gateway.inputs import (
    DIGITS,
    Natural,
    PathText,
    Positive,
    RequestBody,
    RestoreId,
    UrlFlag,
    UrlId,
    UrlNatural,
    UrlPositive,
)
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post

MAX_PROMPT = 16 * 1024 * 1024
MAX_TEXT = 1_000_000
"""Characters of one message."""
JSON = "application/json"


class WaitingPlaceBody(BaseModel):
    """A place in the queue of agents that wait to start, from 1. `message` says all of it in a sentence.

    `reason`: the computer's `memory` holds no more, or the `count` of agents is the most, or agents start one after
    another (`starts`). `running` counts the agents that work now.
    """

    place: int
    of: int
    running: int
    reason: Literal["memory", "count", "starts"]
    message: str


class SessionInfoBody(BaseModel):
    """One conversation with one agent. `seq` is the number of its last event.

    `unread`: there is a message, a question or the end of a turn after the last event that was marked as seen.
    `asks`: whether its agent is known to ask before it acts, in its `mode`; null before the agent's first start.
    `folder`: where its agent works, below the workspace; empty for the workspace itself.
    `waiting`: its place in the queue, while its agent may not start yet.
    """

    id: str
    title: str
    agent: str
    model: str | None
    status: Literal["idle", "working", "needs_you", "failed", "queued"]
    created: str
    updated: str
    archived: bool
    cost: float | None
    seq: int
    parent: str | None
    unread: bool
    mode: str | None
    asks: bool | None
    folder: str
    waiting: WaitingPlaceBody | None


class SessionPageBody(BaseModel):
    """Sessions, last changed first. Send `next` as `cursor` for more."""

    sessions: list[SessionInfoBody]
    next: str | None


class SessionEventBody(BaseModel):
    """One session event. The guide describes the kinds and their data."""

    seq: int
    at: str
    turn: int | None
    kind: str
    data: dict[str, Any]


class StreamingTextBody(BaseModel):
    """A message or thought that is still streaming and not an event yet. The rest follows as deltas."""

    kind: Literal["message", "thought"]
    id: str
    at: int = Field(description="The position of this text in the message, in characters.")
    text: str


class SessionEventsBody(BaseModel):
    """Events, oldest first. Send `next` as `after` for more; it is null at the end."""

    events: list[SessionEventBody]
    next: int | None
    streaming: list[StreamingTextBody] = Field(description="Text that is streaming now; only with the newest events.")


class PromptAcceptedBody(BaseModel):
    """The turn of the prompt, and whether it waits: for the turn before, or until its agent may start."""

    turn: int
    queued: bool


class SessionDeletedBody(BaseModel):
    """The session that was deleted."""

    id: str


class RewindResultBody(BaseModel):
    """What was rewound, or with `dry_run` would be. `files` is the report of history."""

    turn: int
    what: Literal["files", "chat", "both"]
    dry_run: bool
    files: dict[str, Any] | None
    events: int


class OpenSessionBody(RequestBody):
    agent: str | None = Field(default=None, max_length=100, description="Default: agents.default of the manifest.")
    title: str | None = Field(default=None, min_length=1, max_length=200)
    model: str | None = Field(
        default=None,
        max_length=200,
        description="A name under [models], `NAME/MODEL`, or a model of the agent's provider.",
    )
    folder: PathText = Field(
        default="", description="Where the agent works: a folder of the workspace, such as a git worktree."
    )


class ChangeSessionBody(RequestBody):
    title: str | None = Field(default=None, min_length=1, max_length=200)
    archived: bool | None = None
    agent: str | None = Field(default=None, max_length=100, description="Another agent, before the first prompt.")
    model: str | None = Field(
        default=None,
        max_length=200,
        description="From the next prompt on: a name under [models], `NAME/MODEL`, or a model of the agent's provider. "
        "Empty for the default.",
    )


class MarkSessionSeenBody(RequestBody):
    seq: Natural = Field(description="The number of the last event that the owner has seen.")


class PromptImageBody(RequestBody):
    mime: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: str = Field(max_length=8 * 1024 * 1024, description="Base64.")

    @field_validator("data")
    @classmethod
    def _is_base64(cls, value: str) -> str:
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error:
            raise ValueError("not base64") from None
        return value


class SendPromptBody(RequestBody):
    text: str = Field(json_schema_extra={"maxLength": MAX_TEXT}, description="May be empty beside an image.")
    files: list[PathText] = Field(default=[], max_length=100)
    images: list[PromptImageBody] = Field(default=[], max_length=8)
    key: str = Field(
        min_length=1,
        max_length=200,
        description="Chosen by the client. A second prompt with the same key makes no second turn. It does not begin "
        "with `approval:`, `channel:`, `routine:` or `workflow:`.",
    )
    when: Literal["now", "queue", "steer"] = Field(
        default="now", description="While a turn runs: `steer` stops it, the others wait for its end."
    )

    @field_validator("text")
    @classmethod
    def _has_fitting_length(cls, value: str) -> str:
        if len(value) > MAX_TEXT:
            raise FreeholdError(
                "prompt.too-long",
                f"The message has {len(value):,} characters; at most {MAX_TEXT:,} can be sent",
                hint="Save the text as a file in the workspace, and name the file in the message",
            )
        return value

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if self.key.startswith(OWN_KEYS):
            raise FreeholdError(
                "request.invalid",
                "The request is not valid: key: it begins as those of Freehold do",
                hint="Use a new UUID as the key of each prompt",
            )
        if not self.text and not self.images:
            raise FreeholdError("request.invalid", "The request is not valid: text: a message needs a text or an image")
        return self


class SetOptionBody(RequestBody):
    id: str = Field(max_length=100)
    value: Annotated[str, Field(max_length=200)] | bool


class RewindSessionBody(RequestBody):
    turn: Positive
    what: Literal["files", "chat", "both"]
    dry_run: bool = False
    restore_id: RestoreId | None = None


def _to_body(row: SessionRow) -> SessionInfoBody:
    return SessionInfoBody.model_validate(row.as_json())


def _show(row: SessionRow, request: Request) -> SessionInfoBody:
    """The title is made of the first prompt."""
    shown = _to_body(row)
    return shown if may_read_words(request) else shown.model_copy(update={"title": ""})


class SessionRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._sessions = context.sessions
        self._store = context.sessions.dependencies.store

    @get("/v1/sessions", scope="read")
    async def list_sessions(
        self,
        request: Request,
        query: Annotated[str, Query(max_length=200)] = "",
        archived: UrlFlag = False,
        unused: UrlFlag = True,
        cursor: Annotated[str, Query(max_length=100)] = "",
        limit: Annotated[int, Query(ge=1, le=200), DIGITS] = 50,
    ) -> SessionPageBody:
        """Sessions with `query` in their title or messages. A query needs the scope `prompt`.

        With `unused=false` those that have neither a prompt nor a name are left out.
        """
        if query:
            principal_of(request.scope).require("prompt")
        rows = await self._sessions.search(
            query=query, archived=archived, unused=unused, cursor=cursor, limit=limit + 1
        )
        more = rows[limit - 1] if len(rows) > limit else None
        return SessionPageBody(
            sessions=[_show(row, request) for row in rows[:limit]],
            next=None if more is None else f"{more.updated} {more.id}",
        )

    @post("/v1/sessions", scope="prompt")
    async def open_session(self, body: OpenSessionBody, request: Request) -> SessionInfoBody:
        """Open a session. Its agent starts with the first prompt."""
        who = principal_of(request.scope).who
        return _to_body(await self._sessions.open(body.agent, body.title, body.model, who=who, folder=body.folder))

    @get("/v1/sessions/{session}", scope="read")
    async def get_session(self, session: UrlId, request: Request) -> SessionInfoBody:
        """One session. Without the scope `prompt` its title is empty."""
        return _show(await self._sessions.get(session), request)

    @patch("/v1/sessions/{session}", scope="prompt")
    async def change_session(self, session: UrlId, body: ChangeSessionBody, request: Request) -> SessionInfoBody:
        """Rename, archive or unarchive a session, or choose its model."""
        who = principal_of(request.scope).who
        if body.agent is not None or body.model is not None:
            current = await self._sessions.get(session)
            model = current.model if body.model is None else body.model or None
            await self._sessions.choose_model(session, body.agent, model, who=who)
        return _to_body(await self._sessions.update(session, title=body.title, archived=body.archived, who=who))

    @post("/v1/sessions/{session}/seen", scope="prompt")
    async def mark_session_seen(self, session: UrlId, body: MarkSessionSeenBody) -> SessionInfoBody:
        """Mark events as seen up to a number. Idempotent; a smaller number than before changes nothing."""
        return _to_body(await self._sessions.mark_seen(session, body.seq))

    @delete("/v1/sessions/{session}", scope="prompt")
    async def delete_session(self, session: UrlId, request: Request) -> SessionDeletedBody:
        """Delete a session and its transcript. Its agent ends."""
        await self._sessions.delete(session, who=principal_of(request.scope).who)
        return SessionDeletedBody(id=session)

    @post("/v1/sessions/{session}/discard", scope="prompt")
    async def discard_session(self, session: UrlId, request: Request) -> SessionDeletedBody:
        """Delete a session that has neither a prompt nor a name. Another one is refused with `session.conflict`."""
        await self._sessions.delete(session, unused=True, who=principal_of(request.scope).who)
        return SessionDeletedBody(id=session)

    @get("/v1/sessions/{session}/events", response_model=SessionEventsBody, scope="prompt")
    async def list_session_events(
        self,
        session: UrlId,
        after: UrlNatural | None = None,
        before: UrlPositive | None = None,
        limit: Annotated[int, Query(ge=1, le=1000), DIGITS] = 200,
    ) -> Response:
        """Events after a number; without `after`, the last `limit` events (before `before`).

        There are fewer when they are long. Older ones exist when the first is not event 1.
        """
        await self._sessions.get(session)
        last = after is None
        page = await asyncio.to_thread(
            self._store.read_page, session, after=after or 0, before=before, limit=limit, last=last
        )
        events = page.events
        more = events[-1].seq if not last and (page.is_cut or len(events) == limit) else None
        # Read after the events: a message that ends in between is in neither and is published on the topic.
        streaming = self._sessions.unfinished_messages(session) if more is None and before is None else []
        # In a thread: it can be megabytes, and other requests go on meanwhile.
        return Response(await asyncio.to_thread(_encode_events, events, more, streaming), media_type=JSON)

    @get("/v1/sessions/{session}/turns/{turn}/images/{place}", response_class=Response, scope="prompt")
    async def get_prompt_image(
        self, session: UrlId, turn: UrlPositive, place: Annotated[int, Path(ge=0, le=100_000), DIGITS]
    ) -> Response:
        """An image of a prompt, as it was sent, or a picture of a tool, by the place that its event names."""
        mime, data = await asyncio.to_thread(self._store.turns.get_image, session, turn, place)
        return Response(data, media_type=mime)

    @post("/v1/sessions/{session}/prompt", scope="prompt", max_body=MAX_PROMPT)
    async def send_prompt(self, session: UrlId, body: SendPromptBody, request: Request) -> PromptAcceptedBody:
        """Send a prompt. It is stored first; its events are on the topic `session:ID` and under `/events`.

        A prompt that begins with `!` is a shell command and needs the scope `terminal`.
        """
        if runs_command(body.text):
            principal_of(request.scope).require("terminal")
        prompt = body.model_dump(include={"text", "files", "images"})
        turn, queued = await self._sessions.prompt(
            session, prompt, body.key, body.when, who=principal_of(request.scope).who
        )
        return PromptAcceptedBody(turn=turn, queued=queued)

    @post("/v1/sessions/{session}/cancel", scope="prompt")
    async def cancel_session(self, session: UrlId) -> SessionInfoBody:
        """Stop the running turn and drop the prompts that wait."""
        await self._sessions.cancel(session)
        return _to_body(await self._sessions.get(session))

    @post("/v1/sessions/{session}/options", scope="admin")
    async def set_option(self, session: UrlId, body: SetOptionBody) -> SessionInfoBody:
        """Set a mode, model or other option that the agent offers (event `options`)."""
        return _to_body(await self._sessions.set_option(session, body.id, body.value))

    @post("/v1/sessions/{session}/fork", scope="prompt")
    async def fork_session(self, session: UrlId, request: Request) -> SessionInfoBody:
        """Make a second session with the same transcript."""
        return _to_body(await self._sessions.fork(session, who=principal_of(request.scope).who))

    @post("/v1/sessions/{session}/rewind", scope="prompt")
    async def rewind_session(self, session: UrlId, body: RewindSessionBody, request: Request) -> RewindResultBody:
        """Rewind files, chat or both to before a turn. Files also need the scope `history`."""
        if body.what != "chat" and not body.dry_run:
            principal_of(request.scope).require("history")
        await self._sessions.get(session)
        outcome = await self._sessions.rewind(
            session,
            body.turn,
            body.what,
            dry_run=body.dry_run,
            who=principal_of(request.scope).who,
            author=make_author(request),
            restore_id=body.restore_id,
        )
        return RewindResultBody.model_validate(outcome)

    @get("/v1/sessions/{session}/export", response_class=Response, scope="prompt")
    async def export_session(self, session: UrlId, format: Literal["markdown", "json"] = "markdown") -> Response:
        """The transcript as Markdown or JSON."""
        row = await self._sessions.get(session)
        read = partial(self._store.iterate_events, session, row.seq)
        disposition = {"content-disposition": f'attachment; filename="session-{session}.{_ENDINGS[format]}"'}
        pieces = export_json(row, read) if format == "json" else export_markdown(row, read)
        return StreamingResponse(gather_pieces(pieces), headers=disposition, media_type=_EXPORT_TYPES[format])


def _encode_events(events: list[SessionEventRow], more: int | None, streaming: list[Json]) -> bytes:
    """As `SessionEventsBody`. In ASCII: an agent's text may contain half of a character, which has no UTF-8."""
    found = {"events": [event.as_json() for event in events], "next": more, "streaming": streaming}
    return json.dumps(found, separators=(",", ":")).encode("ascii")


_ENDINGS = {"markdown": "md", "json": "json"}
_EXPORT_TYPES = {"markdown": "text/markdown; charset=utf-8", "json": JSON}
