"""The types of what a request may contain. Every number has bounds, and no value is converted from another type.

Bodies are JSON, so a number is a number there. In an address everything is text: `Url…` types read it strictly.
"""

import re
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from freehold.errors import FreeholdError
from freehold.history.names import read_name

MAX_NUMBER = 2**53
"""The largest integer that every JSON client can represent. SQLite stores up to 2**63 - 1."""
MAX_ID = 64
MAX_PATH_TEXT = 16 * 1024
"""The characters of a path as it is written: a byte may be spelled `\\xNN`."""
MAX_PATH = 4095
"""The bytes of a path. Linux accepts no longer one."""

_WHOLE = re.compile(r"-?[0-9]{1,16}")


class RequestBody(BaseModel):
    """The body of a request: unknown fields are refused, and so are `0` for false, `true` for 1 and `"1"` for 1."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _read_whole(value: object) -> object:
    if not isinstance(value, str):
        return value
    if _WHOLE.fullmatch(value) is None:
        raise PydanticCustomError("whole_number", "must be a whole number in digits")
    return int(value)


def _read_flag(value: object) -> object:
    if isinstance(value, str):
        if value not in ("true", "false"):
            raise PydanticCustomError("true_or_false", "must be true or false")
        return value == "true"
    return value


Natural = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Positive = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
DIGITS = BeforeValidator(_read_whole)
"""Reads a number in an address. For one with bounds of its own: `Annotated[int, Query(ge=1, le=1000), DIGITS]`."""
UrlNatural = Annotated[Natural, DIGITS]
UrlPositive = Annotated[Positive, DIGITS]
UrlFlag = Annotated[bool, BeforeValidator(_read_flag)]
UrlId = Annotated[str, Path(min_length=1, max_length=MAX_ID)]
UrlName = Annotated[str, Path(min_length=1, max_length=100)]
RestoreId = Annotated[
    str,
    Field(
        max_length=64,
        pattern="^[A-Za-z0-9_-]{1,64}$",
        description="Your own name for this change of files, new for each: `GET /v1/history/restores` shows how far it is, and it can be cancelled by this name.",
    ),
]
RecordBody = Annotated[dict[str, Any], Field(max_length=1000)]
"""A JSON object whose fields are not known beforehand. Whoever stores it checks them."""
PathText = Annotated[str, Field(max_length=MAX_PATH_TEXT)]
"""A path of a file. `read_path` turns it into bytes."""


def read_path(text: str) -> bytes:
    """The bytes of a path that may be sent to the computer. Raises `files.bad-path` or `files.name-too-long`."""
    path = read_name(text)
    if b"\0" in path:
        raise FreeholdError("files.bad-path", "A path cannot contain the character NUL")
    if len(path) > MAX_PATH:
        raise FreeholdError(
            "files.name-too-long", f"The path has {len(path)} bytes. A path has at most {MAX_PATH} bytes"
        )
    return path
