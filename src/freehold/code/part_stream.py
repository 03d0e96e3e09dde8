"""An execution as a stream of lines of JSON. The code ends when the reader hangs up."""

import asyncio
import codecs
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import Request
from starlette.responses import StreamingResponse

from freehold.code.bodies import CodeOutputBody, CodePartBody, CodeStreamErrorBody, describe_end, describe_item
from freehold.computer import OutputChunk, ResultItem
from freehold.computer.isolates.execution import ExecutionPart
from freehold.errors import FreeholdError

BLANK_AFTER = 10.0
"""Seconds of silence after which an empty line is sent: a reader that waits for the next byte knows that we are there."""
_BLANK = b"\n"

ExecutionParts = AsyncGenerator[ExecutionPart]


class JsonLines(StreamingResponse):
    media_type = "application/x-ndjson"


async def wait_for_hang_up(request: Request) -> None:
    """The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        continue


def answer_with_parts(request: Request, parts: ExecutionParts) -> JsonLines:
    # No proxy may collect the lines, or nothing would be seen until the end.
    return JsonLines(_encode_until_hang_up(request, parts), headers={"x-accel-buffering": "no"})


async def _encode_until_hang_up(request: Request, parts: ExecutionParts) -> AsyncIterator[bytes]:
    hung_up = asyncio.ensure_future(wait_for_hang_up(request))
    encoded = _encode_parts(parts)
    following = asyncio.ensure_future(anext(encoded, None))
    try:
        while True:
            await asyncio.wait((following, hung_up), timeout=BLANK_AFTER, return_when=asyncio.FIRST_COMPLETED)
            if hung_up.done():
                return
            if not following.done():
                yield _BLANK
                continue
            line = following.result()
            if line is None:
                return
            yield line
            following = asyncio.ensure_future(anext(encoded, None))
    finally:
        for task in (hung_up, following):
            task.cancel()
        await asyncio.gather(hung_up, following, return_exceptions=True)
        await encoded.aclose()


async def _encode_parts(parts: ExecutionParts) -> AsyncGenerator[bytes]:
    decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
    try:
        async with aclosing(parts):
            async for part in parts:
                if isinstance(part, OutputChunk):
                    text = decoders[part.stream].decode(part.data)
                    if text:
                        yield _encode(CodePartBody(output=CodeOutputBody(stream=part.stream, text=text)))
                elif isinstance(part, ResultItem):
                    yield _encode(CodePartBody(item=describe_item(part)))
                else:
                    yield _encode(CodePartBody(end=describe_end(part)))
    except FreeholdError as error:
        failure = CodeStreamErrorBody(code=error.code, message=error.message, hint=error.hint)
        yield _encode(CodePartBody(failure=failure))


def _encode(part: CodePartBody) -> bytes:
    return part.model_dump_json(exclude_unset=True).encode() + b"\n"
