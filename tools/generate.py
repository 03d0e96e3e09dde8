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


def drifted(root: Path, generated: Mapping[str, Callable[[], str]]) -> list[str]:
    """The files whose text does not match the sources."""
    return [name for name, make in generated.items() if _read(root / name) != make()]


def write(root: Path, generated: Mapping[str, Callable[[], str]]) -> list[str]:
    """Write the files that do not match, and return their names."""
    changed = drifted(root, generated)
    for name in changed:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated[name]())
    return changed


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file does not match")
    if not parser.parse_args(arguments).check:
        for name in write(root, GENERATED):
            click.echo(f"wrote {name}")
        return 0
    changed = drifted(root, GENERATED)
    for name in changed:
        click.echo(f"{name} does not match the sources", err=True)
    if changed:
        click.echo("To update it: make generated", err=True)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
