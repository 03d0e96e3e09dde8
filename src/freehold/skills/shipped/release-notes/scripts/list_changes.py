#!/usr/bin/env python3
"""list_changes.py [FROM] [TO]: the commits between two versions, by kind."""

import re
import subprocess
import sys
from collections import Counter

KINDS = {
    "feat": "New",
    "fix": "Mended",
    "perf": "Faster",
    "docs": "Documents",
    "refactor": "Inside",
    "test": "Inside",
    "chore": "Inside",
    "ci": "Inside",
    "build": "Inside",
}
HEAD = re.compile(r"(?P<kind>[a-z]+)(\([^)]*\))?(?P<breaks>!)?: ")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout


def main() -> int:
    end = sys.argv[2] if len(sys.argv) > 2 else "HEAD"
    if len(sys.argv) > 1:
        span = f"{sys.argv[1]}..{end}"
    else:
        tags = git("tag", "--merged", end, "--sort=-creatordate").split()
        span = f"{tags[0]}..{end}" if tags else end
    groups: dict[str, list[str]] = {}
    authors: Counter[str] = Counter()
    for entry in git("log", "--no-merges", "--format=%h%x1f%an%x1f%s%x1f%b%x1e", span, "--").split("\x1e"):
        if not entry.strip():
            continue
        number, author, subject, body = entry.strip("\n").split("\x1f")
        authors[author] += 1
        found = HEAD.match(subject)
        group = KINDS.get(found["kind"], "Other") if found else "Other"
        if (found and found["breaks"]) or "BREAKING" in body:
            group = "Breaking"
        groups.setdefault(group, []).append(f"{number} {subject}")
    print(
        f"{span}: {sum(authors.values())} commits by {', '.join(f'{name} ({n})' for name, n in authors.most_common())}"
    )
    for group in ("Breaking", "New", "Mended", "Faster", "Other", "Documents", "Inside"):
        if group in groups:
            print(f"\n{group}")
            print("\n".join(f"  {line}" for line in groups[group]))
    stat = git("log", "--no-merges", "--name-only", "--format=", span, "--").split()
    print("\nChanged most")
    for name, count in Counter(stat).most_common(10):
        print(f"  {count:4} {name}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
