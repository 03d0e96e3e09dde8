"""JSON with only the C scanner and encoder. The `json` package imports `re`, which takes a third of the start time."""

from __future__ import annotations

from freehold.guest.wire import WireError

TYPE_CHECKING = False  # the typing module itself is too slow to import here

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


MAX_TEXT = 500


def _build() -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    try:
        from _json import encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:  # a Python without the accelerator
        import json

        return json.loads, json.dumps

    class ScannerSettings:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float
        memo: dict[str, str] = {}  # noqa: RUF012 - the scanner wants an attribute

    scan = make_scanner(ScannerSettings())  # type: ignore[arg-type]
    encode = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, True)

    def loads(text: str) -> Any:
        try:
            value, end = scan(text, 0)
        except StopIteration:
            raise ValueError("not JSON") from None
        if end != len(text):
            raise ValueError("more than one JSON value")
        return value

    def dumps(value: Any) -> str:
        if isinstance(value, str):
            return encode_basestring_ascii(value)
        return "".join(encode(value, 0))

    return loads, dumps


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} has no JSON form")


_loads, _dumps = _build()


def decode_message(payload: bytes) -> dict[str, Any]:
    try:
        value = _loads(payload.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not a JSON message: {error}") from None
    if not isinstance(value, dict):
        raise WireError("a message must be a JSON object")
    return value


def encode_message(value: object) -> bytes:
    return _dumps(value).encode("ascii")


def shorten(words: str, most: int = MAX_TEXT) -> str:
    """Names and requests of the host come back in error texts: they must not make an answer too long."""
    return words if len(words) <= most else words[:most] + "…"
