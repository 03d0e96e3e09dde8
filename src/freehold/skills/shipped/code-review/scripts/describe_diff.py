#!/usr/bin/env python3
"""describe_diff.py [BASE]: what a change touches, compared with a branch or commit (default: main, else HEAD)."""

import re
import subprocess
import sys
from pathlib import PurePosixPath

LOOK = {
    "runs text as code": re.compile(r"\b(eval|exec)\(|new Function\("),
    "a shell": re.compile(r"shell=True|os\.system\(|child_process"),
    "rights": re.compile(r"chmod|0o?777|verify=False|rejectUnauthorized"),
    "unsafe loading": re.compile(r"pickle\.loads?|yaml\.load\("),
    "left over": re.compile(r"TODO|FIXME|XXX|console\.log|breakpoint\(\)|pdb"),
    "waits": re.compile(r"\bsleep\("),
    "catches everything": re.compile(r"except( Exception)?:|catch \(?\w*\)? *\{ *\}"),
}
DEPENDENCIES = {"package.json", "pyproject.toml", "requirements.txt", "Cargo.toml", "go.mod"}


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout


def kind_of(name: str) -> str:
    path = PurePosixPath(name)
    if re.search(r"(^|/)(tests?|__tests__|spec)(/|$)|(^|/)test_|[._](test|spec)\.", name):
        return "tests"
    if path.name.endswith(("lock", "lock.json", ".min.js", ".snap")) or "generated" in name:
        return "generated"
    if path.suffix in (".md", ".rst", ".txt"):
        return "documents"
    if path.suffix in (".toml", ".yaml", ".yml", ".json", ".ini", ".cfg") or path.name in ("Dockerfile", "Makefile"):
        return "configuration"
    return "code"


def main() -> int:
    base = sys.argv[1] if len(sys.argv) > 1 else ("main" if git("branch", "--list", "main").strip() else "HEAD")
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for line in git("diff", "--numstat", base).splitlines():
        added, removed, name = line.split("\t", 2)
        groups.setdefault(kind_of(name), []).append((name, added, removed))
    for kind, files in sorted(groups.items()):
        print(f"{kind}: {len(files)} files")
        for name, added, removed in files:
            print(f"  +{added} -{removed} {name}")
    tested = " ".join(name for name, _, _ in groups.get("tests", []))
    bare = [name for name, _, _ in groups.get("code", []) if PurePosixPath(name).stem not in tested]
    if bare:
        print("no test of this name changed: " + ", ".join(bare))
    for name, _, _ in (one for files in groups.values() for one in files):
        if PurePosixPath(name).name in DEPENDENCIES:
            print(f"dependencies may have changed: {name}")
    place, number = "", 0
    for line in git("diff", "-U0", base).splitlines():
        if line.startswith("+++ "):
            place = line[6:]
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line)[1]) - 1
        elif line.startswith("+"):
            number += 1
            for why, pattern in LOOK.items():
                if pattern.search(line):
                    print(f"look: {place}:{number} ({why}) {line[1:].strip()[:100]}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
