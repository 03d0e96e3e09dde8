"""What Ray answers is used only while it is an answer to the last request."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

from freehold.fleet.placer import RayPlacer, RoomRequest
from freehold.fleet.ray_sandbox import RayKeys


class Requests:
    """The stream to Ray."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def write(self, line: bytes) -> None:
        self.sent.append(json.loads(line))


async def test_an_answer_to_a_request_that_was_withdrawn_names_no_room() -> None:
    placed: list[tuple[str, str]] = []
    placer = RayPlacer(
        Path("/"),
        cast(RayKeys, None),
        "",
        0,
        0,
        lambda *found: placed.append(found),
        lambda _: None,
        dict,
        lambda _: None,
    )
    answers, requests = asyncio.StreamReader(), Requests()
    serving = asyncio.ensure_future(placer._serve(answers, cast(asyncio.StreamWriter, requests)))

    def say(message: dict[str, Any]) -> None:
        answers.feed_data(json.dumps(message).encode() + b"\n")

    say({"ready": True})
    while not placer.is_ready:  # noqa: ASYNC110 - the next line is read
        await asyncio.sleep(0)
    placer.place("a", RoomRequest(1, 1))
    placer.release("a")
    placer.place("a", RoomRequest(1, 1))
    first, second = (one["number"] for one in requests.sent if one["do"] == "place")
    say({"placed": "a", "number": first, "node": "shed"})
    say({"placed": "a", "number": second, "node": "attic"})
    answers.feed_eof()
    await serving
    assert placed == [("a", "attic")]
