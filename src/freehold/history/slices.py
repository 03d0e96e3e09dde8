"""Sorts long lists without holding up other threads: Python's own sort lets nothing else run until it is done."""

import heapq
from collections.abc import Callable, Iterable
from itertools import islice
from operator import le
from typing import Any, TypeVar

T = TypeVar("T")
_SLICE = 16_000


def sort_in_slices(items: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """As `sorted`, also stable. Nothing waits longer than for the sort of one slice. What is in order stays as it is."""
    found = list(items)
    keys = [key(item) for item in found]
    if all(map(le, keys, islice(keys, 1, None))):
        return found
    if len(found) <= _SLICE:
        return sorted(found, key=key)
    parts = [sorted(found[start : start + _SLICE], key=key) for start in range(0, len(found), _SLICE)]
    return list(heapq.merge(*parts, key=key))
