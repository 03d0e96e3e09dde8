"""Personal data: `/v1/slots/pods`. Documents are served as Solid serves them, as far as it goes: see the guide."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, MAX_NUMBER, RecordBody, RequestBody
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post, put
from freehold.slots import SlotCaller
from freehold.slots.contract import MAX_KEY
from freehold.slots.errors import SlotError
from freehold.slots.pods.checks import changed, check_folder, invalid
from freehold.slots.pods.contract import (
    MAX_DOCUMENT,
    MAX_PAGE,
    MAX_PATH,
    MAX_RECORDS,
    AccessAct,
    AccessMode,
    CreateFolder,
    DeleteDocument,
    DocumentInfo,
    ExportPods,
    FindDocuments,
    GetDocument,
    GrantAccess,
    ImportPods,
    ListAccess,
    ListFolder,
    ListGrants,
    PatchDocument,
    PodGrant,
    PutDocument,
    RevokeAccess,
)

DATA = "/v1/slots/pods/data/"
MAX_IMPORT = 256 * 1024 * 1024
LDP = "http://www.w3.org/ns/ldp#"
MAX_LISTED = 10_000
PodKey = Annotated[str | None, Field(min_length=1, max_length=MAX_KEY)]
PodPath = Annotated[str, Query(max_length=MAX_PATH)]
UrlDocument = Annotated[str, Path(max_length=MAX_PATH)]
PodLimit = Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS]
AgentName = Annotated[str, Field(min_length=1, max_length=100)]
_ANY_BODY = {"requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}


class DocumentBody(BaseModel):
    """A document or a folder, whose path ends with `/`."""

    path: str
    media: str | None
    etag: str | None
    size: int | None
    modified: datetime | None


class PodPageBody(BaseModel):
    """Send `cursor` to get the next page; null on the last one."""

    entries: list[DocumentBody]
    cursor: str | None


class DeletedDocumentBody(BaseModel):
    path: str


class PodGrantBody(BaseModel):
    """An agent may reach everything in a folder. The root is the empty path.

    With a `session` only in this conversation; `once`: for one call of it.
    """

    agent: str
    folder: str
    mode: AccessMode
    granted: datetime
    session: str | None
    once: bool


class PodGrantsBody(BaseModel):
    grants: list[PodGrantBody]


class PodAccessBody(BaseModel):
    number: int
    at: datetime
    who: str
    agent: str | None
    act: AccessAct
    path: str


class PodAccessesBody(BaseModel):
    """Who reached what, the newest first. Send `cursor` as `before` for older ones."""

    entries: list[PodAccessBody]
    cursor: int | None


class PodRecordsBody(BaseModel):
    records: list[dict[str, Any]]
    cursor: str | None


class PodImportBody(BaseModel):
    created: int
    replaced: int
    kept: int


class GrantAccessBody(RequestBody):
    agent: AgentName
    folder: str = Field(max_length=MAX_PATH)
    mode: AccessMode
    key: PodKey = None


class RevokeAccessBody(RequestBody):
    agent: AgentName
    folder: str = Field(max_length=MAX_PATH)
    key: PodKey = None


class ImportPodsBody(RequestBody):
    records: list[RecordBody] = Field(max_length=MAX_RECORDS)
    key: PodKey = None


class PodRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._slot = context.services.slots.get("pods")

    @get("/v1/slots/pods/list", scope="pods")
    async def list_pod(
        self,
        request: Request,
        folder: PodPath = "",
        media: Annotated[str | None, Query(max_length=100, description="Search below the folder by type.")] = None,
        limit: PodLimit = 100,
        cursor: Annotated[str | None, Query(max_length=MAX_PATH + 1)] = None,
    ) -> PodPageBody:
        """What is in a folder; with `media`, all documents of this type below it."""
        wanted = ListFolder(folder, limit, cursor) if media is None else FindDocuments(media, folder, limit, cursor)
        page = await self._slot.call(wanted, _caller(request))
        return PodPageBody(entries=[_body(one) for one in page.entries], cursor=page.cursor)

    @get(
        "/v1/slots/pods/data/{path:path}",
        response_class=Response,
        responses={200: {"content": {"*/*": {}}}, 304: {"description": "You have this version."}},
        scope="pods",
    )
    async def read_document(self, path: UrlDocument, request: Request) -> Response:
        """A document as it was written, or a folder as an LDP container in Turtle or JSON-LD."""
        if path == "" or path.endswith("/"):
            return await self._read_folder(path, request)
        known = request.headers.get("if-none-match")
        found = await self._slot.call(GetDocument(path, known), _caller(request))
        headers = _headers(found.info)
        if found.content is None:
            return Response(status_code=304, headers=headers)
        return Response(found.content, media_type=None, headers={**headers, "content-type": found.info.media or ""})

    async def _read_folder(self, path: UrlDocument, request: Request) -> Response:
        entries: list[DocumentInfo] = []
        cursor = None
        while len(entries) < MAX_LISTED:
            page = await self._slot.call(ListFolder(path, MAX_PAGE, cursor), _caller(request))
            entries += page.entries
            cursor = page.cursor
            if cursor is None:
                break
        headers = _headers(DocumentInfo(check_folder(path), None, None, None, None))
        if "application/ld+json" in request.headers.get("accept", ""):
            text = json.dumps(_as_json_ld(path, entries))
            return Response(text, headers={**headers, "content-type": "application/ld+json"})
        return Response(_as_turtle(path, entries), headers={**headers, "content-type": "text/turtle"})

    @put(
        "/v1/slots/pods/data/{path:path}",
        status_code=201,
        openapi_extra=_ANY_BODY,
        scope="pods",
        max_body=MAX_DOCUMENT,
    )
    async def write_document(self, path: UrlDocument, request: Request, response: Response) -> DocumentBody:
        """Write a whole document, or make a folder. `If-Match` and `If-None-Match: *` are conditions."""
        caller, key = _caller(request), _key(request)
        if path.endswith("/"):
            return _body(await self._slot.call(CreateFolder(path, key), caller))
        media = request.headers.get("content-type")
        if media is None:
            raise invalid("The header Content-Type is missing")
        content = base64.b64encode(await request.body()).decode()
        wanted = PutDocument(path, media, content, "base64", request.headers.get("if-match"), _is_new(request), key)
        made = await self._slot.call(_as_text(wanted), caller)
        response.headers["location"] = DATA + quote(path)
        if made.etag is not None:
            response.headers["etag"] = made.etag
        return _body(made)

    @post(
        "/v1/slots/pods/data/{path:path}",
        status_code=201,
        openapi_extra=_ANY_BODY,
        scope="pods",
        max_body=MAX_DOCUMENT,
    )
    async def add_document(self, path: UrlDocument, request: Request, response: Response) -> DocumentBody:
        """Add a document to a folder, under the name in the header `Slug` or under a new one."""
        folder = check_folder(path)
        name = request.headers.get("slug", "").strip().strip("/") or f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        if "BasicContainer" in request.headers.get("link", ""):
            made = await self._slot.call(CreateFolder(f"{folder}{name}/", _key(request)), _caller(request))
        else:
            content = base64.b64encode(await request.body()).decode()
            media = request.headers.get("content-type", "application/octet-stream")
            wanted = _as_text(PutDocument(f"{folder}{name}", media, content, "base64", None, True, _key(request)))
            try:
                made = await self._slot.call(wanted, _caller(request))
            except SlotError as error:
                if error.kind.name != "precondition":
                    raise
                # A slug is a wish: the name is taken.
                other = f"{folder}{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{name}"
                made = await self._slot.call(replace(wanted, path=other), _caller(request))
        response.headers["location"] = DATA + quote(made.path)
        return _body(made)

    @patch("/v1/slots/pods/data/{path:path}", openapi_extra=_ANY_BODY, scope="pods", max_body=MAX_DOCUMENT)
    async def patch_document(self, path: UrlDocument, request: Request) -> DocumentBody:
        """JSON Patch (`application/json-patch+json`), or N3 Patch (`text/n3`) where a Solid server keeps the data."""
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in ("application/json-patch+json", "text/n3"):
            raise invalid("The content type of a patch is application/json-patch+json or text/n3")
        try:
            text = (await request.body()).decode()
        except UnicodeDecodeError:
            raise invalid("The patch is not UTF-8") from None
        kind: Literal["json", "n3"] = "n3" if media == "text/n3" else "json"
        wanted = PatchDocument(path, text, kind, request.headers.get("if-match"), _key(request))
        return _body(await self._slot.call(wanted, _caller(request)))

    @delete("/v1/slots/pods/data/{path:path}", scope="pods")
    async def delete_document(self, path: UrlDocument, request: Request) -> DeletedDocumentBody:
        """A document, or an empty folder."""
        wanted = DeleteDocument(path, request.headers.get("if-match"), _key(request))
        return DeletedDocumentBody(path=(await self._slot.call(wanted, _caller(request))).path)

    @get("/v1/slots/pods/grants", scope="pods")
    async def list_pod_grants(
        self, request: Request, agent: Annotated[str | None, Query(max_length=100)] = None
    ) -> PodGrantsBody:
        """Which agent may reach which folder."""
        return _grants((await self._slot.call(ListGrants(agent), _caller(request))).grants)

    @post("/v1/slots/pods/grants", scope="admin")
    async def grant_pod_access(self, body: GrantAccessBody, request: Request) -> PodGrantsBody:
        """Let an agent read or write everything in a folder. Answers the grants of this agent."""
        wanted = GrantAccess(body.agent, body.folder, body.mode, body.key)
        return _grants((await self._slot.call(wanted, _caller(request))).grants)

    @post("/v1/slots/pods/grants/revoke", scope="admin")
    async def revoke_pod_access(self, body: RevokeAccessBody, request: Request) -> PodGrantsBody:
        wanted = RevokeAccess(body.agent, body.folder, body.key)
        return _grants((await self._slot.call(wanted, _caller(request))).grants)

    @get("/v1/slots/pods/access", scope="admin")
    async def list_pod_access(
        self,
        request: Request,
        folder: Annotated[str | None, Query(max_length=MAX_PATH)] = None,
        agent: Annotated[str | None, Query(max_length=100)] = None,
        limit: PodLimit = 100,
        before: Annotated[int | None, Query(ge=1, le=MAX_NUMBER), DIGITS] = None,
    ) -> PodAccessesBody:
        """Who reached, or tried to reach, what: agents and programs, not the owner's own browser."""
        page = await self._slot.call(ListAccess(folder, agent, limit, before), _caller(request))
        entries = [
            PodAccessBody(
                number=one.number, at=to_moment(one.at), who=one.who, agent=one.agent, act=one.act, path=one.path
            )
            for one in page.entries
        ]
        return PodAccessesBody(entries=entries, cursor=page.cursor)

    @get("/v1/slots/pods/export", scope="pods")
    async def export_pods(
        self,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MAX_RECORDS), DIGITS] = MAX_RECORDS,
        cursor: Annotated[str | None, Query(max_length=MAX_PATH + 1)] = None,
    ) -> PodRecordsBody:
        """Everything, in the order of the paths."""
        found = await self._slot.call(ExportPods(limit, cursor), _caller(request))
        return PodRecordsBody(records=[dict(one) for one in found.records], cursor=found.cursor)

    @post("/v1/slots/pods/import", scope="pods", max_body=MAX_IMPORT)
    async def import_pods(self, body: ImportPodsBody, request: Request) -> PodImportBody:
        done = await self._slot.call(ImportPods(tuple(body.records), body.key), _caller(request))
        return PodImportBody(created=done.created, replaced=done.replaced, kept=done.kept)


