"""What does a year of use cost? Boot, lists, pages and searches of a simulated year beside a home of a few weeks.

The year is made by `tools.simulated_year`, which takes minutes: to use one that was made before, name it in
BENCH_YEAR_HOME.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
from tools.simulated_year import COMMON_WORD, RARE_WORD, YearAmounts, make_year, scaled_amounts

from bench.boot import Home
from bench.harness import Figure, main
from freehold.history.calls import MeasureHistory
from freehold.identity.tokens import ApiTokens
from freehold.keeper.client import call_keeper
from freehold.timeline import Timeline

SMALL = YearAmounts(sessions=70, turns=2000, events=20_000, entries=200, days=28)
"""Lists are as long as one page, and nothing is old enough to be archived."""
QUICK_SMALL = YearAmounts(sessions=60, turns=300, events=4000, entries=60, days=28)
QUICK_YEAR = YearAmounts(sessions=100, turns=1500, events=30_000, entries=400)


class Rival:
    """One home that runs, and what is asked of it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        with ApiTokens(home.home.identity, owner=None) as tokens:
            _, secret = tokens.create(f"bench-{time.time_ns()}", ("read", "prompt"), None)
        self._http = httpx2.Client(
            base_url=f"http://localhost:{home.ports[0]}",
            headers={"authorization": f"Bearer {secret}"},
            trust_env=False,
            timeout=60,
        )
        with Timeline(home.home.timeline, readonly=True) as timeline:
            self.size = timeline.measure()
            rows = timeline.query("SELECT id FROM agents_session WHERE archived = 0 ORDER BY turns DESC LIMIT 1")
        self._session = rows[0][0]

    def paths(self) -> dict[str, str]:
        last, session = self.size.events, self._session
        return {
            "sessions": "/v1/sessions?limit=50",
            "archived sessions": "/v1/sessions?limit=50&archived=true",
            "last events of a session": f"/v1/sessions/{session}/events?limit=100",
            "first events of a session": f"/v1/sessions/{session}/events?after=0&limit=100",
            "timeline, start": "/v1/timeline?after=0&limit=100",
            "timeline, middle": f"/v1/timeline?after={last // 2}&limit=100",
            "timeline, end": f"/v1/timeline?before={last + 1}&limit=100",
            "timeline, kinds turn.*": f"/v1/timeline?before={last + 1}&limit=100&kind=turn.*",
            "timeline, a frequent kind": "/v1/timeline?after=0&limit=100&kind=egress.request_allowed",
            "timeline, a rare kind": f"/v1/timeline?before={last + 1}&limit=20&kind=session.opened",
            "history log": "/v1/history?limit=50",
            "usage by day": f"/v1/usage?by=day&limit={SMALL.days}",
            "usage by session": "/v1/usage?by=session",
            "usage by turn": "/v1/usage?by=turn",
            # The small home has fewer sessions with this word than are on a page.
            "search, a rare word": f"/v1/sessions?limit=10&query={RARE_WORD}",
            "search, the beginning of a word": f"/v1/sessions?limit=10&query={RARE_WORD[:6]}",
            "search, nothing found": "/v1/sessions?limit=50&query=zzzzzz",
        }

    def ask(self, path: str) -> float:
        """Milliseconds."""
        start = time.perf_counter()
        answer = self._http.get(path)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return (time.perf_counter() - start) * 1000

    def close(self) -> None:
        self._http.close()


def measure_boots(small: Home, year: Home, rounds: int) -> tuple[float, float]:
    """Median seconds to ready, in turns. The first start of each makes what is missing and is not counted."""
    found: list[tuple[float, float]] = []
    for _ in range(rounds + 1):
        with small.up() as first:
            pass
        with year.up() as second:
            pass
        found.append((first, second))
    return statistics.median(one for one, _ in found[1:]), statistics.median(other for _, other in found[1:])


def measure_pages(small: Rival, year: Rival, rounds: int) -> Iterator[Figure]:
    theirs = year.paths()
    for name, path in small.paths().items():
        pairs = [(small.ask(path), year.ask(theirs[name])) for _ in range(rounds)]
        few, many = (statistics.median(column) for column in zip(*pairs, strict=True))
        yield Figure(name, many, "ms", "small home", few, "≤ 2 × small home", many <= 2 * few)


def measure_disk(home: Home, year: Rival) -> Iterator[Figure]:
    size = year.size
    history = call_keeper(home.home, MeasureHistory())
    yield Figure("events in the database", size.events - size.archived, "", "written", size.events)
    yield Figure("timeline.db, with all conversations", size.database_bytes / 1e6, "MB")
    archived = size.archive_bytes / max(1, size.archived)
    yield Figure("archived timeline", size.archive_bytes / 1e6, "MB", f"{archived:.0f} bytes an event")
    used, quota = history.used / 1e6, history.quota / 1e6
    yield Figure("history", used, "MB", "quota", quota, "≤ quota", used <= quota)


def measure(quick: bool) -> Iterator[Figure]:
    made = os.environ.get("BENCH_YEAR_HOME")
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as name, ExitStack() as stack:
        small = Home(Path(name) / "small")
        make_year(small.home, QUICK_SMALL if quick else SMALL)
        year = Home(Path(made).parent if made else Path(name) / "year")
        if not made:
            start = time.perf_counter()
            make_year(year.home, QUICK_YEAR if quick else scaled_amounts(1.0))
            yield Figure("making the year", time.perf_counter() - start, "s")
        few, many = measure_boots(small, year, 1 if quick else 5)
        yield Figure("up to ready", many, "s", "small home", few, "≤ 1.5 × small home", many <= 1.5 * few)
        stack.enter_context(small.up())
        stack.enter_context(year.up())
        rivals = Rival(small), Rival(year)
        for rival in rivals:
            stack.callback(rival.close)
        yield from measure_pages(*rivals, 11 if quick else 51)
        common = rivals[1].paths()["sessions"] + f"&query={COMMON_WORD}"
        slowest = statistics.median(rivals[1].ask(common) for _ in range(5))
        yield Figure("search, the word in nearly every message", slowest, "ms", aim="≤ 150 ms", met=slowest <= 150)
        yield from measure_disk(year, rivals[1])


if __name__ == "__main__":
    main("What does a year of use cost?", measure)
