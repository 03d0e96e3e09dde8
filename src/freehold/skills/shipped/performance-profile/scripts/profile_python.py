#!/usr/bin/env python3
"""profile_python.py SCRIPT [ARGUMENTS...]: runs a script, and tells where its time and memory went."""

import cProfile
import pstats
import runpy
import sys
import tracemalloc
from pathlib import Path


def main() -> int:
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(Path(script).resolve().parent))
    tracemalloc.start()
    profile = cProfile.Profile()
    code: object = 0
    try:
        profile.runcall(runpy.run_path, script, run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    memory = tracemalloc.take_snapshot()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"\n== {script} ended with {code or 0}. Peak of Python's memory: {peak / 1e6:.1f} MB ==", file=sys.stderr)
    for order, words in (("tottime", "by themselves"), ("cumulative", "with what they call")):
        print(f"-- functions by time, {words}", file=sys.stderr)
        pstats.Stats(profile, stream=sys.stderr).sort_stats(order).print_stats(12)
    print("-- lines by memory that is still held", file=sys.stderr)
    for line in memory.statistics("lineno")[:8]:
        print(f"  {line}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
