"""JSON Patch, RFC 6902: all of it, or nothing."""

import copy
import json
from typing import Any

from freehold.slots.pods.checks import conflict, invalid
from freehold.slots.pods.contract import MAX_PATCH

_WITH_VALUE = frozenset({"add", "replace", "test"})
_WITH_FROM = frozenset({"move", "copy"})
MAX_POINTER = 64
MAX_COPIED = 1_000_000
"""Values and characters that the operations `copy` of one patch copy together."""


def patch_json(document: bytes, patch: str) -> bytes:
    """The changed document. Raises `pods.invalid` for a wrong patch, and `pods.conflict` for one that does not fit.

    What it copies is counted, because a few copies of copies would fill the memory.
    """
    try:
        target = json.loads(document)
    except (ValueError, RecursionError):
        raise conflict("The document is not JSON, so JSON Patch cannot change it") from None
    copies = _CopyBudget()
    try:
        for operation in _read_patch(patch):
            target = _apply(target, operation, copies)
        return json.dumps(target, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise invalid("The patched document cannot be written as JSON") from None


class _CopyBudget:
    def __init__(self) -> None:
        self._left = MAX_COPIED

    def take(self, value: Any) -> Any:
        waiting = [value]
        while waiting:
            one = waiting.pop()
            self._left -= 1 + (len(one) if isinstance(one, str) else 0)
            if isinstance(one, dict):
                self._left -= sum(map(len, one))
                waiting.extend(one.values())
            elif isinstance(one, list):
                waiting.extend(one)
            if self._left < 0:
                raise invalid(f"The patch copies more than {MAX_COPIED} values and characters")
        return copy.deepcopy(value)


def _read_patch(patch: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(patch)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise invalid("A JSON Patch is a list of objects")
    if len(found) > MAX_PATCH:
        raise invalid(f"A JSON Patch has at most {MAX_PATCH} operations")
    for one in found:
        kind = one.get("op")
        if kind not in _WITH_VALUE | _WITH_FROM | {"remove"}:
            raise invalid(f"{str(kind)[:40]!a} is not an operation of JSON Patch")
        if (kind in _WITH_VALUE and "value" not in one) or (
            kind in _WITH_FROM and not isinstance(one.get("from"), str)
        ):
            raise invalid(f"The operation {kind} lacks its {'value' if kind in _WITH_VALUE else 'from'}")
        if not isinstance(one.get("path"), str):
            raise invalid("An operation of a JSON Patch has a path")
    return found


def _apply(target: Any, operation: dict[str, Any], copies: _CopyBudget) -> Any:
    kind, path = operation["op"], _read_pointer(operation["path"])
    if kind == "test":
        if not _same(_find(target, path), operation["value"]):
            raise conflict(f"The value at {operation['path'][:200]!a} is another one")
        return target
    if kind == "remove":
        return _remove(target, path)
    if kind == "replace":
        _find(target, path)
        return operation["value"] if not path else _add(_remove(target, path), path, operation["value"])
    if kind == "add":
        return _add(target, path, operation["value"])
    source = _read_pointer(operation["from"])
    value = _find(target, source)
    if kind == "copy":
        return _add(target, path, copies.take(value))
    if path[: len(source)] == source and path != source:
        raise invalid("A value cannot be moved into itself")
    return _add(_remove(target, source), path, value)


def _read_pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise invalid(f"{text[:80]!a} is not a JSON Pointer")
    parts = text[1:].split("/")
    if len(parts) > MAX_POINTER:
        raise invalid(f"A JSON Pointer has at most {MAX_POINTER} parts")
    for part in parts:
        if "~" in part.replace("~0", "").replace("~1", ""):
            raise invalid(f"{text[:80]!a} is not a JSON Pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _find(target: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(target, dict) and part in target:
            target = target[part]
        elif isinstance(target, list):
            target = target[_index(part, len(target) - 1)]
        else:
            raise conflict(f"There is nothing at {part[:80]!a}")
    return target


def _add(target: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(target, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        place = len(parent) if path[-1] == "-" else _index(path[-1], len(parent))
        parent.insert(place, value)
    else:
        raise conflict(f"Nothing can be added at {path[-1][:80]!a}")
    return target


def _remove(target: Any, path: list[str]) -> Any:
    if not path:
        return None
    _find(target, path)
    parent = _find(target, path[:-1])
    del parent[path[-1] if isinstance(parent, dict) else int(path[-1])]
    return target


def _index(part: str, most: int) -> int:
    if not (part.isascii() and part.isdigit()) or (len(part) > 1 and part[0] == "0") or int(part[:9]) > most:
        raise conflict(f"There is no place {part[:20]!a} in the list")
    return int(part)


def _same(one: Any, other: Any) -> bool:
    """As JSON compares: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    return bool(one == other)
