"""Counters, gauges and histograms in the text format of Prometheus (docs/adr/0003-metrics.md)."""

import math
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

MAX_SERIES = 500
"""Limit of series in one metric. Further label values are counted under the value `other`."""

SECONDS_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_Labels = tuple[str, ...]


class Metric:
    """A name with a help text and fixed label names. Thread-safe."""

    kind = ""

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        for word in (name, *labels):
            if not _NAME.fullmatch(word):
                raise ValueError(f"{word!r} is not a name for a metric or label")
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._lock = threading.Lock()

    def samples(self) -> Iterator[str]:
        raise NotImplementedError

    def _key(self, given: dict[str, str], known: Mapping[_Labels, object]) -> _Labels:
        if given.keys() != set(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {tuple(given)}")
        key = tuple(str(given[label]) for label in self.labels)
        return key if key in known or len(known) < MAX_SERIES else ("other",) * len(self.labels)


class _Single(Metric):
    def __init__(self, name: str, help: str, labels: Sequence[str], read: Callable[[], float] | None) -> None:
        super().__init__(name, help, labels)
        if read is not None and labels:
            raise ValueError(f"{name}: a metric that is read on demand has no labels")
        self._read = read
        self._values: dict[_Labels, float] = {} if labels or read else {(): 0.0}

    def value(self, **labels: str) -> float:
        if self._read is not None:
            return self._read()
        with self._lock:
            return self._values.get(self._key(labels, self._values), 0.0)

    def samples(self) -> Iterator[str]:
        if self._read is not None:
            yield _sample(self.name, (), (), self._read())
            return
        with self._lock:
            values = list(self._values.items())
        for key, value in values:
            yield _sample(self.name, self.labels, key, value)

    def _add(self, amount: float, labels: dict[str, str]) -> None:
        with self._lock:
            key = self._key(labels, self._values)
            self._values[key] = self._values.get(key, 0.0) + amount


class Counter(_Single):
    """A value that only grows."""

    kind = "counter"

    def inc(self, amount: float = 1.0, **labels: str) -> None:
        if amount < 0:
            raise ValueError(f"{self.name} is a counter: it cannot go down")
        self._add(amount, labels)

    def set_total(self, value: float, **labels: str) -> None:
        """Set the value that another process counts, also when it has started again from zero."""
        with self._lock:
            self._values[self._key(labels, self._values)] = float(value)


class Gauge(_Single):
    """A value that goes up and down."""

    kind = "gauge"

    def set(self, value: float, **labels: str) -> None:
        with self._lock:
            self._values[self._key(labels, self._values)] = float(value)

    def inc(self, amount: float = 1.0, **labels: str) -> None:
        self._add(amount, labels)

    def dec(self, amount: float = 1.0, **labels: str) -> None:
        self._add(-amount, labels)


class Histogram(Metric):
    """Counts of values below each bound."""

    kind = "histogram"

    def __init__(self, name: str, help: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        super().__init__(name, help, labels)
        if (
            "le" in labels
            or not buckets
            or list(buckets) != sorted(set(buckets))
            or not all(map(math.isfinite, buckets))
        ):
            raise ValueError(f"{name}: buckets must be finite and rising, and no label may be called le")
        self.buckets = tuple(buckets)
        self._counts: dict[_Labels, list[float]] = {}

    def observe(self, value: float, **labels: str) -> None:
        with self._lock:
            key = self._key(labels, self._counts)
            # One count for each bucket, one for larger values, and the sum.
            counts = self._counts.setdefault(key, [0.0] * (len(self.buckets) + 2))
            counts[bisect_left(self.buckets, value)] += 1
            counts[-1] += value

    @contextmanager
    def time(self, **labels: str) -> Iterator[None]:
        """Observe the duration of the block in seconds, also when it raises."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - start, **labels)

    def samples(self) -> Iterator[str]:
        with self._lock:
            series = [(key, list(counts)) for key, counts in self._counts.items()]
        names = (*self.labels, "le")
        for key, counts in series:
            running = 0.0
            for bound, count in zip((*self.buckets, math.inf), counts, strict=False):
                running += count
                yield _sample(f"{self.name}_bucket", names, (*key, _number(bound)), running)
            yield _sample(f"{self.name}_sum", self.labels, key, counts[-1])
            yield _sample(f"{self.name}_count", self.labels, key, running)


M = TypeVar("M", bound=Metric)


class MetricsRegistry:
    """The metrics of one process. The same name always returns the same metric."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._lock = threading.Lock()

    def counter(
        self, name: str, help: str, labels: Sequence[str] = (), *, read: Callable[[], float] | None = None
    ) -> Counter:
        """`read` returns the value at each scrape, for a value that is counted elsewhere."""
        if not name.endswith("_total"):
            raise ValueError(f"{name!r}: the name of a counter ends in _total")
        return self._known(Counter(name, help, labels, read))

    def gauge(
        self, name: str, help: str, labels: Sequence[str] = (), *, read: Callable[[], float] | None = None
    ) -> Gauge:
        return self._known(Gauge(name, help, labels, read))

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS_BUCKETS
    ) -> Histogram:
        return self._known(Histogram(name, help, labels, buckets))

    def expose(self) -> str:
        """All metrics in the text format of Prometheus, version 0.0.4."""
        with self._lock:
            metrics = sorted(self._metrics.values(), key=lambda metric: metric.name)
        lines = []
        for metric in metrics:
            described = metric.help.replace("\\", r"\\").replace("\n", r"\n")
            lines += [f"# HELP {metric.name} {described}", f"# TYPE {metric.name} {metric.kind}", *metric.samples()]
        return "\n".join(lines) + "\n"

    def _known(self, metric: M) -> M:
        with self._lock:
            known = self._metrics.setdefault(metric.name, metric)
        if type(known) is not type(metric) or known.labels != metric.labels:
            raise ValueError(f"{metric.name} is already a {known.kind} with the labels {known.labels}")
        return known


registry = MetricsRegistry()
"""The metrics of this process."""


def _sample(name: str, labels: Sequence[str], values: Sequence[str], value: float) -> str:
    pairs = ",".join(f'{label}="{_escape(text)}"' for label, text in zip(labels, values, strict=True))
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"").encode("utf-8", "replace").decode()


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(float(value))
