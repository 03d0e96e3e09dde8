"""`python -m tools.names`: finds unclear names, and checks them against a list that may only become shorter.

It finds three things in src/freehold: public class names that are defined in two or more modules, modules named by a
gerund, and functions of more than 60 lines. Each must be listed in tools/names-allowed.json. An item of the list that is
no longer found must be removed from it.
"""

import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "freehold"
ALLOWED = Path(__file__).with_name("names-allowed.json")

GENERATED_FOLDERS = ("_sync", "_async")
"""The two forms of the client; the synchronous one is generated from the other."""

GERUND = re.compile(r"_?[a-z_]*ing")
NOUNS_IN_ING = ("testing", "logging", "tracing", "routing", "pairing", "billing", "pricing")

MAX_FUNCTION_LINES = 60
MAX_ALLOWED = {"shared_classes": 15, "gerund_modules": 5, "long_functions": 0}


@dataclass(frozen=True)
class Definition:
    """One class or function, where it is defined, and how many lines it has."""

    module: str
    name: str
    is_class: bool
    lines: int


def read_definitions(sources: Path) -> Iterator[Definition]:
    """Every class and function below a folder, nested ones included."""
    for path in sorted(sources.rglob("*.py")):
        if set(path.parts) & set(GENERATED_FOLDERS):
            continue
        module = path.relative_to(sources).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno
                yield Definition(module, node.name, isinstance(node, ast.ClassDef), lines)


def find_shared_classes(definitions: list[Definition]) -> dict[str, list[str]]:
    """Public class names that are defined in two or more modules, with those modules."""
    modules: defaultdict[str, set[str]] = defaultdict(set)
    for each in definitions:
        if each.is_class and not each.name.startswith("_"):
            modules[each.name].add(each.module)
    return {name: sorted(places) for name, places in sorted(modules.items()) if len(places) > 1}


def find_gerund_modules(sources: Path) -> list[str]:
    return [
        path.relative_to(sources).as_posix()
        for path in sorted(sources.rglob("*.py"))
        if GERUND.fullmatch(path.stem) and path.stem not in NOUNS_IN_ING
    ]


def find_long_functions(definitions: list[Definition]) -> list[str]:
    return [
        f"{each.module}:{each.name}" for each in definitions if not each.is_class and each.lines > MAX_FUNCTION_LINES
    ]


def find_problems(found: dict[str, list[str]], allowed: dict[str, list[str]]) -> list[str]:
    """One line for each name that is new, for each that is gone but still listed, and for each list that is too long."""
    problems = []
    for kind, limit in MAX_ALLOWED.items():
        new, gone = sorted(set(found[kind]) - set(allowed[kind])), sorted(set(allowed[kind]) - set(found[kind]))
        problems += [f"{kind}: {name} is new; choose another name or split it" for name in new]
        problems += [f"{kind}: {name} is gone; remove it from {ALLOWED.name}" for name in gone]
        if len(allowed[kind]) > limit:
            problems.append(f"{kind}: {len(allowed[kind])} are listed in {ALLOWED.name}, at most {limit} may be")
    return problems


def main() -> int:
    definitions = list(read_definitions(SOURCES))
    shared = find_shared_classes(definitions)
    found = {
        "shared_classes": list(shared),
        "gerund_modules": find_gerund_modules(SOURCES),
        "long_functions": find_long_functions(definitions),
    }
    for kind, names in found.items():
        print(f"{kind}: {len(names)}")
        for name in names:
            print(f"  {name}" + (f"  in {', '.join(shared[name])}" if kind == "shared_classes" else ""))
    problems = find_problems(found, json.loads(ALLOWED.read_text()))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
