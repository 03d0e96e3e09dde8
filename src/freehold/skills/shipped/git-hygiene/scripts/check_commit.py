#!/usr/bin/env python3
"""check_commit.py [FOLDER]: what is staged in a git repository and should not be. Exits 1 when there is something."""

import re
import subprocess
import sys
import unicodedata

MAX_FILE = 2_000_000
SECRETS = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|\b(sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|xox[abprs]-[A-Za-z0-9-]{10,}|AIza[0-9A-Za-z_-]{35})"
)
MARKERS = re.compile(rb"^(<{7} |={7}$|>{7} )", re.MULTILINE)
FOLDERS = {"node_modules", "__pycache__", ".venv", "dist", "build", "target", ".next", "coverage"}


def run(folder: str, *words: str) -> bytes:
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode(errors="replace").strip())
    return done.stdout


def main() -> int:
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    found = []
    branch = run(folder, "symbolic-ref", "--short", "-q", "HEAD").decode().strip()
    if branch in ("main", "master"):
        found.append(f"the branch is {branch}: is this meant to go there directly?")
    names = [
        one for one in run(folder, "diff", "--cached", "--name-only", "--diff-filter=ACMR", "-z").split(b"\0") if one
    ]
    if not names:
        print("Nothing is staged.")
        return 0
    for raw in names:
        name = raw.decode(errors="replace")
        parts = set(name.split("/"))
        content = run(folder, "cat-file", "blob", f":{raw.decode(errors='surrogateescape')}")
        if parts & FOLDERS:
            found.append(f"{name}: a generated folder ({', '.join(sorted(parts & FOLDERS))})")
        if len(content) > MAX_FILE:
            found.append(f"{name}: {len(content)} bytes")
        if name.split("/")[-1].startswith(".env") and not name.endswith((".example", ".sample")):
            found.append(f"{name}: a file of settings, which often has secrets")
        if SECRETS.search(content):
            found.append(f"{name}: looks like a secret")
        if MARKERS.search(content) and not name.endswith(".md"):
            found.append(f"{name}: a conflict marker")
        if b"\0" not in content:
            hidden = {
                one for one in content.decode(errors="replace") if unicodedata.category(one) == "Cf" and one != "\ufeff"
            }
            if hidden:
                found.append(f"{name}: hidden characters {', '.join(f'U+{ord(one):04X}' for one in sorted(hidden))}")
    for one in found:
        print(one)
    print(f"{len(names)} files staged, {len(found)} findings.")
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
