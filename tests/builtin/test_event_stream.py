"""The reader of server-sent events agrees with the rules of WHATWG and with httpx2, however the bytes are cut."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.builtin import event_stream
from freehold.builtin.event_stream import EventReader

_ENDS = (b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r")
_PARTS = st.one_of(
    st.sampled_from(
        [
            *_ENDS,
            b"data:",
            b"data: ",
            b"data",
            b"event: other",
            b"event: message",
            b"event:",
            b"id: 1",
            b":",
            b"retry: 5",
        ]
    ),
    st.sampled_from(["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\ufeff", "ä", "{}", " "]).map(str.encode),
    st.binary(max_size=6),
)
_STREAMS = st.lists(_PARTS, max_size=40).map(b"".join)
_CUTS = st.lists(st.integers(0, 200), max_size=20)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ordered = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(ordered)]


def read_by_the_rules(data: bytes) -> list[str]:
    """The parsing rules of https://html.spec.whatwg.org/multipage/server-sent-events.html, on the whole text."""
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    found, buffer, kind = [], "", ""
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if line == "":
            if buffer.strip() and kind in ("", "message"):
                found.append(buffer.removesuffix("\n"))
            buffer, kind = "", ""
        elif field == "data":
            buffer += value + "\n"
        elif field == "event":
            kind = value
    return found


def read_by_httpx(data: bytes) -> list[str]:
    async def read() -> list[str]:
        async def pieces() -> AsyncIterator[bytes]:
            yield data

        response = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())
        response.request = httpx2.Request("GET", "http://odd")
        events = [event async for event in httpx2.EventSource(response)]
        return [event.data for event in events if event.event == "message" and event.data.strip()]

    return asyncio.run(read())


@given(data=_STREAMS, places=_CUTS)
def test_the_reader_finds_what_the_rules_say_however_the_bytes_arrive(data: bytes, places: list[int]) -> None:
    feed = EventReader().feed
    assert [text for piece in cut(data, places) for text in feed(piece)] == read_by_the_rules(data)


@given(data=_STREAMS)
def test_the_reader_finds_what_another_implementation_finds(data: bytes) -> None:
    """It knows no byte order mark, and ends an event at the end of the stream."""
    whole = data.removeprefix(b"\xef\xbb\xbf") + b"\n\n"
    if whole.startswith(b"\xef\xbb\xbf"):
        return
    assert EventReader().feed(whole) == read_by_httpx(whole)


@pytest.mark.parametrize("line", [b"data: x\n", b"x"])
def test_an_event_without_end_is_refused(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT", 1000)
    feed = EventReader().feed
    for _ in range(100):
        feed(line)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        list(map(feed, [line] * 1000))
