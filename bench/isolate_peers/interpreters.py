"""`python interpreters.py ROUNDS AT_ONCE`: Monty and bashkit, as bench/isolates.py measures isolates. Prints JSON.

Monty runs a part of Python in worker processes of its own. bashkit is an interpreter in this process, without any wall.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bashkit import Bash  # type: ignore[import-not-found]
from pydantic_monty import Monty  # type: ignore[import-not-found]

CROWDS = 3
PAUSE = 0.02
CODE, SHELL = "sum(range(10))", "echo 42"


def time_each(action: Callable[[], object], rounds: int, pause: float = 0.0) -> float:
    action()
    durations = []
    for _ in range(rounds):
        time.sleep(pause)
        start = time.perf_counter()
        action()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations) * 1000


def time_together(action: Callable[[], object], count: int) -> float:
    durations = []
    for _ in range(CROWDS):
        start = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            for done in [pool.submit(action) for _ in range(count)]:
                done.result()
        durations.append(time.perf_counter() - start)
    return statistics.median(durations) * 1000


def measure_monty(rounds: int, at_once: int) -> dict[str, float]:
    with Monty() as pool:

        def run() -> object:
            with pool.checkout() as session:
                return session.feed_run(CODE)

        found = {"one_shot": time_each(run, rounds, PAUSE)}
        with pool.checkout() as session:
            found["context"] = time_each(lambda: session.feed_run(CODE), rounds)
        found["at_once"] = time_together(run, at_once)
        return found


def measure_bashkit(rounds: int, at_once: int) -> dict[str, float]:
    kept = Bash()
    return {
        "one_shot": time_each(lambda: Bash().execute_sync(SHELL), rounds, PAUSE),
        "context": time_each(lambda: kept.execute_sync(SHELL), rounds),
        "at_once": time_together(lambda: Bash().execute_sync(SHELL), at_once),
    }


if __name__ == "__main__":
    given = int(sys.argv[1]), int(sys.argv[2])
    print(json.dumps({"Monty": measure_monty(*given), "bashkit": measure_bashkit(*given)}))
