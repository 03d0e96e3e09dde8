"""The vectors of all entries in memory, searched without a database."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from freehold.slots.memory.lookup import NearEntry, VectorChange

Floats: TypeAlias = NDArray[np.float32]

EXACT_ROWS = 16_384
"""Up to this many rows every one is compared whole. Beyond it a short form of each row chooses the candidates."""
SHORT_DIMENSIONS = 128
SAMPLE_ROWS = 4_096
CANDIDATES = 1_000
FIRST_ROWS = 1_024


class VectorIndex:
    """Rows of length 1, each with its entry and namespace. Not safe in two threads at once.

    The short form of a row is its projection on the directions in which the rows differ the most, so that few
    numbers tell nearly as much as all of them.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.stamp = 0
        self._count = 0
        self._rows: Floats = np.zeros((FIRST_ROWS, dimensions), "float32")
        self._spaces: NDArray[np.int32] = np.zeros(FIRST_ROWS, "int32")
        self._entries: list[str] = []
        self._places: dict[str, list[int]] = {}
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._short: Floats | None = None
        self._directions: Floats | None = None
        self._fitted = 0

    def __len__(self) -> int:
        return self._count

    def apply(self, changed: Sequence[VectorChange], gone: Iterable[str]) -> None:
        """Replaces all rows of the entries that have changed, and drops those of entries that are gone."""
        for entry in {*gone, *(one.entry for one in changed)}:
            self._drop(entry)
        for one in changed:
            self._add(one)

    def nearest(
        self, vector: Floats, includes: Callable[[str], bool], others: Iterable[str], limit: int
    ) -> list[NearEntry]:
        """The entries that are nearest among the included namespaces, and how near these others are."""
        best: dict[str, float] = {}
        if self._count:
            for place, cosine in zip(*self._best_rows(vector, includes, limit), strict=True):
                entry = self._entries[place]
                best[entry] = max(best.get(entry, -1.0), float(cosine))
        for entry in others:
            if entry not in best and entry in self._places:
                best[entry] = float((self._rows[self._places[entry]] @ vector).max())
        return [NearEntry(entry, cosine) for entry, cosine in best.items()]

    def _best_rows(
        self, vector: Floats, includes: Callable[[str], bool], limit: int
    ) -> tuple[NDArray[np.intp], Floats]:
        included = np.array([includes(name) for name in self._names])
        if self._count <= EXACT_ROWS:
            places: NDArray[np.intp] = np.arange(self._count)
            scores = self._rows[: self._count] @ vector
        else:
            if self._short is None or self._count > 2 * self._fitted:
                self._fit()
            assert self._short is not None
            assert self._directions is not None
            scores = self._short[: self._count] @ (self._directions @ vector)
            places = self._top(scores, included[self._spaces[: self._count]], CANDIDATES)
            scores = self._rows[places] @ vector
        order = self._top(scores, included[self._spaces[places]], limit)
        return places[order], scores[order]

    @staticmethod
    def _top(scores: Floats, included: NDArray[np.bool_], limit: int) -> NDArray[np.intp]:
        masked = scores if included.all() else np.where(included, scores, np.float32(-2))
        if len(masked) > limit:
            found: NDArray[np.intp] = np.argpartition(masked, -limit)[-limit:]
        else:
            found = np.arange(len(masked))
        return found[included[found]]

    def _fit(self) -> None:
        """The directions by a sample of the rows, and the short form of every row."""
        step = max(1, self._count // SAMPLE_ROWS)
        sample = self._rows[: self._count : step]
        _, directions = np.linalg.eigh(sample.T @ sample)
        self._directions = np.ascontiguousarray(directions[:, -SHORT_DIMENSIONS:].T)
        self._short = self._rows @ self._directions.T
        self._fitted = self._count

    def _add(self, one: VectorChange) -> None:
        if len(one.vector) != 2 * self.dimensions:
            return  # the provider has changed the length of its vectors
        if self._count == len(self._rows):
            self._grow()
        place = self._count
        self._rows[place] = np.frombuffer(one.vector, "<f2")
        self._spaces[place] = self._number(one.namespace)
        if self._short is not None and self._directions is not None:
            self._short[place] = self._directions @ self._rows[place]
        self._entries.append(one.entry)
        self._places.setdefault(one.entry, []).append(place)
        self._count += 1

    def _drop(self, entry: str) -> None:
        """The last row moves into the place of each row that goes."""
        for place in sorted(self._places.pop(entry, ()), reverse=True):
            last = self._count - 1
            moved = self._entries.pop()
            if place != last:
                self._entries[place] = moved
                for table in (self._rows, self._spaces, self._short):
                    if table is not None:
                        table[place] = table[last]
                self._places[moved] = [place if one == last else one for one in self._places[moved]]
            self._count = last

    def _grow(self) -> None:
        self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._spaces = np.concatenate([self._spaces, np.zeros_like(self._spaces)])
        if self._short is not None:
            self._short = np.concatenate([self._short, np.zeros_like(self._short)])

    def _number(self, namespace: str) -> int:
        if namespace not in self._numbers:
            self._numbers[namespace] = len(self._names)
            self._names.append(namespace)
        return self._numbers[namespace]