def _headers(info: DocumentInfo) -> dict[str, str]:
    """What a Solid client looks at, and what keeps a document from acting as a page of the control center."""
    kinds = ["Resource", "BasicContainer"] if info.is_folder or not info.path else ["Resource"]
    found = {
        "link": ", ".join(f'<{LDP}{kind}>; rel="type"' for kind in kinds),
        "allow": "GET, HEAD, PUT, POST, PATCH, DELETE",
        "accept-patch": "application/json-patch+json",
        "accept-post": "*/*",
        "wac-allow": 'user="read write append"',
        "content-security-policy": "sandbox; default-src 'none'",
        "content-disposition": "attachment",
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
    }
    if info.etag is not None:
        found["etag"] = info.etag
    if info.modified is not None:
        found["last-modified"] = formatdate(info.modified, usegmt=True)
    return found


def _as_turtle(path: str, entries: list[DocumentInfo]) -> str:
    lines = [f"@prefix ldp: <{LDP}>.", "@prefix dc: <http://purl.org/dc/terms/>."]
    lines.append("<> a ldp:BasicContainer, ldp:Container, ldp:Resource.")
    for one in entries:
        name = quote(one.path.removeprefix(path), safe="/")
        kinds = "ldp:BasicContainer, ldp:Container, ldp:Resource" if one.is_folder else "ldp:Resource"
        lines.append(f"<> ldp:contains <./{name}>. <./{name}> a {kinds}.")
        if one.modified is not None:
            lines.append(f'<./{name}> dc:modified "{to_moment(one.modified).isoformat()}".')
    return "\n".join(lines) + "\n"


