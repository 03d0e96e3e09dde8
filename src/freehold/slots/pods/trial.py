"""What `freehold slots try pods` does to a Solid server, in a folder of its own that is removed again."""

from collections.abc import Mapping
from contextlib import suppress

from freehold.slots.contract import Reply, SlotCall, SlotCaller, SlotImplementation, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.host import SlotPlace
from freehold.slots.pods.solid import SolidServer
from freehold.slots.settings import ExternalSettings
from freehold.slots.trial import TrialPart

DOCUMENT = "notes/one.json"


class SolidTrial:
    """A server alone, without grants and answers in front of it."""

    kind = "solid"
    records_events = False

    def __init__(self, settings: ExternalSettings) -> None:
        self.server = SolidServer(settings)

    async def connect(self) -> None:
        await self.server.connect()

    async def health(self) -> None:
        await self.server.health()

    async def close(self) -> None:
        await self.server.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        raise SlotError("pods", "invalid", "A trial talks to the server itself")


def make_trial(name: SlotName, place: SlotPlace, settings: Mapping[str, str], unique: str) -> SolidTrial:
    own = dict(settings)
    if "url" in own:
        own["url"] = f"{own['url'].removesuffix('/')}/{unique}/"
    return SolidTrial(ExternalSettings(name, own, place.environ, place.find_secret))


async def remove_trial(store: SlotImplementation) -> None:
    server = _server(store)
    for path in (DOCUMENT, "notes/", ""):
        with suppress(SlotError):
            await server.delete(path, if_match=None)


def _server(store: SlotImplementation) -> SolidServer:
    assert isinstance(store, SolidTrial)
    return store.server


def _expect(holds: bool, words: str) -> None:
    if not holds:
        raise SlotError("pods", "conflict", words, hint="This server cannot be used for documents")


async def _write(store: SlotImplementation) -> None:
    made = await _server(store).write(DOCUMENT, "application/json", b'{"a": 1}', if_match=None, is_new=True)
    info, content = await _server(store).read(DOCUMENT)
    _expect(content == b'{"a": 1}' and info.etag == made.etag, "A document is not read as it was written")
    _expect(info.etag is not None, "The server tells no ETag")


async def _refuse(store: SlotImplementation) -> None:
    server = _server(store)
    info, _ = await server.read(DOCUMENT)
    await server.write(DOCUMENT, "application/json", b'{"a": 2}', if_match=info.etag, is_new=False)
    for if_match, is_new in ((info.etag, False), (None, True)):
        try:
            await server.write(DOCUMENT, "application/json", b"{}", if_match=if_match, is_new=is_new)
        except SlotError as error:
            _expect(error.problem == "conflict", f"A stale write was refused as {error.problem}")
        else:
            _expect(False, "A write with a stale condition was not refused")


async def _list(store: SlotImplementation) -> None:
    found = await _server(store).list_folder("notes/")
    _expect([one.path for one in found] == [DOCUMENT], "A folder does not list its document")


PARTS: tuple[TrialPart, ...] = (
    ("Write a document and read it", _write),
    ("Refuse a write with a stale condition", _refuse),
    ("List a folder", _list),
)
