#!/usr/bin/env python3
"""repeat.py TIMES [--timeout SECONDS] -- COMMAND...: runs a command many times, and groups how it ended."""

import subprocess
import sys
import time
from collections import Counter


def main() -> int:
    words = sys.argv[1:]
    if "--" not in words:
        raise SystemExit(__doc__)
    own, command = words[: words.index("--")], words[words.index("--") + 1 :]
    times = int(own[0])
    limit = float(own[own.index("--timeout") + 1]) if "--timeout" in own else 120.0
    ends: Counter[str] = Counter()
    first: dict[str, str] = {}
    spent: list[float] = []
    for _ in range(times):
        began = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit, check=False)
            end, output = f"exit {done.returncode}", (done.stdout + done.stderr)
            if done.returncode < 0:
                end = f"signal {-done.returncode}"
        except subprocess.TimeoutExpired as error:
            end, output = f"no end within {limit:g} s", str(error.stdout or "")
        spent.append(time.monotonic() - began)
        ends[end] += 1
        first.setdefault(end, output[-2000:])
    spent.sort()
    print(f"{times} runs, {spent[len(spent) // 2]:.2f} s in the middle, {spent[-1]:.2f} s at most")
    for end, count in ends.most_common():
        print(f"\n{count:4} × {end}. The end of its first output:\n{first[end].rstrip()}")
    return 0 if set(ends) == {"exit 0"} else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