def _as_json_ld(path: str, entries: list[DocumentInfo]) -> list[Mapping[str, Any]]:
    def name(one: DocumentInfo) -> str:
        return "./" + quote(one.path.removeprefix(path), safe="/")

    members = [
        {"@id": name(one), "@type": [f"{LDP}Container", f"{LDP}Resource"] if one.is_folder else [f"{LDP}Resource"]}
        for one in entries
    ]
    contains = [{"@id": name(one)} for one in entries]
    return [{"@id": "", "@type": [f"{LDP}BasicContainer", f"{LDP}Container"], f"{LDP}contains": contains}, *members]


def _as_text(wanted: PutDocument) -> PutDocument:
    """Text is sent to the slot as text, so that the privacy filter can read it."""
    try:
        text = base64.b64decode(wanted.content).decode()
    except UnicodeDecodeError:
        return wanted
    return PutDocument(wanted.path, wanted.media, text, "text", wanted.if_match, wanted.is_new, wanted.key)


def _is_new(request: Request) -> bool:
    condition = request.headers.get("if-none-match")
    if condition not in (None, "*"):
        raise changed(request.url.path)
    return condition == "*"


def _key(request: Request) -> str | None:
    return request.headers.get("idempotency-key")


def _body(info: DocumentInfo) -> DocumentBody:
    modified = None if info.modified is None else to_moment(info.modified)
    return DocumentBody(path=info.path, media=info.media, etag=info.etag, size=info.size, modified=modified)


def _grants(found: tuple[PodGrant, ...]) -> PodGrantsBody:
    return PodGrantsBody(
        grants=[PodGrantBody.model_validate({**vars(one), "granted": to_moment(one.granted)}) for one in found]
    )


def _caller(request: Request) -> SlotCaller:
    return SlotCaller(principal_of(request.scope).who)
