"""Manifest checks of `[routines.<name>]`."""

import re
from collections.abc import Iterator

from freehold.manifest.checks import CheckFinding, check
from freehold.manifest.facts import MachineFacts
from freehold.manifest.model import Manifest
from freehold.manifest.problem import show_key
from freehold.routines.rules import RuleProblem, find_problems
from freehold.routines.section import NAME_PATTERN, RoutinesSection


def _find(manifest: Manifest, *, shape: bool) -> Iterator[tuple[str, RuleProblem]]:
    for name, spec in manifest.section(RoutinesSection).named.items():
        for problem in find_problems(spec):
            if problem.is_shape == shape:
                yield name, problem


@check("E741")
def routine_without_trigger_or_work(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A routine has not exactly one trigger and one piece of work."""
    for name, problem in _find(manifest, shape=True):
        yield CheckFinding(("routines", name), f"{show_key(('routines', name))}: {problem.message}", problem.hint)


@check("E742")
def routine_with_a_wrong_value(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A value of a routine cannot be used: a time, a zone, a pattern, a text."""
    for name, problem in _find(manifest, shape=False):
        key = ("routines", name, problem.key)
        yield CheckFinding(key, f"{show_key(key)}: {problem.message}", problem.hint)


@check("E743")
def routine_with_a_bad_name(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """The name of a routine has other characters than small letters, digits, - and _."""
    for name in manifest.section(RoutinesSection).named:
        if re.fullmatch(NAME_PATTERN, name) is None:
            yield CheckFinding(
                ("routines", name),
                f"{name[:80]!r} cannot be the name of a routine",
                "Use up to 63 small letters, digits, - and _, such as [routines.morning-report]",
            )


@check("E744")
def routine_after_itself(manifest: Manifest, facts: MachineFacts) -> Iterator[CheckFinding]:
    """A routine begins after itself."""
    for name, spec in manifest.section(RoutinesSection).named.items():
        if spec.after == f"routine:{name}":
            words = f"{show_key(('routines', name))} begins after itself"
            yield CheckFinding(("routines", name, "after"), words, "Name another routine")
