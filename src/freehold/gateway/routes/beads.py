"""Work items: `/v1/slots/beads`."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request
from pydantic import BaseModel, Field

from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, MAX_NUMBER, RecordBody, RequestBody, UrlFlag, UrlId
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post
from freehold.history.calls import ListEntries
from freehold.slots import SlotCaller
from freehold.slots.beads.assignment import describe_work
from freehold.slots.beads.contract import (
    MAX_LABEL,
    MAX_LABELS,
    MAX_NEEDS,
    MAX_PAGE,
    MAX_PRIORITY,
    MAX_RECORDS,
    MAX_TEXT,
    MAX_TITLE,
    AddNeed,
    Bead,
    BeadKind,
    BeadStatus,
    BeadWrite,
    ClaimBead,
    CloseBead,
    CommentBead,
    CreateBead,
    ExportBeads,
    GetBead,
    ImportBeads,
    ListBeads,
    ReleaseBead,
    RemoveNeed,
    ReopenBead,
    UpdateBead,
)
from freehold.slots.contract import MAX_KEY
from freehold.slots.errors import SlotError

MAX_IMPORT = 32 * 1024 * 1024
MAX_ENTRIES = 1000
"""How far back history is looked through for the changes of an item."""
MAX_ACTOR = 200
BeadId = Annotated[str, Field(min_length=1, max_length=64)]
BeadLabel = Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]
Key = Annotated[
    str | None,
    Field(min_length=1, max_length=MAX_KEY, description="The same request with the same key has its effect once."),
]
Priority = Annotated[int, Field(ge=0, le=MAX_PRIORITY, description="0 is first.")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS]


async def read_caller(
    request: Request,
    freehold_actor: Annotated[
        str | None,
        Header(
            max_length=MAX_ACTOR,
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*([:/][A-Za-z0-9][A-Za-z0-9._-]*)*$",
            description="Who acts by this token, such as a session of another Freehold. It is recorded after the name "
            "of the token, and holds items apart from others who act by it.",
        ),
    ] = None,
) -> SlotCaller:
    """Who calls. Whatever a token says about who acts, its own name stands first."""
    principal = principal_of(request.scope)
    if freehold_actor is None:
        return SlotCaller(principal.who)
    if principal.token is None:
        raise SlotError("beads", "denied", "Only an API token can name who acts by it")
    return SlotCaller(f"{principal.who}/{freehold_actor}")


BeadCaller = Annotated[SlotCaller, Depends(read_caller)]


class BeadCallerBody(BaseModel):
    """Who calls: the owner, or a token, and who acts by it."""

    name: str


class BeadBody(BaseModel):
    """A work item. It is in progress exactly while somebody holds it; blocked while it waits for another item."""

    id: str
    title: str
    description: str
    kind: BeadKind
    priority: int
    status: BeadStatus
    holder: str | None
    parent: str | None
    labels: list[str]
    needs: list[str]
    related: list[str]
    sessions: list[str]
    blocked: bool
    created: datetime
    created_by: str
    updated: datetime
    closed: datetime | None
    close_reason: str | None
    evidence: str | None
    version: int


class BeadCommentBody(BaseModel):
    number: int
    at: datetime
    author: str
    text: str


class BeadChangeBody(BaseModel):
    """One change in the history of an item."""

    version: int
    at: datetime
    who: str
    action: str
    fields: dict[str, Any]


class BeadDetailsBody(BaseModel):
    """An item with everything about it. `blocks` are the items that need it."""

    bead: BeadBody
    children: list[str]
    blocks: list[str]
    comments: list[BeadCommentBody]
    history: list[BeadChangeBody]


class BeadWorkBody(BaseModel):
    """A state of the files that history recorded while a session worked on an item: `entry` is its number there."""

    entry: int
    at: datetime
    session: str
    added: int
    changed: int
    removed: int


class BeadPageBody(BaseModel):
    """Items by priority and age, those that are closed the last one first. Send `cursor` to get the next page; null on the last one."""

    beads: list[BeadBody]
    cursor: str | None


class BeadRecordsBody(BaseModel):
    """Items as records of beads' own JSON lines."""

    records: list[dict[str, Any]]
    cursor: str | None


class BeadImportBody(BaseModel):
    created: int
    replaced: int
    kept: int = Field(description="Items that are as new here as their record, or newer.")


class BeadSessionBody(BaseModel):
    """The session that now works on an item."""

    bead: BeadBody
    session: str
    turn: int


class CreateBeadBody(RequestBody):
    title: str = Field(min_length=1, max_length=MAX_TITLE)
    description: str = Field(default="", max_length=MAX_TEXT)
    kind: BeadKind = "task"
    priority: Priority = 2
    labels: list[BeadLabel] = Field(default=[], max_length=MAX_LABELS)
    parent: BeadId | None = None
    needs: list[BeadId] = Field(default=[], max_length=MAX_NEEDS)
    key: Key = None


