"""The pods slot: checks who may reach what, keeps answers for repetitions, and lets a backend keep the documents."""

import asyncio
import base64
import binascii
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from freehold.slots.answers import expect_answer
from freehold.slots.contract import CallContext, Record, Reply, SlotCall, SlotCaller, SlotWrite
from freehold.slots.errors import SlotError
from freehold.slots.pods.backend import PodBackend
from freehold.slots.pods.checks import (
    changed,
    check_folder,
    check_media,
    check_path,
    check_pattern,
    invalid,
    media_matches,
)
from freehold.slots.pods.contract import (
    CONTRACT,
    MAX_DOCUMENT,
    MAX_PAGE,
    MAX_RECORDS,
    MAX_WAIT,
    AccessAct,
    AccessMode,
    AwaitChange,
    CreateFolder,
    DeletedDocument,
    DeleteDocument,
    DocumentInfo,
    ExportPods,
    FindDocuments,
    GetDocument,
    ImportPods,
    ListFolder,
    ListGrants,
    PatchDocument,
    PodDocument,
    PodImport,
    PodPage,
    PodRecords,
    PutDocument,
)
from freehold.slots.pods.grants import STEPS_OF_CALL, find_mode, remember_access, use_session_grant
from freehold.slots.pods.journal import (
    ABSENT,
    BegunWrite,
    WriteJournal,
    content_version,
    forget_begun,
    version_of,
)
from freehold.slots.pods.json_patch import patch_json
from freehold.slots.pods.schema import STEPS
from freehold.slots.statement import Steps
from freehold.slots.timeline_tables import TimelineTables
from freehold.timeline import Timeline

MAX_WALKED = 20_000
"""Entries that one search looks at."""
MAX_TRIES = 5
"""How often a patch is tried when others change the document meanwhile."""

NoteBegun = Callable[[str, str | None], Awaitable[None]]
"""Notes the version of a document before a write and the one after it."""
Act = Callable[[Any, NoteBegun], Awaitable[Any]]
DocumentChange = PutDocument | PatchDocument | CreateFolder | DeleteDocument


