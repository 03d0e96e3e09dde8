#!/usr/bin/env python3
"""find_untested.py SOURCE TESTS: public functions and classes of Python files whose names appear in no test."""

import ast
import re
import sys
from pathlib import Path


def public_names(path: Path) -> list[tuple[int, str]]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError) as error:
        print(f"{path} was not read: {error}", file=sys.stderr)
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [(node.lineno, node.name) for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def main() -> int:
    source, tests = Path(sys.argv[1]), Path(sys.argv[2])
    words: set[str] = set()
    for path in tests.rglob("*.py"):
        words.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", path.read_text(encoding="utf-8", errors="replace")))
    total = missing = 0
    for path in sorted(source.rglob("*.py")):
        for line, name in public_names(path):
            total += 1
            if name not in words:
                missing += 1
                print(f"{path}:{line} {name}")
    print(f"{missing} of {total} public names appear in no test.")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--help"]:
        sys.exit(print(__doc__))
    sys.exit(main())