class UpdateBeadBody(RequestBody):
    """Only the fields that are given are set."""

    title: str | None = Field(default=None, min_length=1, max_length=MAX_TITLE)
    description: str | None = Field(default=None, max_length=MAX_TEXT)
    kind: BeadKind | None = None
    priority: Priority | None = None
    labels: list[BeadLabel] | None = Field(default=None, max_length=MAX_LABELS)
    parent: str | None = Field(default=None, max_length=64, description="Empty: it has no parent any more.")
    version: int | None = Field(default=None, ge=1, le=MAX_NUMBER, description="Refused if it has another version.")
    key: Key = None


class ChangeBeadBody(RequestBody):
    key: Key = None


class ClaimBeadBody(ChangeBeadBody):
    session: str | None = Field(
        default=None,
        max_length=64,
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
        description="The owner can set this session on the item: it becomes the holder.",
    )


class CloseBeadBody(RequestBody):
    reason: str = Field(min_length=1, max_length=MAX_TEXT)
    evidence: str | None = Field(
        default=None, max_length=MAX_TEXT, description="What shows that it is done; needed where a session has worked."
    )
    key: Key = None


class NeedBody(RequestBody):
    needs: BeadId = Field(description="The item that must be closed first.")
    key: Key = None


class CommentBeadBody(RequestBody):
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    key: Key = None


class ImportBeadsBody(RequestBody):
    records: list[RecordBody] = Field(max_length=MAX_RECORDS)
    key: Key = None


class WorkOnBeadBody(RequestBody):
    agent: str | None = Field(default=None, max_length=100, description="Default: the default agent.")
    model: str | None = Field(default=None, max_length=200)


class BeadRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._slot = context.services.slots.beads
        self._sessions = context.sessions
        self._keeper = context.services.keeper

    @get("/v1/slots/beads/caller", scope="beads")
    async def get_bead_caller(self, caller: BeadCaller) -> BeadCallerBody:
        """The name under which the changes of this request would be recorded."""
        return BeadCallerBody(name=caller.name)

    @get("/v1/slots/beads/items", scope="beads")
    async def list_beads(
        self,
        caller: BeadCaller,
        status: BeadStatus | None = None,
        ready: UrlFlag = False,
        kind: BeadKind | None = None,
        label: Annotated[str | None, Query(max_length=MAX_LABEL)] = None,
        holder: Annotated[str | None, Query(max_length=200)] = None,
        parent: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
        text: Annotated[str | None, Query(max_length=200)] = None,
        limit: Limit = 50,
        cursor: Annotated[str | None, Query(max_length=400)] = None,
    ) -> BeadPageBody:
        """Items that match everything that is given. `ready`: open and not blocked. With `status` closed, the last closed
        is first."""
        wanted = ListBeads(status, ready, kind, label, holder, parent, text, limit, cursor)
        page = await self._slot.call(wanted, caller)
        return BeadPageBody(beads=[bead_body(bead) for bead in page.beads], cursor=page.cursor)

    @post("/v1/slots/beads/items", status_code=201, scope="beads")
    async def create_bead(self, body: CreateBeadBody, caller: BeadCaller) -> BeadBody:
        wanted = CreateBead(
            body.title,
            body.description,
            body.kind,
            body.priority,
            tuple(body.labels),
            body.parent,
            tuple(body.needs),
            body.key,
        )
        return await self._change(wanted, caller)

    @get("/v1/slots/beads/items/{bead}", scope="beads")
    async def get_bead(self, bead: UrlId, caller: BeadCaller) -> BeadDetailsBody:
        """One item with its comments and its history."""
        found = await self._slot.call(GetBead(bead), caller)
        return BeadDetailsBody(
            bead=bead_body(found.bead),
            children=list(found.children),
            blocks=list(found.blocks),
            comments=[
                BeadCommentBody(number=one.number, at=to_moment(one.at), author=one.author, text=one.text)
                for one in found.comments
            ],
            history=[
                BeadChangeBody(
                    version=one.version, at=to_moment(one.at), who=one.who, action=one.action, fields=dict(one.fields)
                )
                for one in found.history
            ],
        )

    @get("/v1/slots/beads/items/{bead}/changes", scope="beads")
    async def list_bead_changes(self, bead: UrlId, caller: BeadCaller) -> list[BeadWorkBody]:
        """What the sessions that worked on an item changed in the files, the newest first."""
        found = (await self._slot.call(GetBead(bead), caller)).bead
        if not found.sessions:
            return []
        entries = (await self._keeper.call(ListEntries(limit=MAX_ENTRIES))).entries
        return [
            BeadWorkBody(
                entry=one.id,
                at=to_moment(one.at),
                session=one.who.session,
                added=one.added,
                changed=one.changed,
                removed=one.removed,
            )
            for one in entries
            if one.who.by == "agent" and one.who.session in found.sessions
        ]

    @patch("/v1/slots/beads/items/{bead}", scope="beads")
    async def update_bead(self, bead: UrlId, body: UpdateBeadBody, caller: BeadCaller) -> BeadBody:
        wanted = UpdateBead(
            bead,
            body.title,
            body.description,
            body.kind,
            body.priority,
            None if body.labels is None else tuple(body.labels),
            body.parent,
            body.version,
            body.key,
        )
        return await self._change(wanted, caller)

    @post("/v1/slots/beads/items/{bead}/claim", scope="beads")
    async def claim_bead(self, bead: UrlId, body: ClaimBeadBody, caller: BeadCaller) -> BeadBody:
        """Become the holder of an item. Answers 409 with the code beads.claimed when another one holds it."""
        return await self._change(ClaimBead(bead, body.session, body.key), caller)

    @post("/v1/slots/beads/items/{bead}/release", scope="beads")
    async def release_bead(self, bead: UrlId, body: ChangeBeadBody, caller: BeadCaller) -> BeadBody:
        return await self._change(ReleaseBead(bead, key=body.key), caller)

    @post("/v1/slots/beads/items/{bead}/close", scope="beads")
    async def close_bead(self, bead: UrlId, body: CloseBeadBody, caller: BeadCaller) -> BeadBody:
        return await self._change(CloseBead(bead, body.reason, body.evidence, body.key), caller)

    @post("/v1/slots/beads/items/{bead}/reopen", scope="beads")
    async def reopen_bead(self, bead: UrlId, body: ChangeBeadBody, caller: BeadCaller) -> BeadBody:
        return await self._change(ReopenBead(bead, key=body.key), caller)

    @post("/v1/slots/beads/items/{bead}/needs", scope="beads")
    async def add_bead_need(self, bead: UrlId, body: NeedBody, caller: BeadCaller) -> BeadBody:
        """The item waits until another one is closed. A cycle is refused."""
        return await self._change(AddNeed(bead, body.needs, body.key), caller)

    @delete("/v1/slots/beads/items/{bead}/needs/{needs}", scope="beads")
    async def remove_bead_need(
        self, bead: UrlId, needs: UrlId, caller: BeadCaller, key: Annotated[Key, Query()] = None
    ) -> BeadBody:
        return await self._change(RemoveNeed(bead, needs, key), caller)

    @post("/v1/slots/beads/items/{bead}/comments", status_code=201, scope="beads")
    async def comment_bead(self, bead: UrlId, body: CommentBeadBody, caller: BeadCaller) -> BeadBody:
        return await self._change(CommentBead(bead, body.text, body.key), caller)

    @post("/v1/slots/beads/items/{bead}/work", status_code=201, scope="beads")
    async def work_on_bead(self, bead: UrlId, body: WorkOnBeadBody, request: Request) -> BeadSessionBody:
        """Start a session that works on the item and holds it. Needs the scope prompt as well."""
        principal = principal_of(request.scope)
        principal.require("prompt")
        owner = SlotCaller("owner")
        # As an agent may read it: the privacy filter shows what pseudonyms stand for to the owner only.
        details = await self._slot.call(GetBead(bead), SlotCaller("freehold"))
        if details.bead.status != "open" or details.bead.blocked:
            state = "blocked" if details.bead.blocked else details.bead.status.replace("_", " ")
            raise SlotError("beads", "conflict", f"The item {details.bead.id} is {state}, so nobody can begin it")
        session = await self._sessions.open(body.agent, details.bead.title[:100], body.model, who=principal.who)
        try:
            await self._slot.call(ClaimBead(bead, session=session.id), owner)
        except SlotError:
            await self._sessions.delete(session.id, who=principal.who)
            raise
        prompt = {"text": describe_work(details), "files": [], "images": []}
        try:
            turn, _ = await self._sessions.prompt(session.id, prompt, secrets.token_hex(8), "queue", who=principal.who)
        except FreeholdError:
            await self._slot.call(ReleaseBead(bead), owner)
            await self._sessions.delete(session.id, who=principal.who)
            raise
        claimed = await self._slot.call(GetBead(bead), SlotCaller(principal.who))
        return BeadSessionBody(bead=bead_body(claimed.bead), session=session.id, turn=turn)

    @get("/v1/slots/beads/export", scope="beads")
    async def export_beads(
        self,
        caller: BeadCaller,
        limit: Limit = MAX_RECORDS,
        cursor: Annotated[str | None, Query(max_length=64)] = None,
    ) -> BeadRecordsBody:
        """All items in the order of their ids, as records of beads' own JSON lines."""
        found = await self._slot.call(ExportBeads(limit, cursor), caller)
        return BeadRecordsBody(records=[dict(one) for one in found.records], cursor=found.cursor)

    @post("/v1/slots/beads/import", scope="beads", max_body=MAX_IMPORT)
    async def import_beads(self, body: ImportBeadsBody, caller: BeadCaller) -> BeadImportBody:
        """Store records of beads' own JSON lines: all of them, or none."""
        done = await self._slot.call(ImportBeads(tuple(body.records), body.key), caller)
        return BeadImportBody(created=done.created, replaced=done.replaced, kept=done.kept)

    async def _change(self, wanted: BeadWrite, caller: BeadCaller) -> BeadBody:
        return bead_body(await self._slot.call(wanted, caller))


def bead_body(bead: Bead) -> BeadBody:
    times: Mapping[str, float | None] = {"created": bead.created, "updated": bead.updated, "closed": bead.closed}
    moments = {name: None if at is None else to_moment(at) for name, at in times.items()}
    return BeadBody.model_validate({**vars(bead), **moments})
