"""Load a manifest: file, then environment, then checks."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.manifest.environment import apply_overrides, read_overrides
from freehold.manifest.model import Manifest
from freehold.manifest.overlay import merge_overlay, read_overlay
from freehold.manifest.problem import ENVIRONMENT, KeyPath, ManifestProblem, show_key, show_path, sort_problems
from freehold.manifest.reader import ManifestSource, read_source
from freehold.manifest.renamed_keys import find_renamed_keys, rename_keys
from freehold.manifest.secret_text import scrub
from freehold.manifest.structure import build_manifest

if TYPE_CHECKING:
    from freehold.manifest.facts import MachineFacts


@dataclass(frozen=True)
class LoadedManifest:
    """A manifest and its problems. One with errors must not be used."""

    manifest: Manifest
    problems: tuple[ManifestProblem, ...]
    checksum: str
    """SHA-256 of the values in force, environment included. Formatting does not change it."""
    path: Path

    @property
    def errors(self) -> tuple[ManifestProblem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def warnings(self) -> tuple[ManifestProblem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "warning")


def load_manifest(path: Path, environ: Mapping[str, str], *, home: Path | None = None) -> LoadedManifest:
    """Read a manifest with its overlay and check it against this machine. Never raises for the content of the files.

    `home` is the home it belongs to, when that is not the folder of the file.
    """
    from freehold.manifest.facts import MachineFacts

    facts = MachineFacts.gather(home or path.absolute().parent, environ)
    source = read_source(path)
    return check_source(source, facts, None if source.problems else read_overlay(path))


def require_manifest(path: Path, environ: Mapping[str, str], *, home: Path | None = None) -> LoadedManifest:
    """The same, but raises when there are errors, and names all of them."""
    loaded = load_manifest(path, environ, home=home)
    if loaded.errors:
        lines = "\n".join(f"  {problem.place}: {problem.message}  [{problem.code}]" for problem in loaded.errors)
        count = len(loaded.errors)
        raise FreeholdError(
            "manifest.invalid",
            f"The manifest has {count} error{'s' if count > 1 else ''}\n{lines}",
            hint=f"freehold check {show_path(path)}  shows how to fix each of them",
        )
    return loaded


def check_source(
    source: ManifestSource, facts: "MachineFacts", overlay: ManifestSource | None = None
) -> LoadedManifest:
    """Everything after reading the files: a pure function of their content and the facts."""
    from freehold.manifest.checks import run_checks

    overlay = overlay or ManifestSource(source.path, {}, "")
    tree = merge_overlay(rename_keys(source.tree), overlay.tree)
    overrides = read_overrides(facts.environ, tree)
    manifest, mistakes = build_manifest(apply_overrides(tree, overrides))
    problems = [*source.problems, *overlay.problems, *overrides.problems]

    def report(code: str, path: KeyPath, message: str, hint: str) -> None:
        message, hint = scrub(message), scrub(hint)
        variable = overrides.variable(path)
        if variable:
            problems.append(
                ManifestProblem(code, f"{message} (from {variable})", hint, ENVIRONMENT, None, show_key(path))
            )
        else:
            file = overlay if _has_key(overlay.tree, path) else source
            problems.append(ManifestProblem(code, message, hint, show_path(file.path), file.line(path), show_key(path)))

    for key, new in find_renamed_keys(source.tree):
        report("W009", key, f"{show_key(key)} is now called {key[0]}.{new}", f"Write {new} in its place")
    for mistake in mistakes:
        report(mistake.code, mistake.path, mistake.message, mistake.hint)
    if not source.problems:
        wrong = {mistake.path for mistake in mistakes}
        around_wrong = {path[:end] for path in wrong for end in range(1, len(path))}
        for code, finding in run_checks(manifest, facts):
            # A check must not report as missing what is only unreadable.
            inside_wrong = any(finding.path[:end] in wrong for end in range(1, len(finding.path) + 1))
            if not inside_wrong and finding.path not in around_wrong:
                report(code, finding.path, finding.message, finding.hint)
    return LoadedManifest(manifest, sort_problems(problems), checksum_of(manifest), source.path)


def _has_key(tree: object, path: KeyPath) -> bool:
    for part in path:
        if not isinstance(tree, dict) or part not in tree:
            return isinstance(tree, list)  # an element of a list that stands here
        tree = tree[part]
    return True


def checksum_of(manifest: Manifest) -> str:
    canonical = json.dumps(manifest.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
