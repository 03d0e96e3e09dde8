"""One way to a manifest: file, then environment, then rules."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.manifest.environment import apply_overrides, read_overrides
from freehold.manifest.model import Manifest
from freehold.manifest.problem import ENVIRONMENT, KeyPath, Problem, dotted, file_name, sort_problems
from freehold.manifest.reader import Source, read_source
from freehold.manifest.secrecy import scrub
from freehold.manifest.structure import build_manifest

if TYPE_CHECKING:
    from freehold.manifest.facts import Facts


@dataclass(frozen=True)
class Loaded:
    """A manifest and all that is wrong with it. With errors among the problems it must not be run."""

    manifest: Manifest
    problems: tuple[Problem, ...]
    checksum: str
    """SHA-256 of what is in force, environment included; the same for two files that say the same."""
    path: Path

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "warning")


def load_manifest(path: Path, environ: Mapping[str, str], *, home: Path | None = None) -> Loaded:
    """Read a manifest and check it against this machine. Never raises for what stands in the file.

    `home` is the Freehold that it is for, when that is not the folder it lies in.
    """
    from freehold.manifest.facts import Facts

    return check_source(read_source(path), Facts.of_this_machine(home or path.absolute().parent, environ))


def require_manifest(path: Path, environ: Mapping[str, str], *, home: Path | None = None) -> Loaded:
    """The same, but with errors among the problems it raises, naming them all."""
    loaded = load_manifest(path, environ, home=home)
    if loaded.errors:
        told = "\n".join(f"  {problem.place}: {problem.message}  [{problem.code}]" for problem in loaded.errors)
        count = len(loaded.errors)
        raise FreeholdError(
            "manifest.invalid",
            f"The manifest has {count} error{'s' if count > 1 else ''}\n{told}",
            hint=f"freehold check {file_name(path)}  shows how to mend each",
        )
    return loaded


def check_source(source: Source, facts: "Facts") -> Loaded:
    """Everything after reading: a pure function of the text and the facts."""
    from freehold.manifest.rules import run_rules

    overrides = read_overrides(facts.environ, source.tree)
    manifest, mistakes = build_manifest(apply_overrides(source.tree, overrides))
    problems = [*source.problems, *overrides.problems]

    def report(code: str, path: KeyPath, message: str, hint: str) -> None:
        message, hint = scrub(message), scrub(hint)
        variable = overrides.variable(path)
        if variable:
            problems.append(Problem(code, f"{message} (from {variable})", hint, ENVIRONMENT, None, dotted(path)))
        else:
            problems.append(Problem(code, message, hint, file_name(source.path), source.line(path), dotted(path)))

    for mistake in mistakes:
        report(mistake.code, mistake.path, mistake.message, mistake.hint)
    if not source.problems:
        wrong = {mistake.path for mistake in mistakes}
        around_wrong = {path[:end] for path in wrong for end in range(1, len(path))}
        for code, finding in run_rules(manifest, facts):
            # What a rule misses because it could not be read is not missing.
            inside_wrong = any(finding.path[:end] in wrong for end in range(1, len(finding.path) + 1))
            if not inside_wrong and finding.path not in around_wrong:
                report(code, finding.path, finding.message, finding.hint)
    return Loaded(manifest, sort_problems(problems), _checksum(manifest), source.path)


def _checksum(manifest: Manifest) -> str:
    canonical = json.dumps(manifest.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