class PodStore:
    records_events = True

    def __init__(self, backend: PodBackend, timeline: Timeline) -> None:
        self.kind = backend.kind
        self.backend = backend
        self._timeline = timeline
        self._tables = TimelineTables(CONTRACT, timeline, STEPS, STEPS_OF_CALL)
        self._journal = WriteJournal(timeline)
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}

    async def connect(self) -> None:
        await self._tables.connect()
        await self.backend.connect()

    async def health(self) -> str | None:
        await self._tables.health()
        await self.backend.health()
        return None

    async def close(self) -> None:
        await self.backend.close()
        await self._tables.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        return cast("Reply", await self._answer(request, caller))

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case GetDocument():
                return await self._get(request, caller)
            case ListFolder():
                return await self._list(request, caller)
            case FindDocuments():
                return await self._find(request, caller)
            case AwaitChange():
                return await self._await(request, caller)
            case PutDocument():
                return await self._write(request, caller, request.path, self._put)
            case PatchDocument():
                return await self._write(request, caller, request.path, self._patch)
            case CreateFolder():
                return await self._write(request, caller, check_folder(request.path), self._create_folder)
            case DeleteDocument():
                return await self._write(request, caller, request.path, self._delete)
            case ExportPods():
                _require_owner(caller)
                return await self._export(request)
            case ImportPods():
                _require_owner(caller)
                return await self._once(request, caller, self._import)
        return await self._tables.call(request, caller)

    # Reading

    async def _get(self, request: GetDocument, caller: SlotCaller) -> PodDocument:
        check_path(request.path)
        await self._require(caller, "read", "read", request.path)
        info, content = await self.backend.read(request.path)
        return PodDocument(info, None if request.known is not None and request.known == info.etag else content)

    async def _await(self, request: AwaitChange, caller: SlotCaller) -> PodDocument:
        check_path(request.path)
        if not 0 <= request.seconds <= MAX_WAIT:
            raise invalid(f"seconds is {request.seconds:g}; it must be between 0 and {MAX_WAIT:g}")
        await self._require(caller, "read", "read", request.path)
        return PodDocument(await self.backend.wait(request.path, request.etag, request.seconds), None)

    async def _list(self, request: ListFolder, caller: SlotCaller) -> PodPage:
        folder = check_folder(request.folder)
        await self._require(caller, "read", "list", folder)
        return _page(await self.backend.list_folder(folder), request.limit, request.cursor)

    async def _find(self, request: FindDocuments, caller: SlotCaller) -> PodPage:
        folder, pattern = check_folder(request.folder), check_pattern(request.media)
        await self._require(caller, "read", "list", folder)
        found = [one for one in await self._walk(folder) if media_matches(pattern, one.media)]
        return _page(found, request.limit, request.cursor)

    async def _walk(self, folder: str) -> list[DocumentInfo]:
        """Everything below a folder, in the order of the paths."""
        found: list[DocumentInfo] = []
        waiting = [folder]
        while waiting:
            for entry in await self.backend.list_folder(waiting.pop()):
                found.append(entry)
                if entry.is_folder:
                    waiting.append(entry.path)
            if len(found) > MAX_WALKED:
                raise invalid(f"There are more than {MAX_WALKED} entries here", "Name a folder below this one")
        return sorted(found, key=lambda one: one.path)

    # Writing

    async def _write(self, request: DocumentChange, caller: SlotCaller, path: str, act: Act) -> Any:
        if isinstance(request, PutDocument | PatchDocument) or (path and not path.endswith("/")):
            check_path(path)
        else:
            check_folder(path)
        await self._require(caller, "write", "delete" if isinstance(request, DeleteDocument) else "write", path)
        return await self._once(request, caller, act)

    async def _once(self, request: SlotWrite[Any], caller: SlotCaller, act: Act) -> Any:
        """Does it unless there is an answer for its key already, and stores the answer with the timeline event.

        A repetition that comes while the first is under way waits for its answer.
        """
        if request.key is None:
            return await self._store_answer(request, caller, await act(request, _note_nothing))
        name = caller.name, request.key
        turn = self._turns.setdefault(name, asyncio.Lock())
        try:
            async with turn:
                is_done = await self._tables.in_thread(self._has_answer, caller, request.key)
                return await self._store_answer(
                    request, caller, None if is_done else await self._act_once(request, caller, act)
                )
        finally:
            if not turn.locked():
                self._turns.pop(name, None)

    async def _act_once(self, request: SlotWrite[Any], caller: SlotCaller, act: Act) -> Any:
        """Does it unless it has happened already and only the answer was lost, as by a crash."""
        begun: BegunWrite | None = await self._tables.in_thread(self._journal.find, request, caller)
        if begun is not None and isinstance(request, PutDocument | PatchDocument | DeleteDocument):
            found = await self._find_document(request.path)
            if begun.has_happened(version_of(found), request.path, is_whole=isinstance(request, PutDocument)):
                return DeletedDocument(request.path) if found is None else found[0]

        async def note(before: str, after: str | None) -> None:
            await self._tables.in_thread(self._journal.note, request, caller, BegunWrite(before, after), time.time())

        try:
            return await act(request, note)
        except SlotError as error:
            if error.problem != "unavailable":
                await self._tables.in_thread(self._journal.remove, request, caller)
            raise

    async def _find_document(self, path: str) -> tuple[DocumentInfo, bytes] | None:
        """None for what does not exist, and for a folder."""
        if not path or path.endswith("/"):
            return None
        try:
            return await self.backend.read(path)
        except SlotError as error:
            if error.problem != "not-found":
                raise
            return None

    async def _store_answer(self, request: SlotWrite[Any], caller: SlotCaller, done: Any) -> Any:
        def answer(_request: object, context: CallContext) -> Steps[Any]:
            if done is None:
                yield from expect_answer("pods")
            yield from forget_begun(request, context)
            return done

        return await self._tables.carry_out(request, caller, answer)

    def _has_answer(self, caller: SlotCaller, key: str) -> bool:
        wanted = (caller.name, key)
        return bool(self._timeline.query("SELECT at FROM pods_answer WHERE caller = ? AND key = ?", wanted))

    async def _put(self, request: PutDocument, note: NoteBegun) -> DocumentInfo:
        media, content = check_media(request.media), _decode(request)
        if request.key is not None:
            await note(version_of(await self._find_document(request.path)), content_version(media, content))
        return await self.backend.write(request.path, media, content, if_match=request.if_match, is_new=request.is_new)

    async def _patch(self, request: PatchDocument, note: NoteBegun) -> DocumentInfo:
        if request.kind == "n3":
            if request.key is not None:
                await note(version_of(await self._find_document(request.path)), None)
            return await self.backend.patch_n3(request.path, request.patch, if_match=request.if_match)
        for tries_left in reversed(range(MAX_TRIES)):
            info, content = await self.backend.read(request.path)
            if request.if_match is not None and info.etag != request.if_match:
                raise changed(request.path)
            changed_content = await asyncio.to_thread(patch_json, content, request.patch)
            _check_size(changed_content)
            assert info.media is not None
            if request.key is not None:
                await note(content_version(info.media, content), content_version(info.media, changed_content))
            try:
                return await self.backend.write(
                    request.path, info.media, changed_content, if_match=info.etag, is_new=False
                )
            except SlotError as error:
                if error.problem != "conflict" or request.if_match is not None or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _create_folder(self, request: CreateFolder, _note: NoteBegun) -> DocumentInfo:
        folder = check_folder(request.path)
        if not folder:
            raise invalid("The root is there already")
        await self.backend.make_folder(folder)
        return DocumentInfo(folder, None, None, None, None)

    async def _delete(self, request: DeleteDocument, note: NoteBegun) -> DeletedDocument:
        if not request.path:
            raise invalid("The root cannot be deleted")
        if request.key is not None and not request.path.endswith("/"):
            await note(version_of(await self._find_document(request.path)), ABSENT)
        await self.backend.delete(request.path, if_match=request.if_match)
        return DeletedDocument(request.path)

    # Export and import

    async def _export(self, request: ExportPods) -> PodRecords:
        if not 1 <= request.limit <= MAX_RECORDS:
            raise invalid(f"limit is {request.limit}; it must be between 1 and {MAX_RECORDS}")
        after = request.cursor or ""
        entries = [one for one in await self._walk("") if one.path > after]
        records: list[Record] = []
        for entry in entries[: request.limit]:
            if entry.is_folder:
                records.append({"id": entry.path})
                continue
            info, content = await self.backend.read(entry.path)
            records.append({"id": info.path, "media": info.media, **_encode(content)})
        more = len(entries) > request.limit
        return PodRecords(tuple(records), entries[request.limit - 1].path if more else None)

    async def _import(self, request: ImportPods, _note: NoteBegun) -> PodImport:
        if len(request.records) > MAX_RECORDS:
            raise invalid(f"One import has at most {MAX_RECORDS} records")
        created = replaced = kept = 0
        for document in [_read_record(record) for record in request.records]:
            if document.path.endswith("/"):
                await self.backend.make_folder(check_folder(document.path))
                kept += 1
                continue
            check_path(document.path)
            media, content = check_media(document.media), _decode(document)
            try:
                info, found = await self.backend.read(document.path)
            except SlotError as error:
                if error.problem != "not-found":
                    raise
                created += 1
            else:
                if (info.media, found) == (media, content):
                    kept += 1
                    continue
                replaced += 1
            await self.backend.write(document.path, media, content, if_match=None, is_new=False)
        return PodImport(created, replaced, kept)

    # Access

    async def _require(self, caller: SlotCaller, mode: AccessMode, act: AccessAct, path: str) -> None:
        """An agent reaches only what the owner has granted. What others than the owner do is remembered."""
        if caller.session is not None:
            found = find_mode((await self._tables.call(ListGrants(), caller)).grants, path)
            is_granted = found in ("write", mode)
            if not is_granted and not await self._tables.in_thread(self._use_grant, caller.session, mode, path):
                await self._tables.in_thread(self._remember, caller, "refused", path)
                raise SlotError(
                    "pods",
                    "denied",
                    f"The agent {caller.agent or '?'} may not {mode} {path[:200] or '/'!a}",
                    hint="Ask the user for access with the tool pods_request",
                )
        if not caller.is_owner:
            await self._tables.in_thread(self._remember, caller, act, path)

    def _use_grant(self, session: str, mode: AccessMode, path: str) -> bool:
        with self._timeline.transaction() as tx:
            return use_session_grant(tx, session, mode, path)

    def _remember(self, caller: SlotCaller, act: AccessAct, path: str) -> None:
        with self._timeline.transaction() as tx:
            remember_access(tx, caller, act, path, time.time())


