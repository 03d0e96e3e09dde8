"""The JSON of a model request: parsed once, strictly, and encoded anew, so the provider reads what was checked.

What two parsers could read differently is refused: repeated keys, other encodings than UTF-8, a byte order mark, NaN,
and numbers that do not fit into 64 bits. The number of values is limited, because the parser lets nothing else of the
process run for as long as it takes to read them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from freehold.errors import FreeholdError

MAX_INTEGER = 2**63
MAX_VALUES = 400_000
"""More than the 300,000 tokens that OpenAI takes in one list. Text is not limited by it."""


def parse_request_json(body: bytes) -> dict[str, Any]:
    """Raises `models.malformed`."""
    _check_size(body)
    try:
        content = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_read_object,
            parse_int=_read_integer,
            parse_float=_read_float,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise malformed("its body is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise malformed("its body is not JSON") from error
    if not isinstance(content, dict):
        raise malformed("its body is not a JSON object")
    return content


def encode_request_json(content: Mapping[str, Any]) -> bytes:
    """Raises `models.malformed` for a value that is nested too deep to be written again."""
    try:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError as error:
        raise malformed("its body is nested too deep") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half a character, as JavaScript makes by cutting a text. Some parsers refuse it, so it is replaced.
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
        parse_request_json(whole)  # two keys could have become one
        return whole


def _check_size(body: bytes) -> None:
    """Every value but the first follows one of these marks. Those inside texts are left out where it matters."""
    if _count_marks(body) <= MAX_VALUES:
        return
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_large = unescaped.count(b'"') > 4 * MAX_VALUES
    if is_large or _count_marks(b"".join(unescaped.split(b'"')[::2])) > MAX_VALUES:
        raise malformed(f"it has more than {MAX_VALUES} values")


def _count_marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _read_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(name for name, _value in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise malformed(f"it has the key {twice!a:.80} twice")
    return found


def _read_integer(text: str) -> int:
    if len(text) > 20 or not -MAX_INTEGER <= (number := int(text)) < MAX_INTEGER:
        raise malformed("it has a number with more than 64 bits")
    return number


def _read_float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise malformed("it has a number that is too large")
    return number


def _refuse_constant(text: str) -> None:
    raise malformed(f"{text} is not a JSON value")


def malformed(why: str) -> FreeholdError:
    return FreeholdError("models.malformed", f"The model request is not valid: {why}")
