"""What an agent wrote is answered whatever it contains."""

import pytest
from tests.gateway.running_gateway import RunningGateway

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
