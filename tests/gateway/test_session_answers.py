"""What an agent wrote is answered whatever it contains."""

import json
from collections.abc import Iterator
from typing import NoReturn

import pytest
from tests.gateway.running_gateway import RunningGateway

from freehold.agents.sessions.export import export_json, gather_pieces
from freehold.agents.sessions.rows import SessionEventRow

ODD_TEXTS = ("\ud800 half a character", "\udfff", "nul \0", "\u202e", "\U0001f600", '"quoted" \\ \n')


async def test_events_with_any_text_are_answered(gateway: RunningGateway) -> None:
    session = await gateway.open_session(*ODD_TEXTS)
    answer = await gateway.http.get(f"/v1/sessions/{session}/events?after=0", headers=gateway.token("prompt"))
    assert answer.headers["content-type"] == "application/json"
    assert [event["data"]["text"] for event in answer.json()["events"]] == list(ODD_TEXTS)
    assert set(answer.json()) == {"events", "next", "streaming"}


@pytest.mark.parametrize("format", ["json", "markdown"])
async def test_an_export_with_any_text_is_answered(gateway: RunningGateway, format: str) -> None:
    session = await gateway.open_session(*ODD_TEXTS)
    answer = await gateway.http.get(f"/v1/sessions/{session}/export?format={format}", headers=gateway.token("prompt"))
    assert answer.status_code == 200
    assert "half a character" in answer.text


async def test_a_long_session_is_exported_whole_and_in_pieces(gateway: RunningGateway) -> None:
    """Never all of it in memory: the first piece comes before the last event is read."""
    texts = [f"message {number} " + "x" * 20_000 for number in range(50)]
    session = await gateway.open_session(*texts)
    store = gateway.context.sessions.dependencies.store
    row = store.get(session)
    read: list[int] = []

    def note_events() -> Iterator[SessionEventRow]:
        for event in store.iterate_events(session, row.seq):
            read.append(event.seq)
            yield event

    assert next(gather_pieces(export_json(row, note_events)))
    assert 0 < len(read) <= 5
    token = gateway.token("prompt")
    for format in ("json", "markdown"):
        answer = await gateway.http.get(f"/v1/sessions/{session}/export?format={format}", headers=token)
        assert "content-length" not in answer.headers
        if format == "json":
            assert [event["data"]["text"] for event in answer.json()["events"]] == texts
            assert answer.json()["session"]["id"] == session
        else:
            assert [line for line in answer.text.splitlines() if line.startswith("message")] == texts
            assert answer.text.endswith("x\n")


async def test_numbers_that_are_not_json_and_were_stored_before_are_answered_as_text(gateway: RunningGateway) -> None:
    """Freehold 0.1.0 stored NaN when an agent sent it. A page refuses a whole answer that contains it."""
    session = await gateway.open_session("words")
    numbers = {"n": float("nan"), "more": [float("inf"), float("-inf"), 1.5]}
    with gateway.context.sessions.dependencies.store.timeline.transaction() as tx:
        tx.execute("UPDATE agents_event SET data = ? WHERE session = ?", (json.dumps(numbers), session))
    token = gateway.token("prompt")
    for path in ("events?after=0", "export?format=json"):
        answer = await gateway.http.get(f"/v1/sessions/{session}/{path}", headers=token)
        found = json.loads(answer.text, parse_constant=_refuse)
        assert found["events"][0]["data"] == {"n": "NaN", "more": ["Infinity", "-Infinity", 1.5]}


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
