"""What every benchmark shares: its options, its table, its verdict."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its peer and its aim. `met` is None where no aim was set."""

    name: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    aim: str = ""
    met: bool | None = None


def median_of(action: Callable[[], object], times: int) -> float:
    """The median duration of `times` calls, in seconds."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations)


def main(question: str, measure: Callable[[bool], Iterable[Figure]]) -> None:
    """Run `measure(quick)`, print every figure, and exit 1 naming each aim that was missed."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, within 45 seconds")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    sys.exit(report(question, measure(options.quick), as_json=options.json))


def report(question: str, measured: Iterable[Figure], *, as_json: bool) -> int:
    """Print every figure as it comes, and each aim that was missed. Returns the exit code."""
    figures = []
    for figure in measured:
        figures.append(figure)
        if not as_json:
            print(_line(figure), flush=True)
    missed = [figure for figure in figures if figure.met is False]
    if as_json:
        print(
            json.dumps(
                {"question": question, "figures": [asdict(f) for f in figures], "missed": [f.name for f in missed]}
            )
        )
    for figure in missed:
        print(f"missed: {figure.name}: {figure.value:.4g} {figure.unit}, aim {figure.aim}", file=sys.stderr)
    return 1 if missed else 0


def _line(figure: Figure) -> str:
    peer = f"{figure.peer} {figure.peer_value:.4g} {figure.unit}" if figure.peer_value is not None else figure.peer
    verdict = {True: "met", False: "MISSED", None: ""}[figure.met]
    return f"{figure.name:<48} {figure.value:>10.4g} {figure.unit:<8} {peer:<40} {figure.aim:<32} {verdict}".rstrip()
