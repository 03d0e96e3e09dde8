"""`freehold check`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from freehold.cli._json_output import JsonOutput, echo_json, json_option
from freehold.cli._options import home_option
from freehold.errors import FreeholdError
from freehold.home import Home

if TYPE_CHECKING:
    from freehold.manifest import LoadedManifest, ManifestProblem


class FoundProblem(TypedDict):
    """One problem of a manifest, with the line of its file."""

    code: str
    message: str
    hint: str
    file: str
    line: int | None
    key: str
    severity: Literal["error", "warning"]


class CheckReport(TypedDict):
    file: str
    ok: bool
    checksum: str
    problems: list[FoundProblem]


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@home_option
@json_option(JsonOutput(CheckReport))
def command(file: Path | None, home: Home, as_json: bool) -> None:
    """Check a manifest and list all its problems.

    The default FILE is the manifest of this Freehold. With errors (E…) Freehold does not start, and this command
    exits 1. Warnings (W…) are advice.

    \b
    Examples:
      freehold check
      freehold check draft.toml --json
    """
    from freehold.manifest import load_manifest

    if file is not None and not file.exists():
        raise FreeholdError("manifest.missing", f"There is no file {file}", hint="Create a manifest: freehold init")
    path = file or home.manifest
    loaded = load_manifest(path, os.environ, home=home.root)
    if as_json:
        echo_json(_make_report(loaded), indent=2)
    else:
        _print(loaded, there=path.exists())
    if loaded.errors:
        sys.exit(1)


def _make_report(loaded: "LoadedManifest") -> CheckReport:
    problems = [
        FoundProblem(
            code=problem.code,
            message=problem.message,
            hint=problem.hint,
            file=problem.file,
            line=problem.line,
            key=problem.key,
            severity=problem.severity,
        )
        for problem in loaded.problems
    ]
    return {"file": str(loaded.path), "ok": not loaded.errors, "checksum": loaded.checksum, "problems": problems}


def _print(loaded: "LoadedManifest", *, there: bool) -> None:
    for problem in loaded.problems:
        _print_problem(problem)
    if not there:
        click.echo(f"{loaded.path} does not exist, so every key has its default. To create it: freehold init")
    errors, warnings = len(loaded.errors), len(loaded.warnings)
    if errors or warnings:
        click.echo(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}")
    else:
        click.secho(f"No problems in {loaded.path}" if there else "No problems", fg="green")


def _print_problem(problem: "ManifestProblem") -> None:
    colour = "red" if problem.severity == "error" else "yellow"
    click.echo(f"{problem.place}  {click.style(problem.code, fg=colour, bold=True)}  {problem.message}")
    if problem.hint:
        click.echo(f"    {problem.hint}")


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
