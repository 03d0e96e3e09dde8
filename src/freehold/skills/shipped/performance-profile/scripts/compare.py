#!/usr/bin/env python3
"""compare.py [--runs N] -- COMMAND_A... --- COMMAND_B...: two commands in turn, with medians and spread."""

import random
import statistics
import subprocess
import sys
import time


def measure(command: list[str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}"
        )
    return time.perf_counter() - began


def main() -> int:
    words = sys.argv[1:]
    if "--" not in words or "---" not in words:
        raise SystemExit(__doc__)
    runs = int(words[words.index("--runs") + 1]) if "--runs" in words[: words.index("--")] else 15
    rest = words[words.index("--") + 1 :]
    commands = {"A": rest[: rest.index("---")], "B": rest[rest.index("---") + 1 :]}
    times: dict[str, list[float]] = {"A": [], "B": []}
    for name in commands:
        measure(commands[name])  # the first run fills caches
    for _ in range(runs):
        for name in random.sample(("A", "B"), 2):
            times[name].append(measure(commands[name]))
    for name, found in times.items():
        low, high = sorted(found)[len(found) // 10], sorted(found)[-1 - len(found) // 10]
        print(f"{name}: {statistics.median(found) * 1000:.1f} ms in the middle, {low * 1000:.1f} to {high * 1000:.1f}")
    change = statistics.median(times["B"]) / statistics.median(times["A"])
    # How often would chance alone give such a difference?
    pool, wanted, hits = times["A"] + times["B"], abs(statistics.median(times["A"]) - statistics.median(times["B"])), 0
    for _ in range(2000):
        random.shuffle(pool)
        hits += abs(statistics.median(pool[:runs]) - statistics.median(pool[runs:])) >= wanted
    sure = "more than the noise" if hits < 100 else "within the noise: do not claim it"
    print(f"B takes {change:.2f} × of A; chance alone would give this in {hits / 20:.0f} of 100 cases ({sure})")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
