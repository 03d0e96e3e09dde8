"""Conversations with agents: open, prompt, watch, steer, take back."""

import asyncio
import base64
import binascii
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Path, Query, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator

from freehold.agents.exporting import as_json, as_markdown
from freehold.agents.room import Room
from freehold.agents.store import SessionRow
from freehold.errors import FreeholdError
from freehold.gateway.guard import principal_of
from freehold.gateway.needs import needs

MAX_PROMPT = 16 * 1024 * 1024
MAX_EXPORTED = 100_000

Id = Annotated[str, Path(max_length=64)]


class SessionView(BaseModel):
    """One conversation with one agent. `seq` is the number of its last event.

    `unread`: it says, asks or has ended something after the last number that was told to be seen.
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


class SessionPage(BaseModel):
    """Sessions, the last changed first; give `next` as `cursor` for more."""

    sessions: list[SessionView]
    next: str | None


class SessionEvent(BaseModel):
    """Something that happened in a session; see the guide for the kinds and what each holds."""

    seq: int
    at: str
    turn: int | None
    kind: str
    data: dict[str, Any]


class Streaming(BaseModel):
    """Words that are still coming: a message or thought that is no event yet. What follows comes as deltas."""

    kind: Literal["message", "thought"]
    id: str
    at: int = Field(description="Where in the message this begins, in characters.")
    text: str


class SessionEvents(BaseModel):
    """Events, oldest first; `next` is the `after` that gives more, null at the end."""

    events: list[SessionEvent]
    next: int | None
    streaming: list[Streaming] = Field(description="What is being said now; only beside the newest events.")


class PromptTaken(BaseModel):
    """The turn that a prompt became, and whether it waits for the one before."""

    turn: int
    queued: bool


class SessionDeleted(BaseModel):
    """A session that is gone."""

    id: str


class Rewound(BaseModel):
    """What was, or with `dry_run` would be, taken back. `files` is history's own account."""

    turn: int
    what: Literal["files", "chat", "both"]
    dry_run: bool
    files: dict[str, Any] | None
    events: int


class OpenSession(BaseModel):
    model_config = ConfigDict(extra="forbid")
    agent: str | None = Field(default=None, max_length=100, description="By default the manifest's agents.default.")
    title: str | None = Field(default=None, min_length=1, max_length=200)
    model: str | None = Field(
        default=None, max_length=200, description="A name under [models], or what its provider calls a model."
    )