async def _note_nothing(before: str, after: str | None) -> None:
    """Without a key nobody can ask whether it has happened."""


def _require_owner(caller: SlotCaller) -> None:
    if caller.session is not None:
        raise SlotError("pods", "denied", "Only the owner exports and imports everything")


def _page(entries: list[DocumentInfo], limit: int, cursor: str | None) -> PodPage:
    if not 1 <= limit <= MAX_PAGE:
        raise invalid(f"limit is {limit}; it must be between 1 and {MAX_PAGE}")
    left = [one for one in entries if cursor is None or one.path > cursor]
    return PodPage(tuple(left[:limit]), left[limit - 1].path if len(left) > limit else None)


def _decode(request: PutDocument) -> bytes:
    if request.encoding == "base64":
        try:
            content = base64.b64decode(request.content, validate=True)
        except (binascii.Error, ValueError):
            raise invalid("content is not base64") from None
    else:
        try:
            content = request.content.encode()
        except UnicodeEncodeError:
            raise invalid("content has half characters") from None
    _check_size(content)
    return content


def _check_size(content: bytes) -> None:
    if len(content) > MAX_DOCUMENT:
        raise invalid(f"The document has {len(content)} bytes; a document has at most {MAX_DOCUMENT}")


def _encode(content: bytes) -> dict[str, str]:
    try:
        return {"encoding": "text", "content": content.decode()}
    except UnicodeDecodeError:
        return {"encoding": "base64", "content": base64.b64encode(content).decode()}


def _read_record(record: Record) -> PutDocument:
    path = record.get("id")
    if not isinstance(path, str):
        raise invalid("A record has no id")
    if path.endswith("/"):
        return PutDocument(path, "", "")
    media, content, encoding = record.get("media"), record.get("content"), record.get("encoding", "text")
    if not isinstance(media, str) or not isinstance(content, str) or encoding not in ("text", "base64"):
        raise invalid(f"{path[:80]!a}: a record has media, content and encoding (text or base64)")
    return PutDocument(path, media, content, "base64" if encoding == "base64" else "text")
