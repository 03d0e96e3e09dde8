"""Writes the generated files, or checks that they match the sources.

python -m tools.generate            write them
python -m tools.generate --check    exit 1 when a file does not match
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from tools.generated import GENERATED

ROOT = Path(__file__).resolve().parent.parent
Generated = Mapping[str, Callable[[], str]]


def find_drifted(root: Path, generated: Generated) -> dict[str, str]:
    """The files that do not match the sources, each with the text that it should have."""
    made = {name: make() for name, make in generated.items()}
    return {name: text for name, text in made.items() if _read(root / name) != text}


def write(root: Path, generated: Generated) -> list[str]:
    """Write the files that do not match, and return their names."""
    changed = find_drifted(root, generated)
    for name, text in changed.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(changed)


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main(arguments: list[str] | None = None, root: Path = ROOT, generated: Generated = GENERATED) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file does not match")
    if not parser.parse_args(arguments).check:
        for name in write(root, generated):
            click.echo(f"wrote {name}")
        return 0
    changed = find_drifted(root, generated)
    for name in changed:
        click.echo(f"{name} does not match the sources", err=True)
    if changed:
        click.echo("To update it: make generated", err=True)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