class ChangeSession(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str | None = Field(default=None, min_length=1, max_length=200)
    archived: bool | None = None


class SeenSession(BaseModel):
    model_config = ConfigDict(extra="forbid")
    seq: int = Field(ge=0, description="The number of the last event that the owner has had before their eyes.")


class Image(BaseModel):
    model_config = ConfigDict(extra="forbid")
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


class SendPrompt(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: str = Field(min_length=1, max_length=1_000_000)
    files: list[Annotated[str, Field(max_length=4096)]] = Field(default=[], max_length=100)
    images: list[Image] = Field(default=[], max_length=8)
    key: str = Field(min_length=1, max_length=200, description="Chosen by you: the same key never makes a second turn.")
    when: Literal["now", "queue", "steer"] = Field(
        default="now", description="While it works: `steer` stops the turn under way, the others wait for it."
    )


class SetOption(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str = Field(max_length=100)
    value: Annotated[str, Field(max_length=200)] | bool


class Rewind(BaseModel):
    model_config = ConfigDict(extra="forbid")
    turn: int = Field(ge=1)
    what: Literal["files", "chat", "both"]
    dry_run: bool = False


def _view(row: SessionRow) -> SessionView:
    return SessionView.model_validate(row.as_json())


def add_sessions(app: FastAPI, room: Room) -> None:
    store = room.ground.store

    def who(request: Request) -> str:
        return principal_of(request.scope).who

    @app.get("/v1/sessions")
    @needs("read")
    async def list_sessions(
        query: Annotated[str, Query(max_length=200)] = "",
        archived: bool = False,
        cursor: Annotated[str, Query(max_length=100)] = "",
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
    ) -> SessionPage:
        """Those with `query` in their title or words."""
        await room.ready.wait()
        rows = await asyncio.to_thread(store.search, query=query, archived=archived, cursor=cursor, limit=limit + 1)
        more = rows[limit - 1] if len(rows) > limit else None
        return SessionPage(
            sessions=[_view(row) for row in rows[:limit]], next=None if more is None else f"{more.updated} {more.id}"
        )

    @app.post("/v1/sessions")
    @needs("prompt")
    async def open_session(body: OpenSession, request: Request) -> SessionView:
        """A new conversation. Its agent starts with the first prompt."""
        return _view(await room.open(body.agent, body.title, body.model, who=who(request)))

    @app.get("/v1/sessions/{session}")
    @needs("read")
    async def get_session(session: Id) -> SessionView:
        return _view(await room.get(session))

    @app.patch("/v1/sessions/{session}")
    @needs("prompt")
    async def change_session(session: Id, body: ChangeSession, request: Request) -> SessionView:
        """Rename it, put it away, or take it out again."""
        return _view(await room.change(session, title=body.title, archived=body.archived, who=who(request)))

    @app.post("/v1/sessions/{session}/seen")
    @needs("prompt")
    async def see_session(session: Id, body: SeenSession) -> SessionView:
        """The owner has read up to an event. Idempotent; a smaller number than before changes nothing."""
        return _view(await room.see(session, body.seq))

    @app.delete("/v1/sessions/{session}")
    @needs("prompt")
    async def delete_session(session: Id, request: Request) -> SessionDeleted:
        """End its agent and forget what was said."""
        await room.delete(session, who=who(request))
        return SessionDeleted(id=session)

    @app.get("/v1/sessions/{session}/events")
    @needs("read")
    async def session_events(
        session: Id,
        after: Annotated[int | None, Query(ge=0)] = None,
        before: Annotated[int | None, Query(ge=1)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    ) -> SessionEvents:
        """Those after a number; without one, the last `limit` (before `before`)."""
        await room.get(session)
        last = after is None
        events = await asyncio.to_thread(store.events, session, after=after or 0, before=before, limit=limit, last=last)
        more = events[-1].seq if not last and len(events) == limit else None
        # Looked at after the events: what ends between the two is in neither, and comes on the topic.
        streaming = room.speaking(session) if more is None and before is None else []
        return SessionEvents(
            events=[SessionEvent.model_validate(event.as_json()) for event in events],
            next=more,
            streaming=[Streaming.model_validate(one) for one in streaming],
        )

    @app.get("/v1/sessions/{session}/turns/{turn}/images/{place}", response_class=Response)
    @needs("read")
    async def prompt_image(
        session: Id, turn: Annotated[int, Path(ge=1)], place: Annotated[int, Path(ge=0, le=100)]
    ) -> Response:
        """An image that came with a prompt, as it was sent."""
        mime, data = await asyncio.to_thread(store.image, session, turn, place)
        return Response(data, media_type=mime)

    @app.post("/v1/sessions/{session}/prompt")
    @needs("prompt", most_body=MAX_PROMPT)
    async def send_prompt(session: Id, body: SendPrompt, request: Request) -> PromptTaken:
        """Kept before it is sent. What comes of it is on the topic `session:ID` and under `/events`."""
        prompt = body.model_dump(include={"text", "files", "images"})
        turn, queued = await room.prompt(session, prompt, body.key, body.when, who=who(request))
        return PromptTaken(turn=turn, queued=queued)

    @app.post("/v1/sessions/{session}/cancel")
    @needs("prompt")
    async def cancel_session(session: Id) -> SessionView:
        """Stop the turn under way and forget what waits behind it."""
        await room.cancel(session)
        return _view(await room.get(session))

    @app.post("/v1/sessions/{session}/options")
    @needs("prompt")
    async def set_option(session: Id, body: SetOption) -> SessionView:
        """Set a mode, model or other option that its agent offers (event `options`)."""
        return _view(await room.choose(session, body.id, body.value))

    @app.post("/v1/sessions/{session}/fork")
    @needs("prompt")
    async def fork_session(session: Id, request: Request) -> SessionView:
        """A second session with the same past."""
        return _view(await room.fork(session, who=who(request)))

    @app.post("/v1/sessions/{session}/rewind")
    @needs("prompt")
    async def rewind_session(session: Id, body: Rewind, request: Request) -> Rewound:
        """Back to before a turn. Taking back files needs the scope `history`, too."""
        token = principal_of(request.scope).token
        if body.what != "chat" and not body.dry_run and token is not None and "history" not in token.scopes:
            raise FreeholdError("session.permission", "This token may not take back files", hint="It lacks: history")
        await room.get(session)
        outcome = await room.rewind(session, body.turn, body.what, dry_run=body.dry_run, who=who(request))
        return Rewound.model_validate(outcome)

    @app.get("/v1/sessions/{session}/export", response_class=Response)
    @needs("read")
    async def export_session(session: Id, format: Literal["markdown", "json"] = "markdown") -> Response:
        """The whole conversation as Markdown or JSON."""
        row = await room.get(session)
        events = await asyncio.to_thread(store.events, session, limit=MAX_EXPORTED)
        disposition = {"content-disposition": f'attachment; filename="session-{session}.{_ENDINGS[format]}"'}
        if format == "json":
            from fastapi.responses import JSONResponse

            return JSONResponse(as_json(row, events), headers=disposition)
        return PlainTextResponse(as_markdown(row, events), headers=disposition, media_type="text/markdown")


_ENDINGS = {"markdown": "md", "json": "json"}
